import { InOrder } from "../../base/in-order.ts";
import { sha256 } from "../../base/hash.ts";
import type { AgentHost } from "../../port.ts";
import { deleteCell, listCells, readCell, writeCell } from "../../store/cell.ts";
import { addBodyRef, dropBodyRef, insertBody, readBodyChunks, readBodyHead } from "../../store/file-body.ts";
import type { FileMeta, FileRow } from "../../store/file.ts";
import type { LargeFiles } from "./large-files.ts";
import { posixError } from "../sandbox/posix-error.ts";
import { concat } from "../../base/bytes.ts";

/** Files of up to this many bytes stand in their own row. */
const ROW_BYTES = 8 * 1024;
/** How bytes are cut that stand in rows of their own: some hosts take no larger values than two megabytes. */
const CHUNK_BYTES = 256 * 1024;
const SCOPE_CHARS = 32;

/** What a file is to hold, ready to be committed. */
export type Content =
  | { readonly kind: "inline"; readonly bytes: Uint8Array }
  | { readonly kind: "chunks"; readonly hash: string; readonly bytes: Uint8Array }
  | { readonly kind: "large"; readonly hash: string; readonly bytes: Uint8Array };

type BodyHost = Pick<AgentHost, "id" | "sql" | "tx" | "blobs" | "durable" | "afterTx">;

/** What a file row says about where its content is. */
type ContentRef = Pick<FileRow, "hash" | "content">;

/** What a file row says about its content. */
type Held = ContentRef & Pick<FileRow, "size">;

/**
 * What files hold. Small contents stand in the row; others are stored once by SHA-256 and counted, in the transactions of the
 * rows that refer to them. Bytes outside the database survive a crash by their order: a cell announces them, they are stored, the
 * row refers to them and the cell goes; when the last row goes the cell comes back, then bytes and cell go. So
 * {@link Bodies.sweep} finds all leftovers.
 */
export class Bodies {
  readonly #host: BodyHost;
  readonly #ns: string;
  readonly #large: LargeFiles;
  readonly #doubt: string;
  /** Large ones that are stored and not yet referred to, and how often. */
  readonly #underway = new Map<string, number>();
  /** Large bytes are stored and deleted one after the other: nothing is deleted while it is stored again. */
  readonly #order = new InOrder();
  #scope: Promise<string> | undefined;

  constructor(host: BodyHost, ns: string, large: LargeFiles) {
    this.#host = host;
    this.#ns = ns;
    this.#large = large;
    this.#doubt = `workspace-large:${ns}:`;
  }

  /**
   * Makes bytes ready; small ones at once, so a small write is committed before its method returns. Call {@link Bodies.done}
   * afterwards.
   * @param inlineLimit larger ones go outside of the database
   */
  prepare(bytes: Uint8Array, inlineLimit: number): Content | Promise<Content> {
    if (bytes.length <= ROW_BYTES) return { kind: "inline", bytes };
    // The caller may change its array while this waits.
    return this.#prepareLong(new Uint8Array(bytes), inlineLimit);
  }

  async #prepareLong(bytes: Uint8Array, inlineLimit: number): Promise<Content> {
    const hash = await sha256(bytes);
    if (bytes.length <= inlineLimit) return { kind: "chunks", hash, bytes };
    this.#underway.set(hash, (this.#underway.get(hash) ?? 0) + 1);
    try {
      await this.#order.run(async () => {
        if (readBodyHead(this.#host, this.#ns, hash) !== undefined) return;
        this.#host.tx(() => writeCell(this.#host, this.#doubt + hash, ""), "commit");
        await this.#large.put(await this.#nameOf(hash), bytes);
      });
    } catch (thrown) {
      this.done({ kind: "large", hash, bytes });
      throw thrown;
    }
    return { kind: "large", hash, bytes };
  }

  /** What was prepared is committed, or never will be. Never throws. */
  done(content: Content): void {
    if (content.kind !== "large") return;
    const { hash } = content;
    const left = (this.#underway.get(hash) ?? 1) - 1;
    if (left > 0) this.#underway.set(hash, left);
    else this.#underway.delete(hash);
    if (left === 0) this.#deleteSoon(hash);
  }

  /** Refers to prepared bytes in the caller's transaction. @returns what the row has to say */
  refer(content: Content): ContentRef {
    if (content.kind === "inline") return { hash: null, content: content.bytes };
    const { hash } = content;
    if (!addBodyRef(this.#host, this.#ns, hash))
      insertBody(this.#host, this.#ns, hash, content.kind === "large" ? undefined : chunksOf(content.bytes));
    if (content.kind === "large") deleteCell(this.#host, this.#doubt + hash);
    return { hash, content: null };
  }

  /** One more row holds what this one holds, in the caller's transaction. */
  referAgain({ hash }: Pick<FileMeta, "hash">): void {
    if (hash !== null) addBodyRef(this.#host, this.#ns, hash);
  }

  /** Rows that referred to these are gone, in the caller's transaction. */
  release(hashes: readonly (string | null)[]): void {
    for (const hash of hashes) {
      if (hash === null || !dropBodyRef(this.#host, this.#ns, hash)) continue;
      writeCell(this.#host, this.#doubt + hash, "");
      this.#host.afterTx((committed) => {
        if (committed) this.#deleteSoon(hash);
      });
    }
  }

  /**
   * The bytes of a row, at once; undefined when they are outside of the database. Not to be changed.
   * @throws PerdureError `EIO` when a part of them is gone
   */
  readNow({ hash, content, size }: Held): Uint8Array | undefined {
    if (hash === null) return whole(plain(content ?? new Uint8Array()), size);
    const chunks = readBodyChunks(this.#host, this.#ns, hash);
    return chunks.length === 0 ? undefined : whole(plain(concat(chunks)), size);
  }

  /** The bytes of a row. Rejects with `EIO` when they, or a part of them, are gone. */
  async read(held: Held): Promise<Uint8Array> {
    const now = this.readNow(held);
    if (now !== undefined) return now;
    const bytes = await this.#large.get(await this.#nameOf(held.hash ?? ""));
    if (bytes === undefined) throw posixError("EIO", "The bytes of this file are not where they were stored.");
    return whole(bytes, held.size);
  }

  /** Deletes large bytes that no row refers to: what a crash left. Rejects when they cannot be deleted. @returns how many */
  async sweep(): Promise<number> {
    let deleted = 0;
    for (const { key } of listCells(this.#host, this.#doubt))
      if (await this.#deleteLarge(key.slice(this.#doubt.length))) deleted++;
    return deleted;
  }

  /** Resolves when nothing is being stored or deleted. */
  async idle(): Promise<void> {
    await this.#order.idle();
  }

  #deleteSoon(hash: string): void {
    // What fails is found again by the next sweep: the cell stays.
    this.#deleteLarge(hash).catch(() => {});
  }

  #deleteLarge(hash: string): Promise<boolean> {
    return this.#order.run(async () => {
      const isNeeded = () => this.#underway.has(hash) || readBodyHead(this.#host, this.#ns, hash) !== undefined;
      if (isNeeded() || readCell(this.#host, this.#doubt + hash) === undefined) return false;
      // Before the bytes go, the rows that referred to them must be gone for good.
      await this.#host.durable();
      if (isNeeded()) return false;
      await this.#large.delete(await this.#nameOf(hash));
      this.#host.tx(() => deleteCell(this.#host, this.#doubt + hash), "commit");
      return true;
    });
  }

  /** A store may be shared by agents: each has names of its own. */
  async #nameOf(hash: string): Promise<string> {
    this.#scope ??= sha256(this.#host.id).then((id) => id.slice(0, SCOPE_CHARS));
    return `${await this.#scope}/${this.#ns}/${hash}`;
  }
}

/** The same bytes as what they are for everybody: a `Buffer` is a Uint8Array whose `slice` does not copy. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** A part must not be taken for the file: whoever appends to it would make that so. */
function whole(bytes: Uint8Array, size: number): Uint8Array {
  if (bytes.length === size) return bytes;
  throw posixError("EIO", `Of the ${size} bytes of this file, ${bytes.length} are there. Write it anew.`);
}

function chunksOf(bytes: Uint8Array): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) chunks.push(bytes.subarray(at, at + CHUNK_BYTES));
  return chunks;
}
