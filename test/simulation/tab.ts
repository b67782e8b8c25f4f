// One tab of a user: it speaks the wire, comes back when its line is lost, and remembers all that it was shown.
import type { UIMessage, UIMessageChunk } from "ai";
import { builderFrom, type MessageBuilder, newBuilder, toMessage } from "../../src/message/builder.ts";
import { applyChunk } from "../../src/message/fold.ts";
import { CLIENT_TOOL } from "../think/interleave-model.ts";
import { Line } from "./line.ts";
import type { Machine } from "./machine.ts";
import type { World } from "./world.ts";

const HOST = "http://host.test/agents/";
const AGAIN_MS = 700;
const CLIENT_TOOLS = [{ name: CLIENT_TOOL, description: "Where the user is.", parameters: { type: "object" } }];

/** A frame of the host, as far as anyone here looks at it. */
export interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly body?: string;
  readonly done?: boolean;
  readonly error?: unknown;
  readonly outcome?: string;
  readonly replay?: boolean;
  readonly continuation?: boolean;
  readonly messageIds?: readonly string[];
  readonly seq?: number;
  readonly messages?: readonly UIMessage[];
  readonly message?: UIMessage;
  readonly success?: boolean;
  readonly state?: { readonly n: number; readonly mark: string };
  readonly txid?: string;
  readonly applied?: boolean;
  readonly value?: unknown;
  readonly reason?: string;
  readonly before?: number;
  readonly next?: number;
}

/** What a question of this tab was about. */
interface Question {
  readonly kind: string;
  readonly key: string;
}

export class Tab {
  readonly name: string;
  /** The address as agents have it: `Mind/x`. */
  readonly agent: string;
  /** The conversation that it is in; main, if nobody says. */
  readonly session: string;
  readonly #world: World;
  readonly #path: string;
  #line: Line | undefined;
  #machine: Machine | undefined;
  /** The conversation as it is shown. */
  list: UIMessage[] = [];
  /** It was not told the conversation since it came or since a request failed: what it shows may not be what is stored. */
  stale = false;
  /** It comes back by itself. */
  wanted = true;
  isReady = false;
  /** The state as it is shown. */
  state: Frame["state"];
  #comesBack = false;
  /** Requests for turns on the present line, and how often the end of each was told there. */
  asked = new Set<string>();
  ends = new Map<string, number>();
  /** The number of the last chunk of each stream on the present line. */
  #numbers = new Map<string, number>();
  /** Answers as they grow, and what those that go on with one began with. */
  readonly #growing = new Map<string, { readonly base: UIMessage | undefined; builder: MessageBuilder }>();
  /** Streams that were offered again: their end is told again with them. */
  #resumed = new Set<string>();
  /** Another tab goes on with the continuation under way, or may: whether there is a stream for this one is not answered yet. */
  #watches = false;
  /** What each frame that was sent carries. */
  readonly #keys = new Map<string, string>();
  /** The message that each request brings. */
  readonly #messages = new Map<string, UIMessage>();
  readonly #questions = new Map<string, Question>();
  #count = 0;

  constructor(world: World, name: string, agent: string, session = "main", pages = false) {
    this.#world = world;
    this.name = name;
    this.agent = agent;
    this.session = session;
    const [cls = "", instance = ""] = agent.split("/");
    const query = (session === "main" ? "" : `&_session=${session}`) + (pages ? "&_history=pages" : "");
    this.#path = `${HOST}${cls.toLowerCase()}/${instance}?_pk=${name}${query}`;
  }

  get isChat(): boolean {
    return !this.agent.startsWith("Board") && !this.agent.startsWith("Sheet");
  }

  get connected(): boolean {
    return this.isReady && this.#line?.open === true;
  }

  connect(): void {
    const { machine } = this.#world;
    if (this.#line !== undefined || !this.wanted) return;
    if (machine === undefined) return this.#later();
    this.asked = new Set();
    this.ends = new Map();
    this.#numbers = new Map();
    this.#resumed = new Set();
    this.#watches = true;
    this.#machine = machine;
    const line: Line = new Line(this.#world, machine, this.#path, this.name, {
      opened: () => {
        if (line !== this.#line) return;
        this.isReady = true;
        // What it typed last may have been lost on the way; of an empty conversation nothing is told.
        this.stale = true;
        this.#world.trace(`${this.name} is connected to ${this.agent} (${this.session})`);
        if (this.isChat) this.send({ type: "cf_agent_stream_resume_request" });
        else if (this.agent.startsWith("Board"))
          this.send({ type: "perdure_rows_subscribe", id: "rows", since: { notes: 0 } });
      },
      received: (text) => {
        if (line === this.#line) this.#receive(text);
      },
      delivered: (text) => {
        const key = this.#keys.get(text);
        const { delivered } = this.#world.record;
        if (key !== undefined) delivered.set(key, (delivered.get(key) ?? 0) + 1);
      },
      closed: (code, reason) => {
        if (line !== this.#line) return;
        this.#world.trace(`${this.name} was closed: ${code} ${reason}`);
        this.#gone();
      },
    });
    this.#line = line;
    this.#world.lines.add(line);
  }

  /** Its network fails. */
  cut(): void {
    if (this.#line === undefined) return;
    this.#world.trace(`${this.name} loses its line`);
    this.#line.cut();
    this.#gone();
  }

  /** @param key what it carries, to count how often that arrives. */
  send(frame: object, key?: string): void {
    const text = JSON.stringify(frame);
    if (key !== undefined) this.#keys.set(text, key);
    this.#line?.send(text);
    this.#world.trace(`${this.name} > ${text}`);
  }

  call(method: string, args: readonly unknown[], kind: string, key: string): void {
    const id = `${this.name}-${++this.#count}`;
    this.#questions.set(id, { kind, key });
    this.send({ type: "rpc", id, method, args }, key);
  }

  write(key: string): void {
    this.#questions.set(key, { kind: "row", key });
    const changes = [{ table: "notes", key, operation: "insert", value: { id: key } }];
    this.send({ type: "perdure_rows_write", txid: key, changes });
  }

  /** Sets the state, and shows it at once. */
  push(mark: string): void {
    this.state = { n: 0, mark };
    this.send({ type: "cf_agent_state", state: this.state });
  }

  ask(op: string, args: object = {}): void {
    const id = `${this.name}-${++this.#count}`;
    this.#questions.set(id, { kind: op, key: id });
    this.send({ type: "perdure_session", id, op, ...args });
  }

  request(id: string, messages: readonly UIMessage[], trigger: "submit-message" | "regenerate-message"): void {
    const body = JSON.stringify({ messages, trigger, clientTools: CLIENT_TOOLS });
    this.asked.add(id);
    const last = messages.at(-1);
    if (trigger === "submit-message" && last !== undefined) this.#messages.set(id, last);
    this.send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } }, id);
  }

  #gone(): void {
    if (this.#line !== undefined) this.#world.lines.delete(this.#line);
    this.#line = undefined;
    this.isReady = false;
    this.#later();
  }

  #later(): void {
    if (this.#comesBack) return;
    this.#comesBack = true;
    this.#world.time.after(1 + this.#world.chance.int(AGAIN_MS), () => {
      this.#comesBack = false;
      this.connect();
    });
  }

  #receive(text: string): void {
    const frame = JSON.parse(text) as Frame;
    const { record } = this.#world;
    this.#world.trace(`${this.name} < ${text}`);
    switch (frame.type) {
      case "rpc":
        return this.#answered(frame.id ?? "", frame.success === true);
      case "perdure_rows_receipt":
        return this.#answered(frame.txid ?? "", frame.applied === true);
      case "perdure_session_result":
        return this.#sessionResult(frame);
      case "cf_agent_state": {
        const states = record.states.get(this.agent) ?? [];
        record.states.set(this.agent, states);
        if (frame.state !== undefined) states.push(frame.state);
        this.state = frame.state;
        return;
      }
      case "cf_agent_chat_messages":
        this.list = this.#told(frame);
        this.stale = false;
        this.#shown(this.list);
        return;
      case "perdure_chat_older":
        this.list = [...(frame.messages ?? []), ...this.list];
        if (frame.next !== undefined) this.send({ type: "perdure_chat_older", before: frame.next });
        return;
      case "cf_agent_message_updated": {
        const { message } = frame;
        if (message === undefined) return;
        this.list = this.list.map((one) => (one.id === message.id ? message : one));
        return;
      }
      case "cf_agent_chat_clear":
        this.list = [];
        return;
      case "cf_agent_stream_resuming":
        this.#watches = false;
        return this.#acknowledge(frame.id ?? "");
      case "cf_agent_stream_resume_none":
        this.#watches = frame.reason === "continuation-owned";
        return;
      case "cf_agent_stream_pending":
        this.#watches = false;
        if (frame.id !== undefined) this.#accepted(frame.id);
        return;
      case "cf_agent_use_chat_response":
        return this.#response(frame);
      default:
        return;
    }
  }

  /** The conversation, or the end of it, which takes the place of all from its first message on. */
  #told({ messages = [], before }: Frame): UIMessage[] {
    const at = before === undefined ? 0 : this.list.findIndex(({ id }) => id === messages[0]?.id);
    if (before !== undefined && at === -1) this.send({ type: "perdure_chat_older", before });
    return [...this.list.slice(0, Math.max(0, at)), ...messages];
  }

  #answered(id: string, ok: boolean): void {
    const question = this.#questions.get(id);
    if (question === undefined || !ok) return;
    this.#questions.delete(id);
    this.#world.record.acks.push({ agent: this.agent, ...question });
  }

  #sessionResult({ id = "", value, error }: Frame): void {
    const question = this.#questions.get(id);
    if (question === undefined) return;
    this.#questions.delete(id);
    const session = (value as { id?: string } | null)?.id;
    if (error === undefined && question.kind === "create" && session !== undefined)
      this.#world.record.acks.push({ agent: this.agent, kind: "session", key: session });
  }

  /** The host says that these messages are stored. */
  #shown(messages: readonly UIMessage[]): void {
    const { record } = this.#world;
    const shown = record.stored.get(this.agent) ?? new Map<string, UIMessage>();
    record.stored.set(this.agent, shown);
    const growing = this.#answersUnderWay();
    for (const message of messages) {
      if (!growing.has(message.id)) shown.set(message.id, message);
      if (message.role !== "user") continue;
      const [, tag = ""] = /\[(u\d+)v/.exec(JSON.stringify(message.parts)) ?? [];
      const sent = record.sent.get(tag);
      if (sent !== undefined && sent.session !== this.session && !record.touched.has(this.agent))
        record.breaks(`${this.name} in ${this.session} of ${this.agent} was shown ${tag} of ${sent.session}`);
    }
  }

  /** Answers that are still being written: of those a power loss may leave nothing, and they are given anew. */
  #answersUnderWay(): ReadonlySet<string> {
    const { disk } = this.#world;
    if (this.#machine?.powerMayFail !== true) return new Set();
    const query = "SELECT answer_id AS id FROM perdure_turn WHERE status = 'running' AND continuation = 0";
    return disk.look(this.agent, (read) => new Set(read<{ id: string }>(query).map(({ id }) => id)));
  }

  #acknowledge(id: string): void {
    this.#resumed.add(id);
    const late = this.#world.chance.chance(0.1) ? this.#world.chance.int(500) : 0;
    const line = this.#line;
    this.#world.time.after(late, () => {
      if (line === this.#line) this.send({ type: "cf_agent_stream_resume_ack", id });
    });
  }

  #accepted(request: string): void {
    this.#world.record.accepted.set(`${this.agent} ${request}`, { agent: this.agent, request });
  }

  #response({ id = "", seq, body = "", done, replay, error, continuation, messageIds, outcome }: Frame): void {
    const { record } = this.#world;
    if (done === true && replay !== true && (!this.#resumed.has(id) || !this.ends.has(id)))
      this.ends.set(id, (this.ends.get(id) ?? 0) + 1);
    if (error === true) this.stale = true;
    // It was not stored: who had typed it takes it back.
    if (error === true && messageIds === undefined)
      this.list = this.list.filter((one) => one.id !== this.#messages.get(id)?.id);
    // One that is dropped at once leaves no trace either.
    if (error === true || outcome === "skipped") return;
    this.#accepted(id);
    if (seq === undefined || done === true) return;
    const last = this.#numbers.get(id) ?? -1;
    // Another one goes on with it; who only watches was shown what there was, and hears the rest.
    const joins = this.#watches && continuation === true && last === -1;
    if (seq !== 0 && seq !== last + 1 && !joins)
      record.breaks(`${this.name} was told chunk ${seq} of ${id} after ${last}`);
    this.#numbers.set(id, seq);
    record.saw(this.agent, id, this.#machine?.epoch ?? 0, seq, body);
    this.#grow(id, seq, JSON.parse(body) as UIMessageChunk, continuation === true);
  }

  /** The answer is shown as it comes. */
  #grow(id: string, seq: number, chunk: UIMessageChunk, continuation: boolean): void {
    let growing = this.#growing.get(id);
    if (seq === 0 || growing === undefined) {
      const last = continuation ? this.list.findLast(({ role }) => role === "assistant") : undefined;
      const base = growing === undefined ? last : growing.base;
      growing = { base, builder: base === undefined ? newBuilder("") : builderFrom(base) };
      this.#growing.set(id, growing);
    }
    applyChunk(growing.builder, chunk as Parameters<typeof applyChunk>[1]);
    const message = toMessage(growing.builder) as UIMessage;
    if (message.id === "" || message.parts.length === 0) return;
    // It was refused once and sent twice: it is answered after all.
    const typed = this.#messages.get(id);
    if (typed !== undefined && !this.list.some((one) => one.id === typed.id)) this.list = [...this.list, typed];
    const known = this.list.some((one) => one.id === message.id);
    this.list = known ? this.list.map((one) => (one.id === message.id ? message : one)) : [...this.list, message];
  }
}
