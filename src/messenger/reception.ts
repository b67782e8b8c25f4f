import type { Identity } from "../base/identity.ts";
import { newId } from "../base/id.ts";
import { isRecord, tryParseJson } from "../base/json.ts";
import type { UIMessage } from "../message/types.ts";
import { readCell, writeCell } from "../store/cell.ts";
import {
  boundKey,
  type DeliveryRow,
  deliveryOfTurn,
  dropHeldMessage,
  editHeldMessage,
  heldMessages,
  insertDelivery,
  openQuestionsAt,
  placeDelivery,
  readDelivery,
  setDeliveryFiles,
  unsettledDeliveries,
} from "../store/delivery.ts";
import { findInbound, forgetInbound, insertInbound, KEPT_MS, TRIM_EVERY, trimInbound } from "../store/inbound.ts";
import { insertSession } from "../store/session.ts";
import { readToolCall } from "../store/tool-call.ts";
import { openTurns, postponeTurn, readTurn } from "../store/turn.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import { accept, persist } from "../turn/intake/accept.ts";
import { isWaiting } from "../turn/intake/inbox.ts";
import { judgeAnswer } from "../turn/intake/judge-answer.ts";
import { answerTool } from "../turn/intake/tool-answers.ts";
import {
  type Arrival,
  type MessengerContext,
  waitOf,
  partsOf,
  wantedIn,
  filesJson,
  isWords,
  subjectOf,
  messengerContextOf,
  identityOf,
  contextOf,
} from "./arrival.ts";
import { endText, filesAt, partialText } from "./answer-text.ts";
import { type Button, type MessengerEvent, messageKey, type Place } from "./channel.ts";
import type { DeliveryTerms, Said } from "./courier.ts";
import type { QuestionInfo } from "./define.ts";
import { aboutOf, codeOf, decisionOf, questionText } from "./question.ts";
import { isOfRule, NOT_JUDGED, Unjudged } from "./rule.ts";
import { galleryKey, HELD_MS, wantedOf, whyLeft } from "./file-intake.ts";

/** What is asked of the agent that holds the conversation. */
export interface ReceptionAgent {
  readonly chat: () => Conversations;
  /** Whether the app says how things that are attached to answers look at a messenger. */
  renders(messenger: string): boolean;
  /** Whether the messenger's own rules let somebody say something that has waited; a text says why not, and they were told. */
  again(messenger: string, event: MessengerEvent): Promise<string | undefined>;
  /** Whether somebody there may do this; a text says why not. */
  authorize(
    identity: Identity,
    act: ReceptionAct,
    on: { readonly session: string; readonly toolCallId?: string },
  ): Promise<string | undefined>;
}

/** What people at a messenger ask for; each is an act like any other. */
type ReceptionAct = "chat.submit" | "chat.cancel" | "tool.approve";

/** What somebody answers: the data of a button, or words. */
export interface Asked {
  readonly messenger: string;
  readonly thread: string;
  readonly data: string;
}

/** What became of something that came. */
export interface Taken {
  /** False: it was known already, and nothing has happened now. */
  readonly accepted: boolean;
  readonly turnId?: string;
  /** Why it was not let in. That is stored, and no turn is. */
  readonly refused?: string;
  /** What whoever pressed a button is told. */
  readonly told?: string;
}

/** What is told to who presses a stop button where nothing of theirs runs. */
export const NOTHING_TO_STOP = "There is nothing of yours to stop.";
/** What the button holds that stops an answer. */
export const STOP_DATA = "s1";
/** Whether a button is one of ours. */
export const isOwnButton = (data: string): boolean => data === STOP_DATA || OWN_BUTTON.test(data);
const OWN_BUTTON = /^p1([yn])([0-9a-z]+)\.([0-9a-f]+)$/;
/** An answer to a question where there are no buttons. */
export const TEXT_ANSWER = /^(yes|no)\s+([0-9a-z]{4})[.!]?$/i;
const HOUR_MS = 60 * 60_000;
/**
 * Where a conversation is held: stores what came from a messenger in one commit with its effects, and knows what to show there.
 * Once it resolves, the network may be told.
 */
export class Reception {
  readonly #agent: ReceptionAgent;
  readonly #unjudged = new Unjudged<number>();
  #taken = 0;

  constructor(agent: ReceptionAgent) {
    this.#agent = agent;
  }

  /** Whether somebody may say something here; a text says why not. Stores nothing: there may be no need for this agent. */
  may(arrival: Arrival): Promise<string | undefined> {
    const session = arrival.session ?? this.#agent.chat().transcripts.current;
    return this.#agent.authorize(identityOf(arrival), "chat.submit", { session });
  }

  /** Whether it was taken, or refused, before. */
  isKnown({ messenger, event }: Arrival): boolean {
    const { host } = this.#agent.chat();
    return !host.blank && findInbound(host, messenger, event.keys) !== undefined;
  }

  /** Takes a message: its name, its turn and its delivery are one commit. */
  async accept(arrival: Arrival): Promise<Taken> {
    const { messenger, event } = arrival;
    const chat = this.#agent.chat();
    const { host } = chat;
    if (this.isKnown(arrival)) return { accepted: false };
    const session = arrival.session ?? chat.transcripts.current;
    const identity = identityOf(arrival);
    const refused =
      (arrival.judged === true ? undefined : await this.may(arrival)) ??
      (this.#waitingOf(arrival, identity.id) >= arrival.maxWaiting ? "Too much waits already." : undefined);
    // Somebody else may have brought it meanwhile.
    if (this.isKnown(arrival)) return { accepted: false };
    const at = host.clock.now();
    if (refused !== undefined) {
      host.tx(() => insertInbound(host, messenger, event.keys, { kind: "refused", turnId: null, at }));
      host.emit("messenger:refused", { messenger, thread: event.thread, by: identity.id, reason: refused });
      return { accepted: true, refused };
    }
    return chat.commit(() => {
      if (arrival.session !== undefined)
        insertSession(host, { id: session, ...(event.title !== undefined && { name: event.title }) }, at);
      this.#bind(arrival, session);
      if (++this.#taken % TRIM_EVERY === 1) trimInbound(host, at - KEPT_MS);
      if (this.#mustWait(arrival, session)) {
        this.#hold(arrival, session, at);
        return { accepted: true };
      }
      return { accepted: true, turnId: this.#join(arrival, session) ?? this.#ask(arrival, session, identity) };
    });
  }

  /**
   * What waited for the answer to a question is said now, at each place in its order, once what follows from that answer is over,
   * and by who may still say it. @throws what hinders judging: it waits on, with what was said after it there
   */
  async release(): Promise<void> {
    const { host } = this.#agent.chat();
    const places = Map.groupBy(host.blank ? [] : heldMessages(host), ({ messenger, thread, session }) =>
      [messenger, thread, session].join("\n"),
    );
    const ends = await Promise.allSettled([...places.values()].map((rows) => this.#releaseAt(rows)));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async #releaseAt(rows: readonly DeliveryRow[]): Promise<void> {
    const chat = this.#agent.chat();
    const { host } = chat;
    for (const { seq } of rows) {
      const before = this.#releasable(readDelivery(host, seq));
      if (before === undefined) continue;
      const { messenger } = before.arrival;
      const refused = await this.#whyNotAgain(seq, before.arrival);
      // Meanwhile it may have been taken back, or changed, or something is asked again.
      const now = this.#releasable(readDelivery(host, seq));
      if (now === undefined) continue;
      const { arrival, session } = now;
      chat.commit(() => {
        dropHeldMessage(host, seq);
        forgetInbound(host, messenger, arrival.event.keys);
        if (refused === undefined)
          return this.#join(arrival, session) ?? this.#ask(arrival, session, identityOf(arrival));
        const at = host.clock.now();
        return insertInbound(host, messenger, arrival.event.keys, { kind: "refused", turnId: null, at });
      });
      this.#unjudged.forget(seq);
      if (refused?.words !== undefined) this.#tellRefused(arrival, refused.reason, refused.words);
    }
  }

  /** Why what has waited is not let in any more. Without `words`, whoever said it was told. */
  async #whyNotAgain(
    seq: number,
    arrival: Arrival,
  ): Promise<{ readonly reason: string; readonly words?: string } | undefined> {
    try {
      const words = await this.may(arrival);
      if (words !== undefined) return { reason: words, words };
      const reason = await this.#agent.again(arrival.messenger, arrival.event);
      return reason === undefined ? undefined : { reason };
    } catch (thrown) {
      const { clock } = this.#agent.chat().host;
      if (!isOfRule(thrown) || !this.#unjudged.isOver(seq, clock.now())) throw thrown;
      return { reason: "not judged", words: NOT_JUDGED };
    }
  }

  /** Whether something that waited can be said, or judged again. */
  get mayRelease(): boolean {
    const { host } = this.#agent.chat();
    return !host.blank && heldMessages(host).some((row) => this.#releasable(row) !== undefined);
  }

  #releasable(row: DeliveryRow | undefined): { readonly arrival: Arrival; readonly session: string } | undefined {
    const { host } = this.#agent.chat();
    const arrival = row?.state === "held" ? tryParseJson(row.body ?? "") : undefined;
    if (row === undefined || !isRecord(arrival)) return undefined;
    const found = { arrival: arrival as unknown as Arrival, session: row.session };
    const goesOn = openTurns(host).some(
      (turn) => turn.session === row.session && (turn.status === "held" || turn.continuation === 1),
    );
    return goesOn || this.#isAsking(found.arrival, row.session) ? undefined : found;
  }

  #tellRefused(arrival: Arrival, reason: string, text: string): void {
    const { host } = this.#agent.chat();
    const { messenger, event } = arrival;
    const { thread, dm, author } = event;
    host.emit("messenger:refused", { messenger, thread, by: subjectOf(arrival), reason });
    const key = `${reason}:${author.id}:${Math.floor(host.clock.now() / HOUR_MS)}`;
    this.notice({ messenger, place: { thread, dm }, text, key, kind: "notice", informModel: false });
  }

  /** Where several talk, what others say does not end a question to one of them; who was asked may say something else instead. */
  #mustWait(arrival: Arrival, session: string): boolean {
    const { messenger, event } = arrival;
    const { host } = this.#agent.chat();
    if (event.dm) return false;
    if (openQuestionsAt(host, messenger, event.thread).length > 0) return this.#isAsking(arrival, session);
    // What waited is about to be said, and was said before.
    const isHere = (row: DeliveryRow) =>
      row.messenger === messenger && row.thread === event.thread && row.session === session;
    return heldMessages(host).some(isHere);
  }

  #isAsking(arrival: Arrival, session: string): boolean {
    const { messenger, event } = arrival;
    const { host } = this.#agent.chat();
    const isOthers = (row: DeliveryRow) => {
      const asked = contextOf(row)?.subject;
      return asked !== undefined && asked !== subjectOf(arrival) && row.session === session && row.state !== "failed";
    };
    return openQuestionsAt(host, messenger, event.thread).some(isOthers);
  }

  #hold(arrival: Arrival, session: string, createdAt: number): void {
    const { messenger, event } = arrival;
    const { host } = this.#agent.chat();
    const { thread, dm } = event;
    insertInbound(host, messenger, event.keys, { kind: "waits", turnId: null, at: createdAt });
    const row = { kind: "answer", messenger, thread, session, createdAt, messageId: newId("msg") } as const;
    const place = JSON.stringify({ thread, dm } satisfies Place);
    const context = JSON.stringify(messengerContextOf(arrival));
    insertDelivery(host, { ...row, place, context, body: JSON.stringify(arrival) }, "held");
  }

  /** A message says something else now: what waits is changed, what has begun is not. */
  edit(arrival: Arrival): Taken {
    const { messenger, event, label } = arrival;
    const subject = subjectOf(arrival);
    const chat = this.#agent.chat();
    const { host } = chat;
    if (findInbound(host, messenger, event.keys) !== undefined) return { accepted: false };
    const found = findInbound(host, messenger, [messageKey(event)]);
    const turnId = found?.turnId ?? "";
    const row = deliveryOfTurn(host, turnId);
    const turn = readTurn(host, turnId);
    const message = row && chat.transcripts.of(row.session).get(row.messageId ?? "");
    const at = host.clock.now();
    chat.commit(() => {
      insertInbound(host, messenger, event.keys, { kind: "edit", turnId: found?.turnId ?? null, at });
      for (const { seq, body } of found?.kind === "waits" ? heldMessages(host) : []) {
        const held = tryParseJson(body ?? "") as Arrival;
        const isIt = held.messenger === messenger && messageKey(held.event) === messageKey(event);
        if (isIt && subjectOf(held) === subject)
          editHeldMessage(host, seq, JSON.stringify({ ...held, event: { ...held.event, text: event.text } }));
      }
      const [first, ...more] = message?.parts ?? [];
      if (turn === undefined || row === undefined || message === undefined || !isWaiting(turn)) return;
      // Nobody changes what somebody else said.
      if (contextOf(row)?.subject !== subject) return;
      // Of several that are one, nobody can say any more which words are meant.
      if (first === undefined || !isWords(first) || more.some(isWords)) return;
      const text = `${label}${event.text}`.trim();
      persist(chat, [{ ...message, parts: [{ type: "text", text }, ...more] }], { session: row.session });
    });
    return { accepted: true };
  }

  /** Stops what runs or waits for this place: for everybody where nobody else is, else what the author asked for. */
  async stop(arrival: Arrival): Promise<Taken> {
    const { messenger, event } = arrival;
    const chat = this.#agent.chat();
    const { host } = chat;
    if (findInbound(host, messenger, event.keys) !== undefined) return { accepted: false };
    const identity = identityOf(arrival);
    const session = arrival.session ?? chat.transcripts.current;
    const refused = await this.#agent.authorize(identity, "chat.cancel", { session });
    const at = host.clock.now();
    const open = unsettledDeliveries(host, messenger, event.thread).filter(
      (row) => event.dm || contextOf(row)?.subject === identity.id,
    );
    chat.commit(() => {
      const kind = refused === undefined ? "stop" : "refused";
      insertInbound(host, messenger, event.keys, { kind, turnId: open[0]?.turnId ?? null, at });
      for (const { seq, turnId } of refused === undefined ? open : []) {
        if (turnId === null) dropHeldMessage(host, seq);
        else chat.cancel(turnId);
      }
    });
    const told = refused ?? (open.length === 0 ? NOTHING_TO_STOP : "Stopped.");
    return { accepted: true, told, ...(refused !== undefined && { refused }) };
  }

  /** What a button, or an answer in words, is about; undefined: it is none of ours, or too old. */
  question(asked: Asked): QuestionInfo | undefined {
    const found = this.#findQuestion(asked);
    if (found === undefined) return undefined;
    const { row, call } = found;
    const askedBy = contextOf(row)?.subject;
    const { tool, input } = aboutOf(call);
    return {
      ...{ toolName: tool, input },
      ...(call.summary !== null && { summary: call.summary }),
      ...(askedBy !== undefined && { askedBy }),
    };
  }

  /** Takes a press: that it came, the answer and the turn that follows are one commit. @param may the app lets this person */
  async press(arrival: Arrival, may: boolean): Promise<Taken> {
    const { messenger, event } = arrival;
    const chat = this.#agent.chat();
    const { host } = chat;
    const found = this.#findQuestion({ messenger, thread: event.thread, data: event.press?.data ?? "" });
    if (findInbound(host, messenger, event.keys) !== undefined)
      return { accepted: false, ...(found !== undefined && { told: decisionOf(found.call) }) };
    const at = host.clock.now();
    const note = (kind: "press" | "refused") => insertInbound(host, messenger, event.keys, { kind, turnId: null, at });
    const refuse = (told: string): Taken => {
      host.tx(() => note("refused"));
      return { accepted: true, refused: told, told };
    };
    if (found === undefined) return refuse("This question is not open any more.");
    const { row, call, approved } = found;
    if (call.status !== "asked") return refuse(decisionOf(call));
    if (!may) return refuse("You may not answer this. It still waits for somebody who may.");
    const identity = identityOf(arrival);
    const { toolCallId } = call;
    const { session } = row;
    const refused = await this.#agent.authorize(identity, "tool.approve", { session, toolCallId });
    if (refused !== undefined) return refuse(refused);
    const judged = await judgeAnswer(chat, {
      ...{ toolCallId, session, identity, autoContinue: true, overHttp: true },
      ...{ answer: { kind: "approval", approved }, about: { messageId: call.messageId } },
      ...(row.digest !== null && { digest: row.digest }),
    });
    if ("refusal" in judged) return refuse(judged.refusal.reason);
    return chat.commit(() => {
      const known = findInbound(host, messenger, event.keys) !== undefined;
      note("press");
      if (!known) answerTool(chat, judged.answer, undefined);
      const now = readToolCall(host, call.messageId, toolCallId);
      return { accepted: !known, told: decisionOf(now ?? call) };
    });
  }

  /** Stores a text that is to be said there, once per key. Without a place it joins the conversation alone. @returns false: it was said before */
  notice(notice: {
    readonly messenger: string;
    readonly place?: Place;
    readonly text: string;
    readonly key?: string;
    readonly session?: string;
    readonly kind: string;
    readonly informModel: boolean;
  }): boolean {
    const chat = this.#agent.chat();
    const { host } = chat;
    const { messenger, place, text, key, session = chat.transcripts.current, informModel } = notice;
    const keys = key === undefined ? [] : [`notice:${key}`];
    const createdAt = host.clock.now();
    return chat.commit(() => {
      if (findInbound(host, messenger, keys) !== undefined) return false;
      insertInbound(host, messenger, keys, { kind: "notice", turnId: null, at: createdAt });
      if (place !== undefined) {
        const where = { messenger, thread: place.thread, place: JSON.stringify(place), session };
        insertDelivery(host, { kind: "notice", ...where, body: text, createdAt });
      }
      if (informModel) {
        const said = { id: newId("msg"), role: "assistant", metadata: { notice: notice.kind } } as const;
        persist(chat, [{ ...said, parts: [{ type: "text", text }] }], { session });
      }
      return true;
    });
  }

  /** What a delivery shows now. */
  said(row: DeliveryRow, terms: DeliveryTerms): Said {
    const chat = this.#agent.chat();
    const stored = (id: string) => chat.transcripts.of(row.session).get(id);
    if (row.kind === "notice") return { text: row.body ?? "", settled: true };
    if (row.kind === "question") return this.#asked(row, terms);
    const { stopButton: label, buttonData } = terms;
    const hasStop = label !== "" && buttonData > 0;
    if (row.outcome === null) {
      const { text, tool } = row.turnId === null ? { text: "" } : partialText(chat.host, row.turnId, stored);
      const buttons = hasStop ? { buttons: [{ label, data: STOP_DATA }] } : {};
      return { text, settled: false, ...(tool !== undefined && { tool }), ...buttons };
    }
    const answer = row.answerId === null ? undefined : stored(row.answerId);
    const files = answer === undefined ? [] : filesAt(answer, this.#agent.renders(row.messenger));
    const text = endText(row.outcome, answer, terms, files.length > 0);
    return { text, settled: true, files, ...(hasStop && { buttons: [] }) };
  }

  /** Who said what where, of the turn that runs. */
  context(turnId: string | undefined): MessengerContext | undefined {
    const { host } = this.#agent.chat();
    const row = turnId === undefined || host.blank ? undefined : deliveryOfTurn(host, turnId);
    return row && contextOf(row);
  }

  #asked(row: DeliveryRow, { buttonData, editable }: DeliveryTerms): Said {
    const { host } = this.#agent.chat();
    const { messageId, toolCallId } = row;
    const call = messageId === null || toolCallId === null ? undefined : readToolCall(host, messageId, toolCallId);
    const isOpen = row.outcome === null && call?.status === "asked";
    const asks = call === undefined ? "A question that is gone" : questionText(call);
    const code = codeOf(row);
    const words = buttonData > 0 ? asks : `${asks}\n\nAnswer YES ${code} or NO ${code}.`;
    // What cannot be changed stays as it was asked; whoever answered is told.
    if (!isOpen && !editable) return { text: words, settled: true };
    const gone = buttonData > 0 ? { buttons: [] } : {};
    if (!isOpen)
      return { text: `${words}\n\n${call === undefined ? "" : decisionOf(call)}`.trim(), settled: true, ...gone };
    const data = (approved: boolean) => `p1${approved ? "y" : "n"}${row.seq.toString(36)}.${row.secret ?? ""}`;
    const buttons: Button[] = [
      { label: "Approve", data: data(true) },
      { label: "Reject", data: data(false) },
    ];
    return { text: words, settled: true, held: true, ...(buttonData > 0 && { buttons }) };
  }

  #findQuestion({ messenger, thread, data }: Asked) {
    const { host } = this.#agent.chat();
    if (host.blank) return undefined;
    const [, button, seq = "", secret] = OWN_BUTTON.exec(data) ?? [];
    const [, said, code] = TEXT_ANSWER.exec(data) ?? [];
    const isIt = (one: DeliveryRow) =>
      button === undefined ? codeOf(one) === code?.toUpperCase() : one.secret === secret;
    const rows =
      button === undefined ? openQuestionsAt(host, messenger, thread) : [readDelivery(host, parseInt(seq, 36))];
    const row = rows.find((one) => one?.kind === "question" && isIt(one));
    if (row === undefined || row.messageId === null || row.toolCallId === null) return undefined;
    const call = readToolCall(host, row.messageId, row.toolCallId);
    return call && { row, call, approved: button === "y" || said?.toUpperCase() === "YES" };
  }

  #waitingOf({ messenger, event }: Arrival, subject: string): number {
    const { host } = this.#agent.chat();
    if (host.blank) return 0;
    return unsettledDeliveries(host, messenger, event.thread).filter((row) => contextOf(row)?.subject === subject)
      .length;
  }

  #bind({ messenger, event, bound }: Arrival, session: string): void {
    const { host } = this.#agent.chat();
    if (!bound) return;
    const { thread, dm } = event;
    const value = JSON.stringify({ messenger, thread, place: { thread, dm } satisfies Place });
    if (readCell(host, boundKey(session)) !== value) writeCell(host, boundKey(session), value);
  }

  /** What the same author has said a moment ago, and nobody has begun to answer: this is more of it. */
  #join(arrival: Arrival, session: string): string | undefined {
    const { messenger, event, coalesceMs } = arrival;
    const chat = this.#agent.chat();
    const { host } = chat;
    const row = this.#before(arrival);
    const turn = row && readTurn(host, row.turnId ?? "");
    if (row === undefined || turn === undefined || row.messageId === null || !isWaiting(turn)) return undefined;
    const context = contextOf(row);
    if (context?.subject !== subjectOf(arrival) || (coalesceMs <= 0 && event.group === undefined)) return undefined;
    const message = chat.transcripts.of(session).get(row.messageId);
    if (message === undefined) return undefined;
    const at = host.clock.now();
    insertInbound(host, messenger, event.keys, { kind: "joined", turnId: turn.id, at });
    const parts = partsOf(arrival);
    persist(chat, [{ ...message, parts: [...message.parts, ...parts] }], { session });
    const readyAt = Math.max(at + waitOf(arrival), wantedOf(row)?.readyAt ?? 0);
    const before = wantedOf(row)?.wanted ?? [];
    const wanted = [...before, ...wantedIn(arrival, message.parts.length + parts.length)];
    const files = [...(context.files ?? []), ...event.files];
    if (wanted.length > 0)
      setDeliveryFiles(
        host,
        row.seq,
        filesJson(arrival, readyAt, wanted),
        JSON.stringify({ ...context, ...(files.length > 0 && { files }) }),
      );
    if (wanted.length > 0) postponeTurn(host, turn.seq, at + HELD_MS);
    else if (turn.notBefore > at) postponeTurn(host, turn.seq, readyAt);
    this.#tellLeft(arrival);
    return turn.id;
  }

  /** What it may be more of: the other pieces of its gallery, else what was said last. */
  #before({ messenger, event }: Arrival): DeliveryRow | undefined {
    const { host } = this.#agent.chat();
    if (event.group === undefined) return unsettledDeliveries(host, messenger, event.thread).at(-1);
    const first = findInbound(host, messenger, [galleryKey(event, "held")]);
    return deliveryOfTurn(host, first?.turnId ?? "");
  }

  #tellLeft(arrival: Arrival): void {
    const { messenger, event } = arrival;
    const { host } = this.#agent.chat();
    host.afterTx((committed) => {
      for (const file of committed ? event.files : []) {
        const reason = whyLeft(file, arrival.files);
        if (reason === undefined) continue;
        const { name, mediaType } = file;
        const about = { messenger, thread: event.thread, by: subjectOf(arrival), file: name, mediaType, reason };
        host.emit("messenger:file-left", about);
      }
    });
  }

  #ask(arrival: Arrival, session: string, identity: Identity): string {
    const { messenger, provider, event } = arrival;
    const chat = this.#agent.chat();
    const { host } = chat;
    const { thread, dm, author, messageId } = event;
    const context = messengerContextOf(arrival);
    const { subject } = context;
    const parts = partsOf(arrival);
    const wanted = wantedIn(arrival, parts.length);
    const message: UIMessage = {
      id: newId("msg"),
      role: "user",
      parts,
      metadata: { subject, messenger: { id: messenger, provider, author: author.name } },
    };
    const place: Place = { thread, dm, ...(!dm && { replyTo: messageId }) };
    const turn = accept(chat, {
      ...{ session, identity: JSON.stringify(identity), isBounded: true },
      input: { kind: "messages", messages: [message], joins: "now" },
      also: ({ id: turnId, seq, createdAt }) => {
        const keys = event.group === undefined ? event.keys : [...event.keys, galleryKey(event, "held")];
        insertInbound(host, messenger, keys, { kind: "turn", turnId, at: createdAt });
        const wait = waitOf(arrival);
        placeDelivery(host, {
          ...{ kind: "answer", messenger, thread, session, turnId, createdAt, messageId: message.id },
          ...{ place: JSON.stringify(place), context: JSON.stringify(context) },
          ...(wanted.length > 0 && { files: filesJson(arrival, createdAt + wait, wanted) }),
        });
        if (wanted.length > 0) postponeTurn(host, seq, createdAt + HELD_MS);
        else if (wait > 0) postponeTurn(host, seq, createdAt + wait);
        this.#tellLeft(arrival);
      },
    });
    return turn.id;
  }
}
