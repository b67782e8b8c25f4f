import { errorText, PerdureError } from "../base/error.ts";
import { InOrderByKey } from "../base/in-order.ts";
import { sleep } from "../base/time.ts";
import { yesOrNo } from "../base/yes-or-no.ts";
import type { AgentHost, HostedAgentClass } from "../port.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { findInbound, insertInbound, KEPT_MS, TRIM_EVERY, trimInbound } from "../store/inbound.ts";
import {
  type Channel,
  ChannelError,
  messageKey,
  type MessengerEvent,
  type Place,
  type Press,
  type Self,
} from "./channel.ts";
import {
  fileTermsOf,
  type MessengerDefinition,
  type Messengers,
  pathOf,
  type QuestionInfo,
  type RespondTo,
} from "./define.ts";
import { galleryKey } from "./file-intake.ts";
import type { Arrival } from "./arrival.ts";
import { isOwnButton, NOTHING_TO_STOP, STOP_DATA, type Taken, TEXT_ANSWER } from "./reception.ts";
import { inTime, isOfRule, NOT_JUDGED, ofRule, Unjudged } from "./rule.ts";
import { sayOnce } from "./words.ts";
import { moveThread, nameOfThread, readThread, type ThreadRow, type ThreadTarget, writeThread } from "./thread.ts";

/** What the front asks of the agent around it. */
interface FrontDeps {
  readonly host: AgentHost;
  /** The agent that holds a conversation: it is asked, and resolves when what it says is durable. */
  ask(
    target: ThreadTarget,
    op: "may" | "known" | "accept" | "edit" | "stop" | "press" | "question",
    payload: unknown,
  ): Promise<unknown>;
  /** The name of a class of children. Default: the agent's own. */
  classOf(agentClass: HostedAgentClass | undefined): string;
  /** Notes that there is such a child, in the transaction under way. */
  admit(className: string, name: string): void;
  /** Says something at a place, once per key. */
  notice(messenger: string, place: Place, text: string, key: string): void;
  failed(error: unknown): void;
}

const CONFLICT_PAUSE_MS = 30_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const HOUR_MS = 60 * 60_000;
const DEFAULT_COALESCE_MS = 600;
const DEFAULT_WAITING = 20;
const DEFAULT_PER_HOUR = 60;
const DEFAULT_RESPOND_TO: readonly RespondTo[] = ["direct-message", "mention"];
const DEFAULT_REFUSED = "Sorry, I may not talk with you.";
const TOO_MUCH = "That is more than I may answer now. Please try again later.";
const MAX_BODY_BYTES = 1024 * 1024;
const FORGED: ReadonlySet<number> = new Set([401, 403]);
const MAX_AUTHORS = 10_000;
const MAX_NAME = 200;
const KIND = /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/;
const STOP = /^\/stop(@\w+)?\s*$/i;
/** What fails again and again in the same words is reported so often. */
const REPORTED_MS = 60_000;
const MAX_REPORTED = 100;

/** What came, and the same with what people are called, which may have to be asked for. */
interface Told {
  readonly event: MessengerEvent;
  readonly whole: () => Promise<MessengerEvent>;
}

/** Who reads at an account, by the host. Whoever comes later, as an agent that somebody has just named, does not. */
const readers = new WeakMap<object, Map<string, Front>>();

/**
 * The root's door to its messengers: judges what comes, finds its conversation and has it stored there. Waits for that only:
 * never for a turn or a delivery.
 */
export class Front {
  readonly #deps: FrontDeps;
  readonly #messengers: Messengers;
  readonly #selves = new Map<string, Promise<Self>>();
  readonly #said = new Map<string, number[]>();
  /** What is said at one place keeps its order; other places do not wait for it. */
  readonly #places = new InOrderByKey<string>();
  readonly #unjudged = new Unjudged<string>();
  readonly #reported = new Map<string, number>();
  readonly #halt = new AbortController();
  #refused = 0;

  constructor(deps: FrontDeps, messengers: Messengers) {
    this.#deps = deps;
    this.#messengers = messengers;
  }

  /** Whether something is read here that nobody would wake the agent for. */
  get listens(): boolean {
    return Object.values(this.#messengers).some(({ listens, channel: { account } }) => {
      const reader = account === undefined ? this : readers.get(this.#deps.host.env)?.get(account);
      return listens && reader === this;
    });
  }

  /** Which messenger a request is for. */
  findPath(rest: string): string | undefined {
    const path = rest.replace(/\/$/, "");
    return Object.entries(this.#messengers).find(([id, definition]) => pathOf(id, definition) === path)?.[0];
  }

  /** Reads what comes, where the messenger does that by itself. Ends with {@link Front.halt}. */
  listen(): void {
    const { host } = this.#deps;
    for (const [id, definition] of Object.entries(this.#messengers))
      if (definition.listens) void host.keepAwake(this.#listen(id, definition.channel));
  }

  halt(reason: unknown): void {
    this.#halt.abort(reason);
  }

  /** Answers the webhook: 200 once stored, 400 if unreadable, 503 if it could not be stored, so that it comes again. */
  async receive(id: string, request: Request, body: Uint8Array): Promise<Response> {
    const channel = this.#messengers[id]?.channel;
    if (channel?.verify === undefined || channel.read === undefined) return new Response("Not Found", { status: 404 });
    if (body.byteLength > MAX_BODY_BYTES) return new Response("Too large", { status: 413 });
    const refusal = await channel.verify(request, body);
    if (refusal !== undefined) return this.#unverified(id, refusal);
    try {
      const read = await channel.read(request, body, (input) => this.take(id, input));
      if ("answer" in read) return FORGED.has(read.answer.status) ? this.#unverified(id, read.answer) : read.answer;
      await this.take(id, read.input);
      // Some networks show what they are answered with.
      return new Response(null);
    } catch (thrown) {
      this.#deps.failed(thrown);
      // It would be the same each time that it came.
      if (!isOfRule(thrown) && (thrown instanceof SyntaxError || PerdureError.is(thrown, "bad_input")))
        return new Response(errorText(thrown), { status: 400 });
      return new Response("Not stored. Please deliver it again.", { status: 503 });
    }
  }

  /** Somebody else delivers, or the secret is not the network's: then nothing ever comes, and nobody would know why. */
  #unverified(messenger: string, answer: Response): Response {
    const { host } = this.#deps;
    const { status } = answer;
    host.emit("messenger:unverified", { messenger, status });
    const words = `A delivery to the webhook of the messenger "${messenger}" was refused (${status}): it is not signed as agreed. If nothing comes from the network, its secret here is another one than there, or the clock of this machine is wrong; if all comes, somebody else tried.`;
    sayOnce(host, `${messenger}: unverified`, words);
    return answer;
  }

  /** Takes what a network tells. Resolves when all of it is stored; rejects when something could not be. */
  async take(id: string, input: unknown): Promise<void> {
    const definition = this.#messengers[id];
    if (definition === undefined) return;
    const { channel } = definition;
    const { signal } = this.#halt;
    const self = await this.#selfOf(id, channel);
    const taken = channel.parse(input, self).map((parsed, i) => {
      const event = tidied(parsed);
      let named: Promise<MessengerEvent> | undefined;
      const name = async () => {
        const input_ = await channel.complete?.(input, signal);
        return input_ === undefined ? event : tidied(channel.parse(input_, self)[i] ?? parsed);
      };
      return this.#places.run(`${id}\n${event.thread}`, async () => {
        signal.throwIfAborted();
        await this.#judge(id, definition, { event, whole: () => (named ??= name()) });
      });
    });
    for (const end of await Promise.allSettled(taken)) if (end.status === "rejected") throw end.reason;
  }

  /** What a rule of the app cannot judge is not stored, and comes again; if it never can, that is a refusal. */
  async #judge(id: string, definition: MessengerDefinition, told: Told): Promise<void> {
    const { event } = told;
    const key = `${id}\n${event.keys.join("\n")}`;
    try {
      await this.#handle(id, definition, told);
    } catch (thrown) {
      if (!isOfRule(thrown) || !this.#unjudged.isOver(key, this.#deps.host.clock.now())) throw thrown;
      const { press } = event;
      this.#refuse(id, definition, event, "not judged", press === undefined ? NOT_JUDGED : "");
      if (press !== undefined) this.#tell(definition, press, NOT_JUDGED);
    }
    this.#unjudged.forget(key);
  }

  #selfOf(id: string, channel: Channel): Promise<Self> {
    let self = this.#selves.get(id);
    if (self === undefined) {
      self = channel.self(this.#halt.signal);
      this.#selves.set(id, self);
      self.catch(() => this.#selves.delete(id));
    }
    return self;
  }

  async #listen(id: string, channel: Channel): Promise<void> {
    const { host } = this.#deps;
    const { signal } = this.#halt;
    if (!this.#claim(channel)) {
      const error = `Another agent of this host reads at "${id}" with the same token, so this one does not. Return messengers from getMessengers() only where \`this.name\` is the one that is meant.`;
      host.emit("messenger:conflict", { messenger: id, error });
      return this.#deps.failed(new ChannelError("conflict", error));
    }
    const cell = `messenger:cursor:${id}`;
    const cursor = {
      read: () => (host.blank ? undefined : readCell(host, cell)),
      write: (value: string) => host.tx(() => writeCell(host, cell, value), "commit"),
    };
    // Whoever reads goes on: what could not be stored comes again.
    const accept = async (input: unknown): Promise<void> => {
      try {
        await this.take(id, input);
      } catch (thrown) {
        if (!signal.aborted) this.#report(thrown);
        throw thrown;
      }
    };
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const began = host.clock.now();
      try {
        return await channel.listen?.(accept, cursor, signal);
      } catch (thrown) {
        if (signal.aborted) return;
        const isConflict = thrown instanceof ChannelError && thrown.kind === "conflict";
        const error = errorText(thrown);
        host.emit(isConflict ? "messenger:conflict" : "messenger:failed", { messenger: id, error });
        this.#deps.failed(thrown);
        // One that has worked for a while begins anew.
        if (host.clock.now() - began > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS;
        const wait = isConflict ? CONFLICT_PAUSE_MS : pause;
        await sleep(host.clock, wait, signal).catch(() => undefined);
      }
    }
  }

  #report(thrown: unknown): void {
    const now = this.#deps.host.clock.now();
    const words = errorText(thrown);
    if (now - (this.#reported.get(words) ?? Number.NEGATIVE_INFINITY) < REPORTED_MS) return;
    if (this.#reported.size >= MAX_REPORTED) this.#reported.clear();
    this.#reported.set(words, now);
    this.#deps.failed(thrown);
  }

  #claim({ account }: Channel): boolean {
    const { env } = this.#deps.host;
    if (account === undefined) return true;
    const ours = readers.get(env) ?? new Map<string, Front>();
    readers.set(env, ours);
    const other = ours.get(account);
    if (other !== undefined && other !== this && !other.#halt.signal.aborted) return false;
    ours.set(account, this);
    return true;
  }

  async #handle(id: string, definition: MessengerDefinition, told: Told): Promise<void> {
    const { host } = this.#deps;
    const { event } = told;
    const { movedTo } = event;
    if (movedTo !== undefined) return host.tx(() => moveThread(host, id, event.thread, movedTo));
    if (event.author.isBot && definition.bots !== true) return;
    if (!host.blank && findInbound(host, id, event.keys)?.kind === "refused") return;
    const known = host.blank ? undefined : readThread(host, id, event.thread);
    const { press } = event;
    if (press !== undefined && !isOwnButton(press.data) && definition.respondTo?.includes("action") === true) {
      const saying = (one: MessengerEvent) => ({ ...one, text: `[button: ${press.data}]` });
      await this.#accept(
        id,
        definition,
        { event: saying(event), whole: async () => saying(await told.whole()) },
        known,
      );
      return this.#tell(definition, press, "");
    }
    if (event.kind === "press") return void (await this.#press(id, definition, told, press, known));
    // An answer in words; what answers no question is a message like any other.
    const words = event.text.replace(/^@\w+\s+/, "").trim();
    const answer = event.kind === "message" && TEXT_ANSWER.test(words) ? { id: "", data: words } : undefined;
    if (answer !== undefined && (await this.#press(id, definition, told, answer, known))) return;
    const isStop = event.kind === "message" && STOP.test(event.text);
    if (event.kind === "edit" || isStop) {
      // Of what was never answered here there is nothing to change or to stop, and nothing for who may not talk.
      if (known === undefined) return;
      const judged = await this.#judged(id, definition, told);
      if (judged.may)
        await this.#deps.ask(known.target, isStop ? "stop" : "edit", arrivalOf(id, definition, judged.event, known));
      return;
    }
    if (responds(definition, event, known) || this.#isPiece(id, event)) await this.#accept(id, definition, told, known);
  }

  async #accept(id: string, definition: MessengerDefinition, told: Told, known: ThreadRow | undefined): Promise<void> {
    const { may, event } = await this.#judged(id, definition, told);
    if (!may) return this.#refuse(id, definition, event, "not allowed");
    const author = `${definition.channel.provider}:${event.author.id}`;
    const isMore = this.#isPiece(id, event);
    if (!isMore && this.#isTooMuch(definition, author)) {
      // What was taken when there was room for it is not refused when it comes again.
      const isKnown = known && (await this.#deps.ask(known.target, "known", arrivalOf(id, definition, event, known)));
      return isKnown === true ? undefined : this.#refuse(id, definition, event, "rate", TOO_MUCH);
    }
    // From now on, so that those that come at once are counted too; what is known already counts for nothing.
    const at = isMore ? undefined : this.#count(author);
    const taken = await this.#store(id, definition, event, known, isMore).catch((thrown: unknown) => {
      this.#uncount(author, at);
      throw thrown;
    });
    if (!taken.accepted) this.#uncount(author, at);
    if (taken.refused !== undefined) this.#tellOnce(id, event, taken.refused, taken.refused);
  }

  async #store(
    id: string,
    definition: MessengerDefinition,
    event: MessengerEvent,
    known: ThreadRow | undefined,
    isMore: boolean,
  ): Promise<Taken> {
    const row = known ?? (await this.#newThread(id, definition, event));
    const { target } = row;
    const arrival = arrivalOf(id, definition, event, row);
    const subscribed = known?.subscribed === true || (event.mentioned && definition.subscribeOnMention !== false);
    const isNew = known?.subscribed !== subscribed;
    if (isNew) {
      // It is asked before anything is stored: no child is made, and no place subscribed, for whom it does not take.
      const refused = (await this.#deps.ask(target, "may", arrival)) as string | undefined;
      if (refused !== undefined) {
        this.#refuse(id, definition, event, refused, refused);
        return { accepted: false };
      }
    }
    if (isNew) this.#note(id, event, { ...row, subscribed }, known);
    if (event.group !== undefined && !isMore) this.#begin(id, event);
    return (await this.#deps.ask(target, "accept", isNew ? { ...arrival, judged: true } : arrival)) as Taken;
  }

  /** Of a gallery only one piece has the words: the others are meant by them. */
  #isPiece(id: string, event: MessengerEvent): boolean {
    const { host } = this.#deps;
    if (event.group === undefined || host.blank) return false;
    return findInbound(host, id, [galleryKey(event, "door")]) !== undefined;
  }

  #begin(id: string, event: MessengerEvent): void {
    const { host } = this.#deps;
    const at = host.clock.now();
    host.tx(() => insertInbound(host, id, [galleryKey(event, "door")], { kind: "joined", turnId: null, at }));
  }

  async #press(
    id: string,
    definition: MessengerDefinition,
    told: Told,
    press: Press | undefined,
    known: ThreadRow | undefined,
  ): Promise<boolean> {
    const { thread } = told.event;
    if (press === undefined) return false;
    const isWords = press.id === "";
    let text = "This question is not open any more.";
    if (known !== undefined) {
      const asked = { messenger: id, thread, data: press.data };
      const isStop = press.data === STOP_DATA;
      const question = isStop
        ? undefined
        : ((await this.#deps.ask(known.target, "question", asked)) as QuestionInfo | undefined);
      if (question === undefined && isWords) return false;
      const { may: mayTalk, event } = await this.#judged(id, definition, told);
      const arrival = arrivalOf(id, definition, { ...event, press }, known);
      if (isStop) {
        // Who may not talk is answered as where there is nothing to stop.
        const taken = mayTalk ? ((await this.#deps.ask(known.target, "stop", arrival)) as Taken) : undefined;
        this.#tell(definition, press, taken === undefined ? NOTHING_TO_STOP : (taken.told ?? ""));
        return true;
      }
      const may = mayTalk && question !== undefined && (await this.#mayAnswer(id, definition, event, question));
      const taken = (await this.#deps.ask(known.target, "press", { arrival, may })) as Taken;
      text = taken.told ?? text;
      if (isWords && taken.refused !== undefined) {
        this.#tellOnce(id, event, text, `answer:${thread}:${text}`);
        return true;
      }
    } else if (isWords) return false;
    if (isWords) {
      this.#deps.notice(id, { thread, dm: told.event.dm }, text, `answer:${messageKey(told.event)}`);
      return true;
    }
    this.#tell(definition, press, text);
    return true;
  }

  async #mayAnswer(
    id: string,
    { approvers, channel }: MessengerDefinition,
    event: MessengerEvent,
    question: QuestionInfo,
  ): Promise<boolean> {
    if (approvers === undefined) return event.dm && question.askedBy === `${channel.provider}:${event.author.id}`;
    const name = `approvers() of "${id}"`;
    return inTime(this.#deps.host.clock, name, async () => yesOrNo(await approvers(event, question), name));
  }

  /** The press is stored. Nobody waits until whoever pressed was told, and that nobody could be told is no reason to have it again. */
  #tell({ channel }: MessengerDefinition, press: Press, told: string): void {
    const telling = channel.acknowledge?.(press, told, this.#halt.signal).catch((thrown: unknown) => {
      const isLate = thrown instanceof ChannelError && (thrown.kind === "gone" || thrown.kind === "refused");
      if (!isLate && !this.#halt.signal.aborted) this.#deps.failed(thrown);
    });
    if (telling !== undefined) void this.#deps.host.keepAwake(telling);
  }

  /** Whether somebody may talk. Of those whom a list does not name, nothing is asked of the network. */
  async #judged(
    id: string,
    { allow }: MessengerDefinition,
    { event, whole }: Told,
  ): Promise<{ readonly may: boolean; readonly event: MessengerEvent }> {
    if (typeof allow === "object" && !allow.includes(event.author.id)) return { may: false, event };
    const named = await whole();
    if (typeof allow !== "function") return { may: true, event: named };
    const name = `allow() of "${id}"`;
    const may = await inTime(this.#deps.host.clock, name, async () => yesOrNo(await allow(named), name));
    return { may, event: named };
  }

  /** What has waited is judged again, as things are now. @returns why not */
  async again(id: string, event: MessengerEvent): Promise<string | undefined> {
    const definition = this.#messengers[id];
    if (definition === undefined) {
      const reason = `There is no messenger "${id}" any more.`;
      const { thread, author } = event;
      this.#deps.host.emit("messenger:refused", { messenger: id, thread, by: author.id, reason });
      return reason;
    }
    const { may } = await this.#judged(id, definition, { event, whole: () => Promise.resolve(event) });
    if (may) return undefined;
    this.#sayRefused(id, definition, event, "not allowed");
    return "not allowed";
  }

  /** That it came is stored, so that it is known when it comes again; no turn, and no child for strangers. */
  #refuse(id: string, definition: MessengerDefinition, event: MessengerEvent, reason: string, text?: string): void {
    const { host } = this.#deps;
    if (findInbound(host, id, event.keys) !== undefined) return;
    const at = host.clock.now();
    host.tx(() => {
      insertInbound(host, id, event.keys, { kind: "refused", turnId: null, at });
      if (++this.#refused % TRIM_EVERY === 1) trimInbound(host, at - KEPT_MS);
    });
    this.#sayRefused(id, definition, event, reason, text);
  }

  #sayRefused(
    id: string,
    { refusedText = DEFAULT_REFUSED, channel }: MessengerDefinition,
    event: MessengerEvent,
    reason: string,
    text = refusedText,
  ): void {
    const by = `${channel.provider}:${event.author.id}`;
    this.#deps.host.emit("messenger:refused", { messenger: id, thread: event.thread, by, reason });
    this.#tellOnce(id, event, text, reason);
  }

  #tellOnce(id: string, event: MessengerEvent, text: string, reason: string): void {
    if (text === "") return;
    const hour = Math.floor(this.#deps.host.clock.now() / HOUR_MS);
    const place = { thread: event.thread, dm: event.dm };
    // Wherever it was said: who may not talk could begin any number of threads.
    this.#deps.notice(id, place, text, `${reason}:${event.author.id}:${hour}`);
  }

  #recent(author: string): number[] {
    const now = this.#deps.host.clock.now();
    const recent = (this.#said.get(author) ?? []).filter((at) => at > now - HOUR_MS && at <= now);
    if (recent.length === 0) this.#said.delete(author);
    else this.#said.set(author, recent);
    return recent;
  }

  #isTooMuch({ limits }: MessengerDefinition, author: string): boolean {
    return this.#recent(author).length >= (limits?.perHour ?? DEFAULT_PER_HOUR);
  }

  /** In memory: after a restart everybody begins anew. @returns when it was */
  #count(author: string): number {
    const now = this.#deps.host.clock.now();
    const recent = this.#recent(author);
    this.#said.delete(author);
    this.#said.set(author, [...recent, now]);
    if (this.#said.size > MAX_AUTHORS)
      for (const oldest of [...this.#said.keys()].slice(0, 1)) this.#said.delete(oldest);
    return now;
  }

  #uncount(author: string, at: number | undefined): void {
    const recent = this.#recent(author);
    const one = at === undefined ? -1 : recent.indexOf(at);
    if (one >= 0) this.#said.set(author, recent.toSpliced(one, 1));
  }

  /** What a place will be, once something there is taken. */
  async #newThread(id: string, { conversation = "thread" }: MessengerDefinition, event: MessengerEvent) {
    const name = await nameOfThread(id, event.thread);
    const target = ofRule(() => this.#target(conversation, event, name));
    return { target, subscribed: false, dm: event.dm } satisfies ThreadRow;
  }

  /** Stores what is now known of a place, with its child. */
  #note(id: string, { thread, dm, title }: MessengerEvent, row: ThreadRow, known: ThreadRow | undefined): void {
    const { host } = this.#deps;
    const { target, subscribed } = row;
    host.tx(() => {
      if (known === undefined && target.kind === "child") this.#deps.admit(target.className, target.name);
      writeThread(host, id, thread, { target, subscribed, dm, ...(title !== undefined && { title }) });
    });
  }

  #target(
    conversation: NonNullable<MessengerDefinition["conversation"]>,
    event: MessengerEvent,
    name: string,
  ): ThreadTarget {
    if (conversation === "self") return { kind: "self", bound: false };
    if (conversation === "session") return { kind: "self", session: name, bound: true };
    if (conversation === "thread") return { kind: "child", className: this.#deps.classOf(undefined), name };
    const said = conversation(event);
    if (said.target === "subagent")
      return { kind: "child", className: this.#deps.classOf(said.agentClass), name: said.name };
    if ((said.target as unknown) !== "self")
      throw new PerdureError("bad_config", 'conversation() must return a `target` of "self" or "subagent".');
    return { kind: "self", bound: false, ...(said.session !== undefined && { session: said.session }) };
  }
}

/** Names are chosen by people: they are one line, of a length that names have. What is no kind of a file is of no known kind. */
function tidied(event: MessengerEvent): MessengerEvent {
  const { author, files } = event;
  const tidy = (name: string) => name.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ").slice(0, MAX_NAME);
  const kindOf = (mediaType: string) => {
    const kind = mediaType.split(";")[0]?.trim() ?? "";
    return KIND.test(kind) ? kind : "application/octet-stream";
  };
  return {
    ...event,
    author: { ...author, name: tidy(author.name) },
    files: files.map((file) => ({ ...file, name: tidy(file.name), mediaType: kindOf(file.mediaType) })),
  };
}

function responds(
  { respondTo = DEFAULT_RESPOND_TO }: MessengerDefinition,
  { dm, mentioned }: MessengerEvent,
  known: ThreadRow | undefined,
): boolean {
  if (dm) return respondTo.includes("direct-message");
  if (mentioned && respondTo.includes("mention")) return true;
  return known?.subscribed === true && respondTo.includes("subscribed-thread");
}

function arrivalOf(
  messenger: string,
  definition: MessengerDefinition,
  event: MessengerEvent,
  { target }: ThreadRow,
): Arrival {
  const { channel, coalesceMs = DEFAULT_COALESCE_MS, limits, channelSpeakerLabel } = definition;
  const files = fileTermsOf(definition);
  const label = event.dm ? "" : ofRule(() => channelSpeakerLabel?.(event.author) ?? `${event.author.name}: `);
  return {
    ...{ messenger, provider: channel.provider, label, coalesceMs, maxWaiting: limits?.waiting ?? DEFAULT_WAITING },
    event: event.kind === "message" ? { ...event, keys: [...new Set([...event.keys, messageKey(event)])] } : event,
    bound: target.kind === "child" || target.bound,
    ...(files !== undefined && { files }),
    ...(target.kind === "self" && target.session !== undefined && { session: target.session }),
  };
}
