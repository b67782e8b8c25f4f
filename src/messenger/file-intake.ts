import { isRecord, tryParseJson } from "../base/json.ts";
import { backOff } from "../base/time.ts";
import type { MediaMover } from "../media/media.ts";
import type { Part, UIMessage } from "../message/types.ts";
import { deliveriesWithFiles, type DeliveryRow, readDelivery, setDeliveryFiles } from "../store/delivery.ts";
import { postponeTurn, readTurn } from "../store/turn.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import { persist } from "../turn/intake/accept.ts";
import { isWaiting } from "../turn/intake/inbox.ts";
import type { Work } from "../work/work.ts";
import type { FileRef, MessengerEvent } from "./channel.ts";
import type { FetchResult } from "./speaker.ts";

/** What of the files that people send is read. Plain data: the root tells its children. */
export interface FileTerms {
  /** Kinds, as in `image/*`. */
  readonly allow: readonly string[];
  readonly maxBytes: number;
}

/** A file that is to be fetched, and the part of the message that stands for it until then. */
interface WantedFile {
  readonly part: number;
  readonly file: FileRef;
}

/** What a turn waits for, as it is stored with its delivery. */
export interface WantedFiles {
  /** The turn does not begin before this time, with its files or without. */
  readonly readyAt: number;
  readonly maxBytes: number;
  readonly tries: number;
  /** No call before this time. */
  readonly nextAt: number;
  readonly wanted: readonly WantedFile[];
}

/** What a file intake asks of its agent. */
interface IntakeDeps {
  chat(): Conversations;
  media(): Pick<MediaMover, "keep" | "refer">;
  /** Has a file read by whoever has the tokens. A rejection: it is tried again. */
  fetch(messenger: string, file: FileRef, maxBytes: number): Promise<FetchResult>;
  /** Due times have changed. */
  changed(): void;
  stopped(): boolean;
  failed(error: unknown): void;
}

/** A turn that waits for files begins when they are there: the intake says when, and always does. */
export const HELD_MS = 365 * 24 * 60 * 60_000;
const MAX_AT_ONCE = 2;
const MAX_TRIES = 6;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
const MAX_NAME = 200;

/** What a message holds of a file that was not read, or not yet. */
export function fileMark({ name, mediaType }: FileRef, why?: string): Part {
  // Whoever sends a file chooses its name: it must not look like something that was said.
  const shown = `${name} (${mediaType})`.replaceAll(/[\p{Cc}[\]]/gu, " ").slice(0, MAX_NAME);
  return { type: "text", text: `[file: ${shown}${why === undefined ? "" : `, not read: ${why}`}]` };
}

/** Why a file is not to be fetched; undefined: it is. */
export function whyLeft({ id, mediaType, size = 0 }: FileRef, terms: FileTerms | undefined): string | undefined {
  if (terms === undefined) return "files are not read here";
  if (id === undefined) return "it cannot be fetched";
  const type = mediaType.toLowerCase().split(";")[0]?.trim() ?? "";
  const fits = (kind: string) => kind === type || (kind.endsWith("/*") && type.startsWith(kind.slice(0, -1)));
  if (!terms.allow.some((kind) => kind === "*/*" || fits(kind.toLowerCase())))
    return "files of this kind are not read here";
  return size > terms.maxBytes ? tooLarge(terms.maxBytes) : undefined;
}

/** What is fetched for a delivery; undefined: nothing is. */
export function wantedOf({ files }: DeliveryRow): WantedFiles | undefined {
  const value = tryParseJson(files ?? "");
  return isRecord(value) && Array.isArray(value.wanted) ? (value as unknown as WantedFiles) : undefined;
}

/**
 * Fetches what people sent before its turn begins. Wishes are rows, so another process can take over. Each file becomes a part of
 * its message, or a text that says why not.
 */
export class FileIntake implements Work {
  readonly #deps: IntakeDeps;
  readonly #busy = new Set<number>();
  #halted = false;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
  }

  next(): number | null {
    const { host } = this.#deps.chat();
    if (host.blank || this.#busy.size >= MAX_AT_ONCE) return null;
    const times = deliveriesWithFiles(host).flatMap((row) =>
      this.#busy.has(row.seq) ? [] : [Math.max(1, wantedOf(row)?.nextAt ?? 0)],
    );
    return times.length === 0 ? null : Math.min(...times);
  }

  active(): boolean {
    return this.#busy.size > 0;
  }

  runDue(): void {
    this.look();
  }

  halt(): void {
    this.#halted = true;
  }

  /** Begins to fetch what is wanted, once the transaction under way has ended. */
  look(): void {
    const { host } = this.#deps.chat();
    host.afterTx((committed) => {
      if (!committed || this.#halted || host.blank || this.#deps.stopped()) return;
      for (const row of deliveriesWithFiles(host)) {
        const isDue = (wantedOf(row)?.nextAt ?? 0) <= host.clock.now();
        if (!isDue || this.#busy.has(row.seq) || this.#busy.size >= MAX_AT_ONCE) continue;
        this.#busy.add(row.seq);
        void host.keepAwake(this.#serve(row));
      }
    });
  }

  async #serve({ seq }: DeliveryRow): Promise<void> {
    try {
      while (!this.#halted && (await this.#fetchNext(seq)));
    } catch (thrown) {
      if (this.#halted) return;
      this.#deps.failed(thrown);
      this.#later(seq);
    } finally {
      this.#busy.delete(seq);
    }
    if (this.#halted) return;
    this.look();
    this.#deps.changed();
  }

  /** @returns whether there may be more to do now */
  async #fetchNext(seq: number): Promise<boolean> {
    const { host } = this.#deps.chat();
    const row = readDelivery(host, seq);
    const files = row && wantedOf(row);
    const [next] = files?.wanted ?? [];
    if (row === undefined || files === undefined || next === undefined || this.#deps.stopped()) return false;
    const result = await this.#fetch(row.messenger, next.file, files.maxBytes);
    if (this.#halted) return false;
    if (result.ok) {
      const { name, mediaType } = next.file;
      const kept = await this.#deps.media().keep(result.bytes, mediaType);
      if (this.#halted) return false;
      this.#settle(seq, next, { type: "file", mediaType, filename: name, url: kept.url }, kept.name);
      return true;
    }
    const { kind, retryAfterMs } = result;
    if (files.tries + 1 < MAX_TRIES && (kind === "unsent" || kind === "unknown" || kind === "rate")) {
      this.#later(seq, retryAfterMs);
      return false;
    }
    const why = kind === "too-large" ? tooLarge(files.maxBytes) : "it could not be fetched";
    this.#settle(seq, next, fileMark(next.file, why));
    const { messenger, thread } = row;
    const { name: file, mediaType } = next.file;
    const reason = kind === "too-large" ? why : `${why}: ${result.error}`;
    host.emit("messenger:file-left", { messenger, thread, by: authorOf(row), file, mediaType, reason });
    return true;
  }

  async #fetch(messenger: string, file: FileRef, maxBytes: number): Promise<FetchResult> {
    try {
      return await this.#deps.fetch(messenger, file, maxBytes);
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown.message : String(thrown);
      return { ok: false, kind: "unknown", error };
    }
  }

  #later(seq: number, retryAfterMs = 0): void {
    const { host } = this.#deps.chat();
    const row = readDelivery(host, seq);
    const files = row && wantedOf(row);
    if (files === undefined) return;
    const tries = files.tries + 1;
    const wait = Math.min(Math.max(retryAfterMs, backOff(tries, FIRST_WAIT_MS)), LONGEST_WAIT_MS);
    const later: WantedFiles = { ...files, tries, nextAt: host.clock.now() + wait };
    host.tx(() => setDeliveryFiles(host, seq, JSON.stringify(later)));
  }

  /** The part takes the place of what stood for the file. With the last one, the turn may begin. */
  #settle(seq: number, { part: at }: WantedFile, part: Part, kept?: string): void {
    const chat = this.#deps.chat();
    const { host } = chat;
    chat.commit(() => {
      const row = readDelivery(host, seq);
      const files = row && wantedOf(row);
      if (row === undefined || files === undefined) return;
      const transcript = chat.transcripts.of(row.session);
      const message = transcript.get(row.messageId ?? "");
      const turn = readTurn(host, row.turnId ?? "");
      // It was taken back, stopped or forgotten meanwhile.
      const isOver = message?.parts[at] === undefined || turn === undefined || !isWaiting(turn);
      const wanted = isOver ? [] : files.wanted.filter((one) => one.part !== at);
      const left: WantedFiles = { ...files, tries: 0, nextAt: 0, wanted };
      setDeliveryFiles(host, seq, wanted.length === 0 ? null : JSON.stringify(left));
      if (isOver) return;
      persist(chat, [withPart(message, at, part)], { session: row.session });
      const of = transcript.seqOf(message.id);
      if (kept !== undefined && of !== undefined) this.#deps.media().refer(kept, of);
      if (wanted.length === 0) postponeTurn(host, turn.seq, Math.max(files.readyAt, host.clock.now()));
    });
    chat.pump();
  }
}

function withPart(message: UIMessage, at: number, part: Part): UIMessage {
  return { ...message, parts: message.parts.with(at, part) };
}

function tooLarge(maxBytes: number): string {
  const mib = maxBytes / (1024 * 1024);
  return `it is larger than ${mib >= 1 ? `${Math.floor(mib)} MiB` : `${maxBytes} bytes`}`;
}

function authorOf({ context }: DeliveryRow): string {
  const value = tryParseJson(context ?? "");
  return isRecord(value) && typeof value.subject === "string" ? value.subject : "";
}

/** What the pieces of a gallery are known by, where the conversation is held and at the door. */
export function galleryKey(
  { thread, group }: Pick<MessengerEvent, "thread" | "group">,
  where: "held" | "door",
): string {
  return `gallery:${where}:${thread}:${group ?? ""}`;
}
