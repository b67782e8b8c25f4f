import { tryParseJson } from "../base/json.ts";
import { PerdureError } from "../base/error.ts";
import {
  bytesOfDataUrl,
  mapMedia,
  MIN_MOVED_CHARS,
  type Movable,
  movablesOf,
  referenceTo,
  toReference,
} from "../message/media-ref.ts";
import { parseMessage } from "../message/validate.ts";
import type { AgentHost } from "../port.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { largeMessagesUp, readMessageAt, updateMessage } from "../store/message.ts";
import { readSession } from "../store/session.ts";
import { unnamedFiles } from "./file-references.ts";
import { type FileInfo, filesOf } from "./files.ts";
import { isAddressOld, noteAddress, readdress } from "./media-address.ts";

/** Rows that are rewritten before others have their turn. */
const PASS_ROWS = 64;
/** How far back it is looked in one pass. */
const PASS_STEPS = 5_000;
const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_KEPT = 8;

/** How long pictures, files and long outputs stay where. */
export interface MediaRetention {
  /** How many of the newest messages keep all they hold; what is large in older ones becomes a file. Default: 8. */
  readonly keepInMessages?: number;
  /** The path under which clients reach the agent (their `basePath`), such as `"/me"`, when an app mounts it elsewhere. */
  readonly address?: string;
  /** Such a file is deleted after this many days, and the message says so. Default: never. */
  readonly days?: number | undefined;
}

/** What the mover needs to know. */
interface MediaDeps {
  readonly host: AgentHost;
  /** `false`: nothing is moved. */
  retention(): MediaRetention | false;
  /** Rows were rewritten: what is in memory of them is old. */
  changed(): void;
  /** Something could not be moved, and stays where it is. Must not throw. */
  failed(error: unknown): void;
}

/** Takes what is large out of older messages, in the background: bytes first, then the row; a crash leaves only stray bytes. */
export class MediaMover {
  readonly #deps: MediaDeps;
  readonly #waiting = new Set<string>();
  /** By session, up to which message all was looked at. Stored only when something was moved: most turns write nothing. */
  readonly #looked = new Map<string, number>();
  #work: Promise<void> | undefined;
  #collected = false;

  constructor(deps: MediaDeps) {
    this.#deps = deps;
  }

  /** A turn of this session has ended: what is old enough is moved soon. Returns at once; never throws. */
  after(session: string): void {
    if (this.#deps.retention() === false) return;
    this.#waiting.add(session);
    this.#work ??= this.#deps.host
      .keepAwake(this.#all())
      .catch((thrown: unknown) => {
        // The agent left memory: the next turn goes on.
        if (!PerdureError.is(thrown, "agent_gone") && !PerdureError.is(thrown, "host_stopped"))
          this.#deps.failed(thrown);
      })
      .finally(() => {
        this.#work = undefined;
      });
  }

  /** Resolves when nothing is being moved. */
  async idle(): Promise<void> {
    while (this.#work !== undefined) await this.#work;
  }

  async #all(): Promise<void> {
    const { host } = this.#deps;
    // Not within the work that ended the turn.
    await host.breathe();
    if (isAddressOld(host, this.#address) && (await readdress(host, this.#address)) > 0) this.#deps.changed();
    if (!this.#collected) {
      this.#collected = true;
      await filesOf(host).collect();
      await this.collect();
    }
    for (const session of this.#waiting) {
      // First: a turn that ends during a pass is looked at in the next one.
      this.#waiting.delete(session);
      while (await this.pass(session)) await host.breathe();
    }
    await this.expire();
  }

  /** Messages may refer to files by an address that the agent does not have any more. */
  get hasMoved(): boolean {
    return this.#deps.retention() !== false && isAddressOld(this.#deps.host, this.#address);
  }

  /** Of the agent itself, never one that a client connected to: that one holds for this client alone, if for anybody. */
  get #address(): string {
    const retention = this.#deps.retention();
    const own = retention === false ? undefined : retention.address;
    return own === undefined ? this.#deps.host.address : checkedAddress(own);
  }

  /** Stores bytes for a message that is about to refer to them. @returns their name, and what the message says. */
  async keep(bytes: Uint8Array, mediaType: string): Promise<{ readonly name: string; readonly url: string }> {
    const { name } = await filesOf(this.#deps.host).put(bytes, mediaType, true);
    return { name, url: `${this.#address}/files/${name}` };
  }

  /** A message refers to what was kept, in the caller's transaction. */
  refer(name: string, seq: number): void {
    noteAddress(this.#deps.host, this.#address);
    filesOf(this.#deps.host).refer(name, seq);
  }

  /** Moves what is large out of at most 64 messages of a session. @returns whether there may be more. */
  async pass(session: string): Promise<boolean> {
    const { host } = this.#deps;
    const retention = this.#deps.retention();
    const leaf = readSession(host, session)?.leaf ?? null;
    if (retention === false || leaf === null) return false;
    const key = `media:${session}`;
    const stored = readCell(host, key);
    const until = this.#looked.get(session) ?? (stored === undefined ? null : Number(stored));
    const { newest, seqs } = largeMessagesUp(host, leaf, {
      skip: keptOf(retention),
      until,
      limit: PASS_STEPS,
      bytes: MIN_MOVED_CHARS,
    });
    const now = seqs.slice(0, PASS_ROWS);
    let moved = 0;
    for (const seq of now) if (await this.#move(seq)) moved++;
    if (moved > 0) this.#deps.changed();
    const rest = now.length < seqs.length;
    const upto = (rest ? now.at(-1) : newest) ?? null;
    if (upto === null) return rest;
    this.#looked.set(session, upto);
    if (moved > 0) host.tx(() => writeCell(host, key, String(upto)), "commit");
    return rest;
  }

  /** Moves what is large out of one message. @returns whether the row was changed. */
  async #move(seq: number): Promise<boolean> {
    const { host } = this.#deps;
    const row = readMessageAt(host, seq);
    const message = row && parseMessage(tryParseJson(row.body));
    if (row === undefined || message === undefined) return false;
    const files = filesOf(host);
    const address = this.#address;
    const references = new Map<string, { readonly text: string; readonly name: string }>();
    for (const movable of movablesOf(message)) {
      const bytes = bytesOf(movable);
      if (bytes === undefined) continue;
      const mediaType = movable.kind === "media" ? movable.mediaType : "text/plain;charset=utf-8";
      const { name } = await files.put(bytes, mediaType, true);
      const text = referenceTo(movable, `${address}/files/${name}`);
      references.set(movable.kind === "media" ? movable.url : movable.text, { text, name });
    }
    if (references.size === 0) return false;
    const body = JSON.stringify(mapMedia(message, (text) => references.get(text)?.text ?? text));
    const moved = host.tx(() => {
      // It may have been changed or deleted while the bytes were stored.
      if (readMessageAt(host, seq)?.body !== row.body) return false;
      updateMessage(host, seq, row.role, body);
      noteAddress(host, address);
      for (const { name } of references.values()) files.refer(name, seq);
      return true;
    }, "commit");
    if (!moved) for (const { name } of references.values()) await files.drop(name);
    return moved;
  }

  /** Deletes files whose time is over; the messages that they were taken out of say so. @returns how many. */
  async expire(): Promise<number> {
    const { host } = this.#deps;
    const retention = this.#deps.retention();
    if (retention === false || retention.days === undefined) return 0;
    const { days } = retention;
    const before = host.clock.now() - days * DAY_MS;
    const files = filesOf(host);
    const over = files.list().filter(({ at, expired, of }) => !expired && of.length > 0 && at <= before);
    for (const file of over) {
      host.tx(() => {
        for (const seq of file.of) this.#mark(seq, file, days);
      });
      await files.expire(file.name);
      await host.breathe();
    }
    if (over.length > 0) this.#deps.changed();
    return over.length;
  }

  /** Deletes files of messages that were deleted since, unless others refer to them. @returns how many. */
  async collect(): Promise<number> {
    const { host } = this.#deps;
    const files = filesOf(host);
    const isGone = (seq: number) => readMessageAt(host, seq) === undefined;
    const left = files.list().filter(({ of, pending }) => !pending && of.length > 0 && of.every(isGone));
    if (left.length === 0) return 0;
    const unnamed = await unnamedFiles(
      host,
      left.map(({ name }) => name),
    );
    for (const name of unnamed) {
      files.forget(name);
      await files.deleteBytes(name);
    }
    return unnamed.size;
  }

  #mark(seq: number, file: FileInfo, days: number): void {
    const row = readMessageAt(this.#deps.host, seq);
    const message = row && parseMessage(tryParseJson(row.body));
    if (row === undefined || message === undefined) return;
    const isIt = (text: string) => toReference(text)?.name === file.name;
    const gone = `was deleted after ${days} ${days === 1 ? "day" : "days"}`;
    const parts = message.parts.map((part) => {
      if (part.type !== "file" || !isIt(part.url)) return part;
      return { type: "text" as const, text: `[The file ${part.filename ?? part.mediaType} ${gone}.]` };
    });
    const marked = mapMedia({ ...message, parts }, (text) => {
      if (!isIt(text)) return text;
      if (toReference(text)?.kind === "media") return `[A file of type ${file.mediaType} ${gone}.]`;
      return text.replace(/; the whole text is at \S*\]$/, `; the rest ${gone}]`);
    });
    updateMessage(this.#deps.host, seq, row.role, JSON.stringify(marked));
  }
}

function keptOf({ keepInMessages = DEFAULT_KEPT }: MediaRetention): number {
  if (Number.isInteger(keepInMessages) && keepInMessages >= 1) return keepInMessages;
  throw new PerdureError("bad_config", "mediaRetention.keepInMessages must be a whole number of messages, at least 1.");
}

function checkedAddress(address: string): string {
  if (typeof address === "string" && /^\/(?!\/)[^\s?#\\]*$/.test(address)) return address.replace(/\/+$/, "");
  throw new PerdureError("bad_config", 'mediaRetention.address must be a path of the agent, as in "/me".');
}

function bytesOf(movable: Movable): Uint8Array | undefined {
  return movable.kind === "media" ? bytesOfDataUrl(movable.url) : new TextEncoder().encode(movable.text);
}
