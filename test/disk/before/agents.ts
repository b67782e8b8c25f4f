// Agents that leave something of every kind behind. Written with names that have not changed since: the version that
// wrote the directory ran this file too.
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool, type ToolSet } from "ai";
import {
  AIChatAgent,
  type ChatTurnOptions,
  durableTool,
  type FiberContext,
  type ScheduledTasks,
  type Session,
  Think,
} from "perdure";
import { scriptedModel, type ScriptedCall, type ScriptedReply } from "perdure/testing";

const HOUR_S = 3600;
/** The messages that a compaction covers are long: a summary has to be worth it. */
const LONG = "The lighthouse keeper wrote down what the sea had brought that night. ".repeat(60);
const inputSchema = jsonSchema<object>({ type: "object" });
const user = (text: string) => ({
  id: `u-${text.slice(0, 9)}`,
  role: "user" as const,
  parts: [{ type: "text" as const, text }],
});

/** What hangs in the life that is ended by a kill, and returns at once in the next one. */
export const world = {
  hangs: false,
  /** Tools that ran, by name. */
  ran: [] as string[],
  /** What the model was sent, newest last. */
  prompts: [] as string[],
};

async function hold(): Promise<void> {
  if (world.hangs) await new Promise<never>(() => {});
}

function reply({ userText, step, prompt }: ScriptedCall): string | ScriptedReply {
  world.prompts.push(JSON.stringify(prompt));
  if (userText.includes("pay") && step === 0)
    return { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "pay-1" }] };
  if (userText.includes("both") && step === 0) {
    return { toolCalls: ["a", "b"].map((id) => ({ toolName: "pay", input: {}, toolCallId: `pay-${id}` })) };
  }
  if (userText.includes("work") && step === 0)
    return { toolCalls: [{ toolName: "work", input: {}, toolCallId: "w-1" }] };
  if (userText.includes("tell")) {
    return world.hangs ? { text: ["One ", "two "], hang: true } : { text: ["One ", "two ", "three."] };
  }
  return `Said ${userText.slice(0, 40)}.`;
}

const model = scriptedModel(reply);

function ran(name: string) {
  return async () => {
    world.ran.push(name);
    await hold();
    return `${name} done`;
  };
}

export class Clerk extends Think<object, { n: number }> {
  static override readonly subAgents = ["Clerk"];
  override initialState = { n: 0 };
  override getModel() {
    return model;
  }
  override getTools(): ToolSet {
    return {
      pay: tool({ inputSchema, needsApproval: true, execute: ran("pay") }),
      work: durableTool(tool({ inputSchema, execute: ran("work") }), { replay: "safe" }),
    };
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

  /** Everything that is at rest. */
  async fill(): Promise<void> {
    this.setState({ n: 7 });
    await this.configure({ color: "blue" });
    this.sql`CREATE TABLE seen (what TEXT)`;
    for (const text of ["PINNED", ...[1, 2, 3].map((at) => `${at} ${LONG}`)]) await this.say(text);
    const [pinned, ...rest] = this.session.getHistory();
    const [, , , , covered] = rest;
    if (pinned === undefined || covered === undefined) throw new Error("too short");
    this.session.pin(pinned.id);
    await this.applyCompaction({ summary: "THE SUMMARY of what was said.", messageId: covered.id });
    this.session.fork({ name: "Fork" });
    this.createSession("Other");
    this.sessions.openView(this.session.id, covered.id);
    await this.session.replaceContextBlock("memory", "likes tea");
    await this.workspace.writeFile("/a.txt", "a");
    await this.workspace.writeFile("/b.txt", "b".repeat(100_000));
    this.collection("notes").insert({ id: "one", text: "note" });
    await this.schedule(HOUR_S, "note", "scheduled");
    await this.scheduleEvery(HOUR_S, "note", "again");
    await this.submitMessages([user("submitted")], { idempotencyKey: "k1" });
    await this.say("pay");
  }
  /** What is under way when the process dies: a fiber, a method of the queue, a run of a child. */
  async begin(): Promise<void> {
    this.spawnFiber("tidy", { room: "attic" });
    await this.queue("note", "queued");
    await this.runAgentTool(Clerk, { input: "tell", runId: "report", detached: { onFinish: "reported" } });
  }
  /** A turn that is cut, and what waits behind it. */
  async cut(text: string): Promise<void> {
    this.sql`CREATE TABLE seen (what TEXT)`;
    void this.say(text).catch(() => undefined);
    await this.submitMessages([user("waits")], { idempotencyKey: "k2" });
  }
  async say(text: string): Promise<string> {
    return (await this.saveMessages([user(text)])).status;
  }
  async note(what: string): Promise<void> {
    if (what === "queued") await hold();
    this.sql`INSERT INTO seen (what) VALUES (${what})`;
  }
  async tidy(_: unknown, fiber: FiberContext): Promise<void> {
    fiber.stash({ cleaned: 1 });
    await hold();
    this.sql`INSERT INTO seen (what) VALUES ('tidy')`;
  }
  reported(run: { readonly runId: string }, { status }: { readonly status: string }): void {
    this.sql`INSERT INTO seen (what) VALUES (${`${run.runId} ${status}`})`;
  }
  async look() {
    const [notes, block] = [this.collection("notes").list(), this.session.getContextBlock("memory")];
    return {
      state: this.state,
      config: this.getConfig(),
      texts: this.messages.map(textOf),
      sessions: this.getSessions().map(({ name }) => name),
      compactions: this.listCompactions().map(({ kind }) => kind),
      approvals: this.pendingApprovals().map(({ toolCallId }) => toolCallId),
      submissions: this.listSubmissions().map(({ status }) => status),
      seen: this.sql<{ what: string }>`SELECT what FROM seen ORDER BY what`.map(({ what }) => what),
      files: [await this.workspace.readFile("/a.txt"), (await this.workspace.readFile("/b.txt"))?.length],
      notes: notes.length,
      memory: block?.content,
    };
  }
}

export class Talker extends AIChatAgent {
  override approvalTimeoutMs = 10 * HOUR_S * 1000;
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const result = streamText({
      model,
      messages: await convertToModelMessages(this.messages),
      tools: { pay: tool({ inputSchema, needsApproval: true, execute: ran("pay") }) },
      stopWhen: isStepCount(3),
      ...(abortSignal && { abortSignal }),
    });
    return result.toUIMessageStreamResponse();
  }
  async say(text: string): Promise<string> {
    return (await this.saveMessages([user(text)])).status;
  }
  /** A turn that is cut. */
  cut(): void {
    void this.say("tell").catch(() => undefined);
  }
  async yes(toolCallId: string): Promise<unknown> {
    return this.answerApproval(toolCallId, true);
  }
  texts(): string[] {
    return this.messages.map(textOf);
  }
  states(): string[] {
    return this.messages.flatMap(({ parts }) =>
      parts.flatMap((part) => ("state" in part && part.state ? [part.state] : [])),
    );
  }
}

function textOf({ parts }: { readonly parts: readonly object[] }): string {
  return parts.map((part) => ("text" in part ? String(part.text) : "")).join("");
}
