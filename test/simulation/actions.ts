// What users, their tabs and bad luck do in a run, one thing after the other.
import type { UIMessage } from "ai";
import { isPending, type ToolPart, toolName, toolParts } from "../../src/message/types.ts";
import { CLIENT_TOOL } from "../think/interleave-model.ts";
import { textOf } from "../think/interleave-record.ts";
import { Reader } from "./reader.ts";
import { Tab } from "./tab.ts";
import type { World } from "./world.ts";

const BOARD = {
  add: 5,
  addLate: 2,
  plan: 3,
  planAsync: 2,
  chain: 1,
  enqueue: 3,
  spawn: 2,
  below: 2,
  write: 3,
  drop: 0.3,
};
const CHAT = {
  send: 10,
  answer: 6,
  cancel: 2,
  regenerate: 1,
  clear: 0.3,
  push: 0.5,
  post: 2,
  session: 1,
  resume: 1,
  read: 2,
  hand: 1,
};
const FAULT = { cut: 4, kill: 2, killSoon: 3, power: 2, powerSoon: 3, stop: 1, full: 1, jump: 1, leave: 1 };

type BoardAct = keyof typeof BOARD;
type ChatAct = keyof typeof CHAT;
type FaultAct = keyof typeof FAULT;

const FAULTY = 0.25;
/** How many tabs want only the end of a conversation. */
const PAGED = 0.2;
const LONGEST_PLAN_S = 20;
const LONGEST_JUMP_MS = 600_000;
const MOST_COMMITS = 25;
const FULL_WRITES = 12;

/** All that happens in a run before it is let come to rest. */
export class Actions {
  readonly tabs: Tab[] = [];
  readonly readers: Reader[] = [];
  readonly #world: World;
  #n = 0;

  constructor(world: World) {
    this.#world = world;
    for (const [name, agent] of [
      ["ann", "Mind/m"],
      ["bob", "Mind/m"],
      ["cat", "Chat/c"],
      ["dan", "Chat/c"],
      ["eve", "Board/b"],
      ["fay", "Board/b"],
      ["gus", "Board/d"],
      ["hal", "Sheet/s"],
      ["ida", "Sheet/s"],
    ] as const) {
      if (world.chance.chance(0.8)) this.#open(name, agent);
    }
    if (this.tabs.length === 0) this.#open("ann", "Mind/m");
  }

  /** Does one thing. */
  async next(): Promise<void> {
    const { chance } = this.#world;
    this.#n++;
    if (chance.chance(FAULTY)) return this.#fault(chance.weighted(FAULT));
    const tab = this.tabs[chance.int(this.tabs.length)];
    if (tab === undefined) return;
    if (tab.isChat) await this.#chat(tab, chance.weighted(CHAT));
    else if (tab.agent.startsWith("Sheet")) this.#sheet(tab);
    else this.#board(tab, chance.weighted(BOARD));
  }

  #open(name: string, agent: string, session?: string): void {
    const tab = new Tab(this.#world, name, agent, session, this.#world.chance.chance(PAGED));
    this.tabs.push(tab);
    tab.connect();
  }

  async #fault(what: FaultAct): Promise<void> {
    const world = this.#world;
    const { chance, machine } = world;
    const tab = this.tabs[chance.int(this.tabs.length)];
    switch (what) {
      case "cut":
        return tab?.cut();
      case "leave":
        if (tab === undefined) return;
        tab.wanted = !tab.wanted;
        if (tab.wanted) tab.connect();
        else tab.cut();
        return;
      case "kill":
        return world.die("killed");
      case "power":
        return world.die("power");
      case "killSoon":
      case "powerSoon":
        if (machine !== undefined)
          machine.fate = { commits: 1 + chance.int(MOST_COMMITS), death: what === "killSoon" ? "killed" : "power" };
        return;
      case "stop":
        return world.stop();
      case "full":
        world.faults.full = FULL_WRITES;
        return;
      case "jump":
        return world.jump(chance.int(2 * LONGEST_JUMP_MS) - LONGEST_JUMP_MS);
    }
  }

  #sheet(tab: Tab): void {
    if (tab.connected) tab.push(`s${this.#n}`);
  }

  #board(tab: Tab, what: BoardAct): void {
    if (!tab.connected) return;
    const { chance } = this.#world;
    const key = `${what}${this.#n}`;
    const seconds = 1 + chance.int(LONGEST_PLAN_S);
    const leaf = `l${chance.int(2)}`;
    switch (what) {
      case "write":
        return tab.write(key);
      case "plan":
      case "planAsync":
      case "chain":
        return tab.call(what, [key, seconds], what, key);
      case "below":
        return tab.call(what, [key, leaf], `below ${leaf}`, key);
      case "drop":
        // What the leaf had is gone with it.
        this.#world.record.touched.add(`${tab.agent}/Leaf/${leaf}`);
        return tab.call(what, [leaf], what, leaf);
      default:
        return tab.call(what, [key], what, key);
    }
  }

  async #chat(tab: Tab, what: ChatAct): Promise<void> {
    const { chance, record } = this.#world;
    if (what === "post") return this.#post(tab);
    if (what === "read") return this.#read(tab);
    if (!tab.connected) return;
    switch (what) {
      case "send": {
        const message = this.#message(tab, `r${this.#n}`);
        tab.list = [...tab.list, message];
        return tab.request(`r${this.#n}`, tab.list, "submit-message");
      }
      case "answer":
        for (const question of openQuestions(tab)) this.answer(tab, question, chance.next());
        return;
      case "cancel": {
        const ids = [...record.sent.values()].filter(
          ({ agent, session }) => agent === tab.agent && session === tab.session,
        );
        const one = ids.at(-1 - chance.int(2));
        if (one === undefined) return;
        one.gone = true;
        tab.send({ type: "cf_agent_chat_request_cancel", id: one.request });
        return;
      }
      case "regenerate": {
        const last = tab.list.findLastIndex(({ role }) => role === "user");
        if (last === -1) return;
        tab.list = tab.list.slice(0, last + 1);
        record.touched.add(tab.agent);
        return tab.request(`r${this.#n}`, tab.list, "regenerate-message");
      }
      case "clear":
        record.touched.add(tab.agent);
        tab.list = [];
        tab.send({ type: "cf_agent_chat_clear" });
        return;
      case "push":
        tab.send({ type: "cf_agent_chat_messages", messages: tab.list });
        return;
      case "hand": {
        // What code hands in goes to the conversation of all who name none.
        if (tab.agent !== "Mind/m" || tab.session !== "main") return;
        const key = `hand${this.#n}`;
        const { parts } = this.#message(tab, key);
        return tab.call("hand", [key, parts[0]?.type === "text" ? parts[0].text : ""], "hand", key);
      }
      case "resume":
        tab.send({ type: "cf_agent_stream_resume_request", probeId: `p${this.#n}` });
        return;
      case "session": {
        const made = record.acks.filter(({ agent, kind }) => agent === tab.agent && kind === "session");
        if (made.length === 0) return tab.ask("create", { name: `s${this.#n}` });
        const session = made[chance.int(made.length)]?.key ?? "";
        if (this.tabs.some((other) => other.session === session)) return tab.ask("sessions");
        return this.#open(`${tab.name}${this.#n}`, tab.agent, session);
      }
    }
  }

  /** A turn over HTTP whose stream is read. */
  #read(tab: Tab): void {
    if (tab.session !== "main") return;
    const request = `e${this.#n}`;
    const reader = new Reader(this.#world, tab.agent, request, this.#message(tab, request));
    this.readers.push(reader);
    reader.connect();
  }

  /** A turn over HTTP, sent twice at times. */
  async #post(tab: Tab): Promise<void> {
    const { machine, record, chance } = this.#world;
    if (machine === undefined || tab.session !== "main") return;
    const request = `h${this.#n}`;
    const message = this.#message(tab, request);
    const [cls = "", name = ""] = tab.agent.split("/");
    const send = async (): Promise<void> => {
      const response = await machine.router.respond(
        new Request(`http://host.test/agents/${cls.toLowerCase()}/${name}/chat`, {
          method: "POST",
          headers: { "content-type": "application/json", "idempotency-key": request },
          body: JSON.stringify({ message }),
        }),
      );
      if (response?.status !== 202 || !machine.alive) return;
      const { id } = (await response.json()) as { id?: string };
      this.#world.trace(`HTTP: ${request} was accepted as ${id}`);
      if (id !== undefined && machine.alive)
        record.accepted.set(`${tab.agent} ${id}`, { agent: tab.agent, request: id });
    };
    this.#world.trace(`HTTP: ${request} to ${tab.agent}`);
    void send().catch(() => undefined);
    if (chance.chance(0.3)) void send().catch(() => undefined);
  }

  #message(tab: Tab, request: string): UIMessage {
    const tag = `u${this.#n}`;
    this.#world.record.sent.set(tag, { tag, agent: tab.agent, session: tab.session, request, gone: false });
    return { id: `m${this.#n}`, role: "user", parts: [{ type: "text", text: textOf(tag, 0) }] };
  }

  /** Answers a question of a tool. */
  answer(tab: Tab, { message, part }: Question, how: number): void {
    const { record } = this.#world;
    const { toolCallId } = part;
    if (part.state === "approval-requested") {
      const approved = how < 0.6;
      record.decisions.push({ agent: tab.agent, toolCallId, messageId: message.id, approved, order: record.next() });
      tab.send({ type: "cf_agent_tool_approval", toolCallId, approved, autoContinue: true });
      return;
    }
    const result = { toolCallId, toolName: toolName(part), output: { at: "home" }, autoContinue: true };
    tab.send({ type: "cf_agent_tool_result", ...result });
  }
}

interface Question {
  readonly message: UIMessage;
  readonly part: ToolPart;
}

/** What the tab shows as waiting for its user. */
export function openQuestions(tab: Tab): Question[] {
  const message = tab.list.findLast(({ role }) => role === "assistant");
  if (message === undefined) return [];
  return toolParts(message)
    .filter((part) => part.state === "approval-requested" || (isPending(part) && toolName(part) === CLIENT_TOOL))
    .map((part) => ({ message, part }));
}
