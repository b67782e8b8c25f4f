import { fingerprint } from "../base/hash.ts";
import { newId } from "../base/id.ts";
import type { AgentHost } from "../port.ts";
import {
  clearFailures,
  clearIntent,
  closePart,
  type DeliveryRow,
  endDelivery,
  hasOpenDelivery,
  intendPart,
  losePart,
  markMaybeTwice,
  nextDelivery,
  notePartFile,
  openDeliveries,
  openDeliveriesAt,
  type PartRow,
  partsOf,
  postponeDelivery,
  readDelivery,
  showPart,
  trimDeliveries,
} from "../store/delivery.ts";
import type { Work } from "../work/work.ts";
import type { DeliveryTexts } from "./answer-text.ts";
import type { PartFile } from "./answer-files.ts";
import type { Button, Content, Place } from "./channel.ts";
import { callFor, type FileNote, type FileStep, nextFile, NOTHING, textFor, tooLargeFor } from "./file-step.ts";
import { cutAt, partOf } from "./split.ts";
import type { SpeakCall, SpeakResult } from "./speaker.ts";
import { sayOnce } from "./words.ts";

/** What an agent that delivers has to know of a messenger. Plain data: the root tells its children. */
export interface DeliveryTerms extends DeliveryTexts {
  readonly provider: string;
  readonly textLimit: number;
  readonly buttonData: number;
  readonly dmPaceMs: number;
  readonly groupPaceMs: number;
  /** What is first posted: the first text, a stand-in for it, or nothing before the answer is whole. */
  readonly first: "text" | "stand-in" | "whole";
  /** What is made may be there twice, whatever is known of it. */
  readonly repeats: boolean;
  /** Stands before what may be there twice. */
  readonly repeatedText: string;
  readonly giveUpAfterMs: number;
  readonly showTools: boolean;
  /** Stands under an answer that is being written. */
  readonly stopButton: string;
  readonly editable: boolean;
  /** The largest file that can be sent there; 0: none can. */
  readonly fileBytes: number;
}

/** What a delivery shows now. */
export interface Said {
  readonly text: string;
  /** Nothing more will come. */
  readonly settled: boolean;
  readonly buttons?: readonly Button[];
  /** A question that is posted waits for a person. */
  readonly held?: boolean;
  /** What is being done meanwhile. */
  readonly tool?: string;
  /** Which parts of the answer are messages of their own, below its words. */
  readonly files?: readonly number[];
}

/** What a courier asks of its agent. */
interface CourierDeps {
  readonly host: Pick<
    AgentHost,
    "sql" | "tx" | "clock" | "emit" | "keepAwake" | "durable" | "afterTx" | "blank" | "env" | "report"
  >;
  /** Has a call made by whoever has the tokens. A rejection: nobody knows what became of it. */
  speak(messenger: string, call: SpeakCall): Promise<SpeakResult>;
  /** Undefined: there is no such messenger. */
  terms(messenger: string): Promise<DeliveryTerms | undefined>;
  said(row: DeliveryRow, terms: DeliveryTerms): Said;
  /** What is sent for a part of the answer. */
  file(row: DeliveryRow, at: number): Promise<PartFile>;
  /** Due times have changed. */
  changed(): void;
  stopped(): boolean;
  failed(error: unknown): void;
}

const STAND_IN = "…";
const MAX_PLACES = 8;
const MAX_LOOKED_AT = 2_000;
const POLL_MS = 250;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 5 * 60_000;
const JITTER_MS = 250;
/** Nobody waits longer without asking again: a clock that was set back must not make an hour a day. */
const MOST_WAIT_MS = 60 * 60_000;
const PREVIEW_PAUSE_MS = 5_000;
const KEPT_DONE = 200;
const KEPT_FAILED = 1_000;

/** What has to be done next about one message. */
interface Step {
  readonly n: number;
  readonly start: number;
  /** Where it ends; null: it may still grow. */
  readonly end: number | null;
  readonly content: Content;
  readonly shown: string;
  /** The message to change; undefined: it has to be made. */
  readonly id: string | undefined;
  readonly preview: boolean;
}

interface PlaceState {
  /** Not before this time, what will be replaced soon. */
  previewAt: number;
  busy: boolean;
  again: boolean;
  cancel: (() => void) | undefined;
}

type Move =
  | { readonly kind: "idle" }
  | { readonly kind: "wait"; readonly until: number }
  | { readonly kind: "unknown"; readonly row: DeliveryRow; readonly part: PartRow }
  | { readonly kind: "step"; readonly row: DeliveryRow; readonly step: Step; readonly close: readonly ClosedPart[] }
  | {
      readonly kind: "file";
      readonly row: DeliveryRow;
      readonly file: FileStep;
      readonly close: readonly ClosedPart[];
    };

/** A message that shows all that it ever will, which is not stored yet. */
interface ClosedPart {
  readonly delivery: number;
  readonly n: number;
  readonly end: number;
}

/** What is left to do about a delivery. */
interface Plan {
  readonly step?: Step;
  /** When all words are there. */
  readonly file?: FileStep;
  readonly close: readonly ClosedPart[];
}

/**
 * Brings deliveries to their places. All state is in rows, so another process can take over. A message is made in three steps:
 * store that it will be called, call, store what it is known by. From then on it is only changed, which may repeat. Previews
 * store nothing.
 */
export class Courier implements Work {
  readonly #deps: CourierDeps;
  readonly #places = new Map<string, PlaceState>();
  /** What was last shown in messages that grow, and which texts go without their form: of this life. */
  readonly #previewed = new Map<string, string>();
  readonly #plain = new Set<number>();
  #running = 0;
  #halted = false;

  constructor(deps: CourierDeps) {
    this.#deps = deps;
  }

  next(): number | null {
    return this.#running > 0 ? null : nextDelivery(this.#deps.host);
  }

  active(): boolean {
    return this.#running > 0;
  }

  runDue(): void {
    this.look();
  }

  halt(): void {
    this.#halted = true;
    for (const place of this.#places.values()) place.cancel?.();
    this.#places.clear();
  }

  /** Looks what is to be done, once the transaction under way has ended. */
  look(): void {
    this.#deps.host.afterTx((committed) => {
      if (!committed || this.#halted || this.#deps.host.blank) return;
      const seen = new Set<string>();
      for (const { messenger, thread } of openDeliveries(this.#deps.host, MAX_LOOKED_AT)) {
        const key = `${messenger}\n${thread}`;
        if (seen.has(key)) continue;
        seen.add(key);
        this.#visit(messenger, thread);
      }
    });
  }

  #visit(messenger: string, thread: string): void {
    const key = `${messenger}\n${thread}`;
    const place = this.#placeOf(key);
    if (place.busy) {
      place.again = true;
      return;
    }
    if (this.#running >= MAX_PLACES || this.#halted || this.#deps.stopped()) return;
    place.cancel?.();
    place.cancel = undefined;
    place.busy = true;
    this.#running++;
    void this.#deps.host.keepAwake(this.#serve(key, messenger, thread, place));
  }

  async #serve(key: string, messenger: string, thread: string, place: PlaceState): Promise<void> {
    let until: number | undefined;
    try {
      until = await this.#work(messenger, thread, place);
    } catch (thrown) {
      if (this.#halted) return;
      this.#deps.failed(thrown);
      until = this.#deps.host.clock.now() + FIRST_WAIT_MS;
    } finally {
      place.busy = false;
      this.#running--;
    }
    if (this.#halted) return;
    if (until === undefined && !place.again) this.#places.delete(key);
    else if (until !== undefined) {
      const wait = Math.max(0, until - this.#deps.host.clock.now());
      place.cancel = this.#deps.host.clock.after(wait, () => this.#visit(messenger, thread));
    }
    if (place.again) {
      place.again = false;
      this.#visit(messenger, thread);
    }
    // A place that found no room before has it now.
    if (this.#running === MAX_PLACES - 1) this.look();
    this.#deps.changed();
  }

  /** @returns when to come again; undefined: when something happens */
  async #work(messenger: string, thread: string, place: PlaceState): Promise<number | undefined> {
    const terms = await this.#deps.terms(messenger);
    for (;;) {
      if (this.#halted || this.#deps.stopped()) return undefined;
      if (terms === undefined) return this.#drop(messenger, thread);
      place.again = false;
      const move = this.#move(messenger, thread, terms, place);
      if (move.kind === "idle") return undefined;
      if (move.kind === "wait") return move.until;
      if (move.kind === "unknown") await this.#ask(move.row, move.part, terms);
      else if (move.kind === "file") await this.#takeFile(move, terms, place);
      else await this.#take(move, terms, place);
    }
  }

  #drop(messenger: string, thread: string): undefined {
    for (const row of openDeliveriesAt(this.#deps.host, messenger, thread))
      this.#fail(row, `There is no messenger "${messenger}" any more.`);
  }

  #move(messenger: string, thread: string, terms: DeliveryTerms, place: PlaceState): Move {
    const { host } = this.#deps;
    const rows = openDeliveriesAt(host, messenger, thread);
    const now = host.clock.now();
    const close: ClosedPart[] = [];
    let poll = Number.POSITIVE_INFINITY;
    for (const [i, row] of rows.entries()) {
      if (row.nextAt > now && row.nextAt - now <= MOST_WAIT_MS + JITTER_MS) return { kind: "wait", until: row.nextAt };
      const parts = partsOf(host, row.seq);
      const part = parts.find(({ calling }) => calling === 1);
      if (part !== undefined) return { kind: "unknown", row, part };
      const said = this.#deps.said(row, terms);
      // What comes below must not be passed by what is written above it.
      const closing = rows
        .slice(i + 1)
        .some((later) => later.kind !== "answer" && partsOf(host, later.seq).length === 0);
      const plan = this.#plan(row, parts, said, terms, closing);
      if (plan.step !== undefined && (!plan.step.preview || now >= place.previewAt))
        return { kind: "step", row, step: plan.step, close: [...close, ...plan.close] };
      if (plan.step !== undefined) poll = Math.min(poll, place.previewAt);
      else if (plan.file !== undefined) return { kind: "file", row, file: plan.file, close: [...close, ...plan.close] };
      else if (said.settled) this.#end(row, said, plan.close);
      else {
        poll = Math.min(poll, now + POLL_MS);
        close.push(...plan.close);
        if (row.nextAt > 0) clearFailures(host, row.seq);
      }
    }
    return Number.isFinite(poll) ? { kind: "wait", until: poll } : { kind: "idle" };
  }

  #plan(row: DeliveryRow, parts: readonly PartRow[], said: Said, terms: DeliveryTerms, closing: boolean): Plan {
    const { text, settled, buttons } = said;
    const ends = settled || closing;
    const plain = this.#plain.has(row.seq);
    const close: ClosedPart[] = [];
    const stepOf = (n: number, start: number, end: number | null, id: string | null): Step => {
      const part = partOf(text, start, Math.min(end ?? text.length, text.length));
      const repeated = row.maybeTwice === 1 && start === 0 ? terms.repeatedText : "";
      const doing = end === null && terms.showTools && said.tool !== undefined ? `_${said.tool} …_` : "";
      const shown = [repeated, part, doing].filter((one) => one !== "").join("\n\n");
      const content = {
        text: shown === "" ? STAND_IN : shown,
        ...(buttons !== undefined && (end ?? text.length) >= text.length && { buttons }),
        ...(plain && { plain }),
      };
      return { n, start, end, id: id ?? undefined, content, shown: shownAs(content), preview: false };
    };
    const endFrom = (start: number) => cutAt(text, start, terms.textLimit) ?? (ends ? text.length : null);
    let from = 0;
    for (const part of parts) {
      if (part.file !== null) continue;
      // A question is one message, whose words change when it is answered.
      const end = row.kind === "question" ? text.length : (part.end ?? endFrom(part.start));
      const step = stepOf(part.n, part.start, end, part.providerId);
      if (step.id === undefined) return { step, close };
      if (end === null) {
        const before = this.#previewed.get(`${row.seq}:${part.n}`) ?? part.shown;
        const isNew = terms.first !== "whole" && text.length > part.start && step.shown !== before;
        return isNew ? { step: { ...step, preview: true }, close } : { close };
      }
      if (step.shown !== part.shown) return { step, close };
      if (part.end === null) close.push({ delivery: row.seq, n: part.n, end });
      from = end;
    }
    const hasMore = text.slice(from).trim() !== "";
    const file = hasMore || !settled ? undefined : nextFile(parts, said.files ?? []);
    if (file !== undefined) return { file, close };
    const standsIn = terms.first === "stand-in" && parts.length === 0 && !ends;
    const mayBegin = ends || (terms.first !== "whole" && row.kind === "answer");
    if (!mayBegin || (!hasMore && !standsIn)) return { close };
    return { step: stepOf(parts.length, from, endFrom(from), null), close };
  }

  /** Makes a message, or changes one. */
  async #take(
    { row, step, close }: Extract<Move, { kind: "step" }>,
    terms: DeliveryTerms,
    place: PlaceState,
  ): Promise<void> {
    const { host } = this.#deps;
    const { n, start, content } = step;
    const where = JSON.parse(row.place) as Place;
    if (step.id !== undefined) {
      const call = { op: "edit", place: where, id: step.id, content, preview: step.preview } as const;
      const result = await this.#speak(row.messenger, call);
      this.#paced(place, where, terms);
      if (step.preview) this.#previewDone(row, step, result, place);
      else this.#done(row, step, step.id, result, terms);
      return;
    }
    const key = newId("msg");
    host.tx(() => {
      for (const part of close) closePart(host, part.delivery, part.n, part.end);
      intendPart(host, row.seq, { n, start, key, at: host.clock.now(), file: null });
      if (terms.repeats) markMaybeTwice(host, row.seq);
    });
    await host.durable();
    const isFirst = n === 0;
    const made = terms.first === "stand-in" ? standIn(step) : step;
    const call = {
      op: "create",
      place: isFirst ? where : { thread: where.thread, dm: where.dm },
      content: made.content,
      key,
    } as const;
    const result = await this.#speak(row.messenger, call);
    this.#paced(place, where, terms);
    this.#done(row, made, undefined, result, terms);
  }

  /** Sends what stands beside the words of an answer; where that cannot be, its place says so. */
  async #takeFile(
    { row, file: step, close }: Extract<Move, { kind: "file" }>,
    terms: DeliveryTerms,
    place: PlaceState,
  ): Promise<void> {
    const { host } = this.#deps;
    const { n, at } = step;
    const part = step.left === undefined ? await this.#deps.file(row, at) : textFor(step.left);
    if (this.#halted) return;
    if (part.kind === "none")
      return host.tx(() =>
        notePartFile(host, row.seq, { n, start: at, at: host.clock.now(), file: NOTHING, sent: true }),
      );
    if (part.kind === "left") return this.#leave(row, step, part);
    const left = tooLargeFor(part, terms.fileBytes);
    if (left !== undefined) return this.#leave(row, step, left);
    const { thread, dm } = JSON.parse(row.place) as Place;
    const call = callFor(part, terms, { thread, dm });
    const { key } = call;
    const known: FileNote = step.left ?? { name: part.kind === "file" ? part.file.name : "" };
    host.tx(() => {
      for (const one of close) closePart(host, one.delivery, one.n, one.end);
      intendPart(host, row.seq, { n, start: at, key, at: host.clock.now(), file: JSON.stringify(known) });
      if (terms.repeats) markMaybeTwice(host, row.seq);
    });
    await host.durable();
    const result = await this.#speak(row.messenger, call);
    this.#paced(place, { thread, dm }, terms);
    this.#fileDone(row, step, known, result, terms);
  }

  #fileDone(row: DeliveryRow, step: FileStep, known: FileNote, result: SpeakResult, terms: DeliveryTerms): void {
    const { host } = this.#deps;
    if (this.#halted) return;
    const { seq } = row;
    const { n, at } = step;
    host.tx(() => {
      if (result.ok && result.id !== undefined) {
        showPart(host, seq, n, { providerId: result.id, shown: "", end: at });
        clearFailures(host, seq);
        return this.#endIfDone(seq, terms);
      }
      if (result.ok) return this.#later(row, "The network gave no name for the message.", terms);
      const { kind, error, retryAfterMs } = result;
      if (kind !== "unknown") clearIntent(host, seq, n);
      const isFinal = kind === "refused" || kind === "format" || kind === "gone" || kind === "same";
      // The next file may be taken, and people know what is missing.
      if (isFinal && step.left === undefined) this.#leave(row, step, { name: known.name, why: error });
      else if (isFinal || kind === "auth") this.#fail(row, error);
      else this.#later(row, error, terms, kind === "rate" ? (retryAfterMs ?? FIRST_WAIT_MS) : undefined);
    });
  }

  /** A file is not sent: that is stored, told, and said in its place. */
  #leave(row: DeliveryRow, { n, at }: FileStep, { name, why }: Required<FileNote>): void {
    const { host } = this.#deps;
    host.tx(() => {
      const file = JSON.stringify({ name, why } satisfies FileNote);
      notePartFile(host, row.seq, { n, start: at, at: host.clock.now(), file, sent: false });
    });
    host.afterTx((committed) => {
      if (committed) host.emit("delivery:file-left", { ...told(row), file: name, reason: why });
    });
  }

  async #speak(messenger: string, call: SpeakCall): Promise<SpeakResult> {
    try {
      return await this.#deps.speak(messenger, call);
    } catch (thrown) {
      if (this.#halted) throw thrown;
      const error = thrown instanceof Error ? thrown.message : String(thrown);
      return { ok: false, kind: "unknown", error };
    }
  }

  #paced(place: PlaceState, { dm }: Place, { dmPaceMs, groupPaceMs }: DeliveryTerms): void {
    place.previewAt = Math.max(place.previewAt, this.#deps.host.clock.now() + (dm ? dmPaceMs : groupPaceMs));
  }

  #previewDone({ seq }: DeliveryRow, step: Step, result: SpeakResult, place: PlaceState): void {
    if (result.ok || result.kind === "same") this.#previewed.set(`${seq}:${step.n}`, step.shown);
    else if (result.kind === "format") this.#plain.add(seq);
    else if (result.kind !== "later")
      place.previewAt = this.#deps.host.clock.now() + Math.max(PREVIEW_PAUSE_MS, result.retryAfterMs ?? 0);
  }

  /** Stores what came of a call. */
  #done(row: DeliveryRow, step: Step, id: string | undefined, result: SpeakResult, terms: DeliveryTerms): void {
    const { host } = this.#deps;
    if (this.#halted) return;
    const { seq } = row;
    const known = result.ok ? (result.id ?? id) : result.kind === "same" ? id : undefined;
    host.tx(() => {
      if (known !== undefined) {
        showPart(host, seq, step.n, { providerId: known, shown: step.shown, end: step.end });
        clearFailures(host, seq);
        return this.#endIfDone(seq, terms);
      }
      if (result.ok) return this.#later(row, "The network gave no name for the message.", terms);
      const { kind, error, retryAfterMs } = result;
      if (kind === "gone" && id !== undefined) return losePart(host, seq, step.n);
      if (kind !== "unknown" && id === undefined) clearIntent(host, seq, step.n);
      if (kind === "format" && !this.#plain.has(seq)) this.#plain.add(seq);
      else if (kind === "refused" || kind === "auth" || kind === "format") this.#fail(row, error);
      else this.#later(row, error, terms, kind === "rate" ? (retryAfterMs ?? FIRST_WAIT_MS) : undefined);
    });
  }

  /** A create was begun, and nobody knows what came of it: the network is asked; if it cannot tell, it is made again. */
  async #ask(row: DeliveryRow, part: PartRow, terms: DeliveryTerms): Promise<void> {
    const { host } = this.#deps;
    const place = JSON.parse(row.place) as Place;
    const result = await this.#speak(row.messenger, { op: "find", place, key: part.key, since: part.calledAt });
    if (this.#halted) return;
    if (!result.ok) {
      if (result.kind === "refused" || result.kind === "auth") this.#fail(row, result.error);
      else this.#later(row, result.error, terms, result.retryAfterMs);
      return;
    }
    const { id, found } = result;
    host.tx(() => {
      clearIntent(host, row.seq, part.n);
      // What it shows is not known: it is shown anew.
      if (id !== undefined) showPart(host, row.seq, part.n, { providerId: id, shown: "", end: part.end });
      if (found === "unknown") markMaybeTwice(host, row.seq);
    });
    if (found === "unknown") host.emit("delivery:repeated", told(row));
  }

  #later(row: DeliveryRow, error: string, { giveUpAfterMs }: DeliveryTerms, retryAfterMs?: number): void {
    const { host } = this.#deps;
    const now = host.clock.now();
    // Waiting because we were told to is no failure.
    if (retryAfterMs === undefined && row.attempts > 0 && now - row.createdAt > giveUpAfterMs)
      return this.#fail(row, error);
    const backoff = Math.min(FIRST_WAIT_MS * 2 ** Math.min(row.attempts, 20), LONGEST_WAIT_MS);
    const at = now + Math.min(retryAfterMs ?? backoff, MOST_WAIT_MS) + Math.floor(Math.random() * JITTER_MS);
    postponeDelivery(host, row.seq, at, error);
  }

  #fail(row: DeliveryRow, error: string): void {
    const { host } = this.#deps;
    host.tx(() => {
      endDelivery(host, row.seq, "failed", host.clock.now(), error);
      trimDeliveries(host, KEPT_DONE, KEPT_FAILED);
    });
    host.afterTx((committed) => {
      if (!committed) return;
      host.emit("delivery:failed", { ...told(row), error });
      const { messenger, thread } = row;
      const words = `What the agent has to say at ${thread} (messenger "${messenger}") could not be delivered, and is not tried again: ${error.replace(/\.$/, "")}. listDeliveries({ state: "failed" }) of the agent that holds the conversation has it, and retryDelivery(id) tries again.`;
      sayOnce(host, `${messenger}: ${error}`, words);
    });
  }

  #endIfDone(seq: number, terms: DeliveryTerms): void {
    const row = readDelivery(this.#deps.host, seq);
    const said = row && this.#deps.said(row, terms);
    if (row === undefined || said?.settled !== true) return;
    const { step, file, close } = this.#plan(row, partsOf(this.#deps.host, seq), said, terms, false);
    if (step === undefined && file === undefined) this.#end(row, said, close);
  }

  #end({ seq }: DeliveryRow, said: Said, close: readonly ClosedPart[]): void {
    const { host } = this.#deps;
    host.tx(() => {
      for (const part of close) closePart(host, part.delivery, part.n, part.end);
      endDelivery(host, seq, said.held === true ? "held" : "done", host.clock.now(), null);
      trimDeliveries(host, KEPT_DONE, KEPT_FAILED);
    });
    this.#plain.delete(seq);
    for (const { n } of partsOf(host, seq)) this.#previewed.delete(`${seq}:${n}`);
  }

  #placeOf(key: string): PlaceState {
    let place = this.#places.get(key);
    if (place === undefined)
      this.#places.set(key, (place = { previewAt: 0, busy: false, again: false, cancel: undefined }));
    return place;
  }
}

/** The mark is what may be there twice; it is changed into what is to be said. */
function standIn(step: Step): Step {
  const content = { text: STAND_IN };
  return { ...step, end: null, content, shown: shownAs(content) };
}

/** What is stored of what a message shows. */
function shownAs(content: Content): string {
  return fingerprint(JSON.stringify(content));
}

function told({ seq, messenger, thread }: DeliveryRow) {
  return { delivery: String(seq), messenger, thread };
}

/** Whether there is anything to bring, so that an agent without deliveries costs nothing. */
export function hasDeliveries(host: Pick<AgentHost, "sql" | "tx" | "blank">): boolean {
  return !host.blank && hasOpenDelivery(host);
}
