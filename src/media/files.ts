import { InOrder } from "../base/in-order.ts";
import { sha256 } from "../base/hash.ts";
import { isRecord, tryParseJson } from "../base/json.ts";
import type { AgentHost } from "../port.ts";
import { deleteCell, listCells, readCell, writeCell } from "../store/cell.ts";

/** Cells that say what a file is. One is written before its bytes are: so no bytes are ever forgotten. */
const PREFIX = "file:";
const NAME = /^[0-9a-f]{64}$/;
/** How long bytes may wait for the message that refers to them. */
const PENDING_MS = 60 * 60 * 1000;

/** What is known of a file. */
export interface FileInfo {
  readonly name: string;
  readonly mediaType: string;
  /** Bytes. */
  readonly size: number;
  /** When it was stored, in milliseconds since the epoch. */
  readonly at: number;
  /** `seq` of messages that it was taken out of. Others may refer to it too. */
  readonly of: readonly number[];
  /** No message refers to it yet. */
  readonly pending: boolean;
  /** It was deleted because its time was over. */
  readonly expired: boolean;
}

/** A file and its bytes. */
interface StoredFile extends FileInfo {
  readonly bytes: Uint8Array;
}

/** What files ask of a host. */
export type FilesHost = Pick<AgentHost, "sql" | "tx" | "clock" | "blobs" | "durable">;

/** An agent's files: bytes too large for rows, named by content, with a cell each. Stores and deletes never overlap. */
export class Files {
  readonly #host: FilesHost;
  readonly #order = new InOrder();

  constructor(host: FilesHost) {
    this.#host = host;
  }

  /** Stores bytes. Rejects when they cannot be stored. @param pending until a message refers to it. */
  put(bytes: Uint8Array, mediaType: string, pending = false): Promise<FileInfo> {
    return this.#order.run(async () => {
      const name = await sha256(bytes);
      const known = this.info(name);
      const info: FileInfo = {
        ...{ name, mediaType, size: bytes.length, at: this.#host.clock.now(), of: known?.of ?? [], expired: false },
        pending: pending && (known === undefined || known.pending || known.expired),
      };
      this.#write(info);
      const stored = await this.#host.blobs.put(bytes);
      if (stored === name) return info;
      // A host may name its blobs otherwise; then that is the file's name.
      deleteCell(this.#host, PREFIX + name);
      const renamed = { ...info, name: stored };
      this.#write(renamed);
      return renamed;
    });
  }

  /** A message refers to it now, in the caller's transaction. */
  refer(name: string, seq: number): void {
    const info = this.info(name);
    if (info !== undefined) this.#write({ ...info, pending: false, of: [...new Set([...info.of, seq])] });
  }

  info(name: string): FileInfo | undefined {
    if (!NAME.test(name)) return undefined;
    const value = readCell(this.#host, PREFIX + name);
    return value === undefined ? undefined : parseInfo(name, value);
  }

  list(): FileInfo[] {
    return listCells(this.#host, PREFIX).map(({ key, value }) => parseInfo(key.slice(PREFIX.length), value));
  }

  /** The file; undefined when there is none of that name. */
  async read(name: string): Promise<StoredFile | undefined> {
    const info = this.info(name);
    if (info === undefined || info.expired) return undefined;
    const bytes = await this.#host.blobs.get(name);
    return bytes && { ...info, bytes };
  }

  /** Deletes the bytes; what is known of it stays, to say that its time is over. */
  expire(name: string): Promise<void> {
    return this.#order.run(async () => {
      const info = this.info(name);
      if (info === undefined) return;
      // First the cell: whoever asks meanwhile is told the truth.
      this.#write({ ...info, expired: true });
      await this.#host.durable();
      await this.#host.blobs.delete(name);
    });
  }

  /** Deletes bytes whose cell is gone, in a transaction before this. Those that were stored again since stay. */
  deleteBytes(name: string): Promise<void> {
    return this.#order.run(async () => {
      if (this.info(name) === undefined) await this.#host.blobs.delete(name);
    });
  }

  /** Forgets what is known of a file, in the caller's transaction; its bytes are to be deleted after it. */
  forget(name: string): void {
    deleteCell(this.#host, PREFIX + name);
  }

  /** Deletes what was stored for a message that never came to refer to it. */
  async collect(): Promise<number> {
    const stale = this.list().filter(({ pending, at }) => pending && at <= this.#host.clock.now() - PENDING_MS);
    for (const { name } of stale) await this.drop(name);
    return stale.length;
  }

  /** Deletes a file that no message refers to yet; any other stays. */
  async drop(name: string): Promise<void> {
    if (this.info(name)?.pending !== true) return;
    this.forget(name);
    await this.deleteBytes(name);
  }

  #write(info: FileInfo): void {
    const { name, mediaType, size, at, of, pending, expired } = info;
    const value = { mediaType, size, at, of, ...(pending && { pending }), ...(expired && { expired }) };
    this.#host.tx(() => writeCell(this.#host, PREFIX + name, JSON.stringify(value)), "commit");
  }
}

const known = new WeakMap<FilesHost, Files>();

/** The files of an agent: the same object for all who work on them. */
export function filesOf(host: FilesHost): Files {
  let files = known.get(host);
  if (files === undefined) known.set(host, (files = new Files(host)));
  return files;
}

function parseInfo(name: string, json: string): FileInfo {
  const value = tryParseJson(json);
  const fields = isRecord(value) ? value : {};
  const number = (field: unknown) => (typeof field === "number" ? field : 0);
  return {
    name,
    mediaType: typeof fields.mediaType === "string" ? fields.mediaType : "application/octet-stream",
    size: number(fields.size),
    at: number(fields.at),
    of: Array.isArray(fields.of) ? fields.of.filter((seq) => typeof seq === "number") : [],
    pending: fields.pending === true,
    expired: fields.expired === true,
  };
}
