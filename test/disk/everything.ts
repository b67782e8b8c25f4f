// An agent that has rows in as many tables as an agent can have.
import { jsonSchema, tool, type ToolSet } from "ai";
import { type FiberContext, type ScheduledTasks, type Session, Think } from "perdure";
import { scriptedModel } from "perdure/testing";

const HOUR = 3600;

export class Everything extends Think<object, { n: number }> {
  override initialState = { n: 0 };
  override onError(): void {}
  readonly model = scriptedModel(({ userText }) => {
    if (userText === "ask") return { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "call-ask" }] };
    return this.ran().includes(`${userText} for ever`) ? { hang: "before" } : `Said ${userText}.`;
  });

  override getModel() {
    return this.model;
  }
  override getCompactionModel() {
    return scriptedModel(() => "## Goal\nGo on.");
  }
  override getTools(): ToolSet {
    const inputSchema = jsonSchema<object>({ type: "object" });
    return { pay: tool({ inputSchema, needsApproval: true, execute: () => "paid" }) };
  }
  override getScheduledTasks(): ScheduledTasks {
    return { daily: { schedule: "every day at 09:00 in UTC", prompt: "Good morning." } };
  }
  override configureSession(session: Session) {
    return session.withContext("memory", { description: "Facts" });
  }
  override getCollections() {
    return { notes: {} };
  }

  async fill(): Promise<void> {
    this.setState({ n: 7 });
    await this.configure({ color: "blue" });
    this.sql`CREATE TABLE ran (what TEXT)`;
    await this.say("first");
    await this.say("second");
    const long = "abc ".repeat(4_000);
    await this.addMessages([
      { id: "long", role: "user", parts: [{ type: "text", text: `Read 17 pages. ${long}` }] },
      { id: "read", role: "assistant", parts: [{ type: "text", text: long }] },
    ]);
    this.session.pin("u-first");
    await this.say("third");
    await this.compact();
    this.createSession("Other");
    await this.session.replaceContextBlock("memory", "likes tea");
    await this.submitMessages("submitted", { idempotencyKey: "k1" });
    await this.workspace.writeFile("/a.txt", "a");
    await this.workspace.writeFile("/b.txt", "b".repeat(100_000));
    this.collection("notes").insert({ id: "one", text: "note" });
    this.collection("notes").insert({ id: "two", text: "note" });
    await this.schedule(HOUR, "work", "later");
    await this.scheduleEvery(HOUR, "work", "often");
    await this.queue("fail", "queued");
    await this.subAgent(Everything, "child");
    this.spawnFiber("sleepy", { for: "ever" });
    await this.saveMessages([{ id: "ask", role: "user", parts: [{ type: "text", text: "ask" }] }]);
  }
  async say(text: string): Promise<string> {
    const { status } = await this.saveMessages([{ id: `u-${text}`, role: "user", parts: [{ type: "text", text }] }]);
    return status;
  }
  async remember(what: string): Promise<void> {
    await this.session.replaceContextBlock("memory", what);
  }
  async eraseMain(): Promise<void> {
    await this.erase({ session: "main" });
  }
  /** A turn that does not end as long as `ran` says so. */
  async sayForEver(text: string): Promise<void> {
    this.work(`${text} for ever`);
    await this.sayLater(text);
  }
  async sayLater(text: string): Promise<void> {
    await this.submitMessages(text, { idempotencyKey: text });
  }
  async plan(what: string): Promise<void> {
    await this.schedule(0, "work", what);
    await this.queue("work", what);
  }
  work(what: string): void {
    this.sql`INSERT INTO ran (what) VALUES (${what})`;
  }
  fail(): void {
    throw new Error("not now");
  }
  async sleepy(_: unknown, fiber: FiberContext): Promise<void> {
    await new Promise((_resolve, reject) => fiber.signal.addEventListener("abort", () => reject(new Error("over"))));
  }
  ran(): string[] {
    return this.sql<{ what: string }>`SELECT what FROM ran`.map(({ what }) => what);
  }
  both(): { state: unknown; config: unknown } {
    return { state: this.state, config: this.getConfig() };
  }
  async replaceBoth(): Promise<void> {
    this.setState({ n: 9 });
    await this.configure({ color: "red" });
  }
  /** Reads everything there is a list of. What failed, by name. */
  async look(): Promise<Record<string, string | null>> {
    const looks: Record<string, () => unknown> = {
      state: () => this.state,
      config: () => this.getConfig(),
      schedules: () => this.listSchedules(),
      queue: () => this.getQueues("k", "v"),
      fibers: () => this.listFibers(),
      messages: () => this.messages,
      sessions: () => this.getSessions(),
      approvals: () => this.pendingApprovals(),
      usage: () => this.listUsage(),
      children: () => this.listSubAgents(),
      search: () => this.search("first"),
      notes: () => this.collection("notes").list(),
      files: () => this.workspace.readDir("/"),
      compactions: () => this.listCompactions(),
      context: () => this.contextReport(),
      pin: () => {
        this.session.unpin("u-first");
        this.session.pin("u-first");
      },
      submissions: () => this.listSubmissions(),
    };
    const told: Record<string, string | null> = {};
    for (const [name, look] of Object.entries(looks)) {
      told[name] = await Promise.resolve()
        .then(look)
        .then(() => null)
        .catch((error: unknown) => String(error));
    }
    return told;
  }
}
