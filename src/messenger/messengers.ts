import { PerdureError } from "../base/error.ts";
import { InOrder } from "../base/in-order.ts";
import type { AgentHost, AgentPath, HostedAgentClass } from "../port.ts";
import {
  deleteDelivery,
  deliveryOfTurn,
  type DeliveryKind,
  type DeliveryRow,
  type DeliveryState,
  hasHeldMessage,
  listDeliveryRows,
  partsOf,
  readDelivery,
  reopenDelivery,
  WEB,
} from "../store/delivery.ts";
import type { Work } from "../work/work.ts";
import type { MediaMover } from "../media/media.ts";
import { filesOf } from "../media/files.ts";
import type { ChannelRoom, FileRef, Place } from "./channel.ts";
import { Courier, type DeliveryTerms, hasDeliveries } from "./courier.ts";
import { defineMessengers, type Messengers, termsOf } from "./define.ts";
import { Front } from "./front.ts";
import { runState, type StateOp } from "./kept-state.ts";
import { fileOf, type FileSources, type PartFile } from "./answer-files.ts";
import { FileIntake } from "./file-intake.ts";
import type { Arrival, MessengerContext } from "./arrival.ts";
import { type Asked, Reception, type ReceptionAgent } from "./reception.ts";
import { type FetchResult, Speaker, type SpeakCall, type SpeakResult } from "./speaker.ts";
import { inTime } from "./rule.ts";
import { readThread, type ThreadTarget } from "./thread.ts";

/** What messengers ask of the agent that they are part of. */
export interface MessengerAgent extends Omit<ReceptionAgent, "renders" | "again"> {
  readonly host: AgentHost;
  /** What `getMessengers()` says. Asked at the start of a root agent. */
  messengers(): Messengers | Promise<Messengers>;
  /** The name of a class of children. Default: this agent's own. @throws PerdureError `unknown_agent` */
  classOf(agentClass: HostedAgentClass | undefined): string;
  /** Notes that there is a child, in the transaction under way. */
  admit(className: string, name: string): void;
  /** Where files of messages are kept. */
  media(): MediaMover;
  /** A file of the workspace; undefined: there is none. */
  workspaceFile(path: string): Promise<Uint8Array | null | undefined>;
  /** How the app shows what is attached to answers there; undefined: it does not say. */
  renderer(messenger: string): FileSources["render"];
  /** Due times have changed. */
  changed(): void;
  stopped(): boolean;
  failed(error: unknown): void;
  /** Runs work that belongs to nobody's request or turn. */
  alone<T>(work: () => T): T;
}

/** The method by which agents of one tree ask each other. */
export const MESSENGER_CALL = "messengerCall";
/** The method by which a child is asked for state that it keeps. */
const STATE_CALL = "keptState";

/** A delivery, as apps see it. Times are milliseconds since the epoch. */
export interface Delivery {
  readonly id: string;
  readonly kind: DeliveryKind;
  readonly messenger: string;
  readonly thread: string;
  readonly session: string;
  readonly requestId: string | undefined;
  /** `open`: on its way, or its turn has not ended. `held`: a question that waits for a person, or what waits for its answer. */
  readonly state: DeliveryState;
  /** Its place may show a message twice. */
  readonly maybeTwice: boolean;
  /** Calls in a row that failed, why, and when it is tried again. */
  readonly attempts: number;
  readonly error: string | undefined;
  readonly nextAt: number | undefined;
  /** How many messages it is at the network. */
  readonly parts: number;
  readonly createdAt: number;
  readonly endedAt: number | undefined;
}

/** What is said without a turn. */
export interface NoticeOptions {
  /** The messenger; `web`: the conversation itself, as clients see it. Default: where the turn that runs was asked for, else `web`. */
  readonly channel?: string;
  /** Default: that of the turn that runs, where it is at the same messenger. */
  readonly thread?: string;
  /** Whether it joins the conversation too, so that the model reads it from then on. At `web` it always does. Default false. */
  readonly informModel?: boolean;
  /** What it is, for whoever shows the conversation: `metadata.notice` of the message that joins it. Default `notice`. */
  readonly kind?: "final" | "interim" | "notice" | "command";
  /** Two people, or one and the agent. Default: as it is known of the thread, else true. */
  readonly dm?: boolean;
  /** Says the same thing once, however often it is asked for. */
  readonly key?: string;
}

const DEFAULT_LIMIT = 100;
/** When what waited could not be judged, until that is tried again. */
const AGAIN_MS = 30_000;

/*
 * What comes:   channel ─► front (verifies, knows who it is) ─► reception (stores it with its turn: `accept`)
 * What goes:    turn ends ─► courier (a row per delivery, tries again) ─► speaker (at the root, at the network's pace) ─► channel
 */

/** The messengers of one agent: of a root, with the networks; of a child, with what is to be delivered from it. */
export class AgentMessengers implements Work {
  readonly #agent: MessengerAgent;
  readonly #reception: Reception;
  readonly #courier: Courier;
  readonly #intake: FileIntake;
  readonly #terms = new Map<string, DeliveryTerms>();
  #defined: Messengers = {};
  #defining: Promise<void> | undefined;
  #front: Front | undefined;
  #speaker: Speaker | undefined;
  readonly #releasing = new InOrder();
  #releases = 0;
  /** What could not be judged is judged again then. */
  #releaseAt: number | null = null;

  constructor(agent: MessengerAgent) {
    this.#agent = agent;
    const { host } = agent;
    this.#reception = new Reception({
      chat: agent.chat,
      renders: (messenger) => agent.renderer(messenger) !== undefined,
      authorize: (...asked) => inTime(host.clock, "authorize()", () => agent.authorize(...asked)),
      again: async (...asked) => (await this.#atRoot("again", asked)) as string | undefined,
    });
    const work = {
      changed: () => agent.changed(),
      stopped: () => agent.stopped(),
      failed: (error: unknown) => agent.failed(error),
    };
    this.#intake = new FileIntake({
      ...work,
      chat: agent.chat,
      media: () => agent.media(),
      fetch: async (...wanted) => (await this.#atRoot("fetch", wanted)) as FetchResult,
    });
    this.#courier = new Courier({
      host,
      speak: async (messenger, call) => (await this.#atRoot("speak", [messenger, call])) as SpeakResult,
      terms: (messenger) => this.#termsOf(messenger),
      said: (row, terms) => this.#reception.said(row, terms),
      file: (row, at) => this.#fileOf(row, at),
      ...work,
    });
  }

  get #isRoot(): boolean {
    return this.#agent.host.path.length === 1;
  }

  /** Reads the definitions, once; a child has those of its root. @throws PerdureError `bad_config` */
  define(): Promise<void> {
    this.#defining ??= (async () => {
      if (this.#isRoot) this.#defined = defineMessengers(await this.#agent.messengers());
    })();
    return this.#defining;
  }

  /** Begins to listen; carries on what was left to deliver. @throws PerdureError `bad_config` */
  async started(declares: boolean): Promise<void> {
    if (declares) await this.define();
    if (Object.keys(this.#defined).length > 0) this.#open();
    this.look();
  }

  #open(): void {
    const { host } = this.#agent;
    this.#agent.alone(() => {
      for (const [id, { channel }] of Object.entries(this.#defined)) channel.open?.(this.#roomOf(id));
    });
    this.#speaker = new Speaker(host.clock, (id) => this.#defined[id]?.channel);
    this.#front = new Front(
      {
        host,
        ask: (target, op, payload) => this.#ask(target, op, payload),
        classOf: (agentClass) => this.#agent.classOf(agentClass),
        admit: (className, name) => this.#agent.admit(className, name),
        notice: (messenger, place, text, key) => {
          this.#reception.notice({ messenger, place, text, key, kind: "notice", informModel: false });
          this.#look();
        },
        failed: (error) => this.#agent.failed(error),
      },
      this.#defined,
    );
    for (const [id, { allow }] of Object.entries(this.#defined))
      if (allow === undefined) host.report(openToAll(id), { stage: "getMessengers" });
    this.#front.listen();
  }

  #roomOf(messenger: string): ChannelRoom {
    const { host } = this.#agent;
    return {
      state: (op) => Promise.resolve().then(() => runState(host, messenger, op)),
      stateIn: (agentClass, name) => {
        // Also where no row is to be written: that the host knows the class is found out at once.
        const className = host.classNameOf(agentClass);
        const path: AgentPath = [...host.path, { className, name }];
        return async (op) => {
          host.tx(() => this.#agent.admit(className, name));
          return host.call(path, STATE_CALL, [messenger, op] satisfies [string, StateOp]);
        };
      },
    };
  }

  // Work with a due time

  next(): number | null {
    // Nobody wakes an agent that reads by itself: it wants to go on as soon as the host does.
    if (this.#agent.stopped() && this.#front?.listens === true) return this.#agent.host.clock.now();
    const times = [this.#courier.next(), this.#intake.next(), this.#releaseDue()].filter((at) => at !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  active(): boolean {
    return this.#courier.active() || this.#intake.active() || this.#releases > 0;
  }

  /** What can be said, or judged again, must be so in the next life too. */
  #releaseDue(): number | null {
    if (this.#releases > 0 || !this.#reception.mayRelease) return null;
    return this.#releaseAt ?? this.#agent.host.clock.now();
  }

  runDue(): void {
    this.#courier.runDue();
    this.#intake.runDue();
    const due = this.#releaseDue();
    if (due !== null && due <= this.#agent.host.clock.now()) this.#release();
  }

  halt(reason: unknown): void {
    this.#front?.halt(reason);
    this.#speaker?.halt(reason);
    this.#courier.halt();
    this.#intake.halt();
  }

  /** Nothing new is read; what is being said may come to its end. */
  drain(): void {
    this.#front?.halt(new PerdureError("host_stopped", "The host is stopping."));
  }

  /** A turn has ended, or something was said that is to be delivered. */
  look(): void {
    this.#release();
    if (hasDeliveries(this.#agent.host)) this.#look();
  }

  /** One after the other, in the order in which it was said. Where it cannot be judged now, it waits on. */
  #release(): void {
    const agent = this.#agent;
    const { host } = agent;
    if (host.blank || !hasHeldMessage(host)) return;
    this.#releaseAt = null;
    this.#releases++;
    const releasing = this.#releasing.run(async () => {
      if (!agent.stopped()) await this.#reception.release();
    });
    const released = releasing
      .finally(() => this.#releases--)
      .then(
        () => this.#look(),
        (thrown: unknown) => {
          if (agent.stopped()) return;
          agent.failed(thrown);
          this.#releaseAt = host.clock.now() + AGAIN_MS;
          agent.changed();
        },
      );
    agent.alone(() => void host.keepAwake(released));
  }

  #look(): void {
    this.#agent.alone(() => {
      this.#courier.look();
      this.#intake.look();
    });
  }

  // Ways in

  /** Which messenger's webhook this is. */
  findPath(rest: string): string | undefined {
    return this.#front?.findPath(rest);
  }

  async receive(messenger: string, request: Request, body: Uint8Array): Promise<Response> {
    return (await this.#front?.receive(messenger, request, body)) ?? new Response("Not Found", { status: 404 });
  }

  /** What another agent of the tree asks for. */
  async answer(op: string, payload: unknown): Promise<unknown> {
    switch (op) {
      case "speak": {
        const [messenger, call] = payload as [string, SpeakCall];
        if (this.#speaker === undefined)
          return { ok: false, kind: "refused", error: `There is no messenger "${messenger}" any more.` };
        return this.#speaker.call(messenger, call);
      }
      case "fetch": {
        const [messenger, file, maxBytes] = payload as [string, FileRef, number];
        if (this.#speaker === undefined)
          return { ok: false, kind: "refused", error: `There is no messenger "${messenger}" any more.` };
        return this.#speaker.fetch(messenger, file, maxBytes);
      }
      case "terms": {
        const definition = this.#defined[payload as string];
        return definition && termsOf(definition);
      }
      case "again":
        return this.#front?.again(...(payload as Parameters<Front["again"]>));
      case "may":
        return this.#reception.may(payload as Arrival);
      case "known":
        return this.#reception.isKnown(payload as Arrival);
      case "accept": {
        const taken = await this.#reception.accept(payload as Arrival);
        this.look();
        return taken;
      }
      case "edit":
        return this.#reception.edit(payload as Arrival);
      case "stop":
        return this.#reception.stop(payload as Arrival);
      case "question":
        return this.#reception.question(payload as Asked);
      case "press": {
        const { arrival, may } = payload as { arrival: Arrival; may: boolean };
        const taken = await this.#reception.press(arrival, may);
        this.#look();
        return taken;
      }
      case "notice": {
        const made = this.#reception.notice(payload as Parameters<Reception["notice"]>[0]);
        this.#look();
        return made;
      }
      default:
        throw new PerdureError("bad_input", `There is nothing called "${op}" to ask of a messenger.`);
    }
  }

  // What apps ask for

  /** Whether the root of this agent has a messenger of that name. */
  async has(messenger: string): Promise<boolean> {
    return (await this.#agent.alone(() => this.#termsOf(messenger))) !== undefined;
  }

  context(turnId: string | undefined): MessengerContext | undefined {
    return this.#reception.context(turnId);
  }

  /** Says something without a turn, where the conversation of that place lives. @returns false: it was said before */
  async notice(text: string, options: NoticeOptions, turnId: string | undefined): Promise<boolean> {
    if (typeof text !== "string" || text.trim() === "")
      throw new PerdureError("bad_input", "A notice must be a text that is not empty.");
    const { host } = this.#agent;
    const here = turnId === undefined || host.blank ? undefined : deliveryOfTurn(host, turnId);
    const { channel = here?.messenger ?? WEB, key, kind = "notice", informModel = false } = options;
    const said = { text, kind, ...(key !== undefined && { key }) };
    const session = here === undefined ? {} : { session: here.session };
    if (channel === WEB) {
      const made = this.#reception.notice({ ...said, ...session, messenger: WEB, informModel: true });
      await host.durable();
      return made;
    }
    const isHere = here?.messenger === channel && (options.thread ?? here.thread) === here.thread;
    const thread = options.thread ?? (isHere ? here.thread : undefined);
    if (thread === undefined)
      throw new PerdureError("bad_input", `Say at which \`thread\` of "${channel}" it is to be said.`);
    const known = host.blank || isHere ? undefined : readThread(host, channel, thread);
    const dm = options.dm ?? known?.dm ?? (isHere ? (JSON.parse(here.place) as Place).dm : true);
    const place: Place = { thread, dm };
    if (!(await this.has(channel)))
      throw new PerdureError(
        "not_found",
        `There is no messenger "${channel}". getMessengers() names those that there are.`,
      );
    const notice = { ...said, ...(isHere && session), messenger: channel, place, informModel };
    const made =
      known === undefined ? await this.answer("notice", notice) : await this.#ask(known.target, "notice", notice);
    await host.durable();
    return made === true;
  }

  list({
    state = [],
    limit = DEFAULT_LIMIT,
  }: {
    readonly state?: DeliveryState | readonly DeliveryState[];
    readonly limit?: number;
  }): Delivery[] {
    if (!Number.isInteger(limit) || limit < 1)
      throw new PerdureError("bad_input", "`limit` must be a whole number above 0.");
    const states = typeof state === "string" ? [state] : state;
    for (const one of states)
      if (!["open", "held", "done", "failed"].includes(one))
        throw new PerdureError("bad_input", `A delivery is never "${one}": it is open, held, done or failed.`);
    const { host } = this.#agent;
    if (host.blank) return [];
    return listDeliveryRows(host, states, limit).map((row) => toDelivery(host, row));
  }

  /** Tries a failed delivery again. False: there is none of that id, or it has not failed. */
  retry(id: string): boolean {
    const { host } = this.#agent;
    const seq = seqOf(id);
    const done = !host.blank && host.tx(() => reopenDelivery(host, seq, host.clock.now()));
    if (done) this.#look();
    return done;
  }

  /** Forgets a delivery that has ended. False: there is none of that id, or it is still under way. */
  forget(id: string): boolean {
    const { host } = this.#agent;
    return !host.blank && readDelivery(host, seqOf(id)) !== undefined && host.tx(() => deleteDelivery(host, seqOf(id)));
  }

  /** What is sent for a part of an answer. */
  async #fileOf({ session, answerId, messenger }: DeliveryRow, at: number): Promise<PartFile> {
    const { host } = this.#agent;
    const part = this.#agent
      .chat()
      .transcripts.of(session)
      .get(answerId ?? "")?.parts[at];
    const render = this.#agent.renderer(messenger);
    if (part === undefined) return { kind: "none" };
    return fileOf(part, {
      kept: async (name) => (await filesOf(host).read(name))?.bytes,
      workspace: (path) => this.#agent.workspaceFile(path),
      ...(render !== undefined && { render }),
    });
  }

  // Who is asked

  #ask(target: ThreadTarget, op: string, payload: unknown): Promise<unknown> {
    if (target.kind === "self") return this.answer(op, payload);
    const { className, name } = target;
    const path: AgentPath = [...this.#agent.host.path, { className, name }];
    return this.#agent.host.call(path, MESSENGER_CALL, [op, payload]);
  }

  #atRoot(op: string, payload: unknown): Promise<unknown> {
    const [root] = this.#agent.host.path;
    return this.#isRoot ? this.answer(op, payload) : this.#agent.host.call([root], MESSENGER_CALL, [op, payload]);
  }

  async #termsOf(messenger: string): Promise<DeliveryTerms | undefined> {
    const known = this.#terms.get(messenger);
    if (known !== undefined) return known;
    const terms = (await this.#atRoot("terms", messenger)) as DeliveryTerms | undefined;
    if (terms !== undefined) this.#terms.set(messenger, terms);
    return terms;
  }
}

function seqOf(id: string): number {
  const seq = Number(id);
  return Number.isSafeInteger(seq) ? seq : -1;
}

function toDelivery(host: AgentHost, row: DeliveryRow): Delivery {
  const { kind, messenger, thread, session, state, attempts, createdAt } = row;
  return {
    ...{ id: String(row.seq), kind, messenger, thread, session, state, attempts, createdAt },
    requestId: row.turnId ?? undefined,
    maybeTwice: row.maybeTwice === 1,
    error: row.error ?? undefined,
    nextAt: row.nextAt > 0 ? row.nextAt : undefined,
    parts: partsOf(host, row.seq).filter(({ providerId }) => providerId !== "").length,
    endedAt: row.endedAt ?? undefined,
  };
}

function openToAll(id: string): PerdureError {
  return new PerdureError(
    "bad_config",
    `Everybody who finds the messenger "${id}" may talk to this agent, which costs what its model costs. ` +
      "Name who may with `allow`, or say `allow: () => true`.",
  );
}
