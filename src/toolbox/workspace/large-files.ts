import { sha256 } from "../../base/hash.ts";
import type { AgentHost } from "../../port.ts";
import { deleteCell, readCell, writeCell } from "../../store/cell.ts";
import { concat } from "../../base/bytes.ts";
import { encodeText } from "./text.ts";

/**
 * Where files go that are too large for the database. The workspace gives names, which begin with the agent's own and always mean
 * the same bytes. Methods may be slow and may reject: then the file operation rejects, and what was there stays.
 */
export interface LargeFiles {
  /** Resolves when the bytes are safe. The same name may be put again, with the same bytes. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** The bytes, or `undefined` when there are none of that name. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** Deleting what is not there does nothing. */
  delete(name: string): Promise<void>;
}

/** The part of a bucket that is used, as S3 and R2 clients have it or can be given it in a few lines. */
export interface Bucket {
  put(key: string, bytes: Uint8Array): Promise<unknown>;
  get(key: string): Promise<Uint8Array | { arrayBuffer(): Promise<ArrayBuffer> } | null | undefined>;
  delete(key: string): Promise<unknown>;
}

/** Large files in a bucket. @param options.prefix stands before each key; give each host its own */
export function bucketFiles(bucket: Bucket, options: { readonly prefix?: string } = {}): LargeFiles {
  const { prefix = "" } = options;
  return {
    async put(name, bytes) {
      await bucket.put(prefix + name, bytes);
    },
    async get(name) {
      const found = await bucket.get(prefix + name);
      if (found === null || found === undefined) return undefined;
      return found instanceof Uint8Array ? found : new Uint8Array(await found.arrayBuffer());
    },
    async delete(name) {
      await bucket.delete(prefix + name);
    },
  };
}

/** Large files in a directory, one file each. On hosts with Node; it is loaded when the first file is stored or read. */
export function directoryFiles(directory: string): LargeFiles {
  let opened: Promise<LargeFiles> | undefined;
  const open = () => (opened ??= import("./node/directory-files.ts").then((it) => it.openDirectoryFiles(directory)));
  return {
    put: async (name, bytes) => (await open()).put(name, bytes),
    get: async (name) => (await open()).get(name),
    delete: async (name) => (await open()).delete(name),
  };
}

const PREFIX = "workspace-blob:";

/**
 * Large files among the agent's blobs. Those are named by content, so the file's name goes in front of the bytes: no deletion
 * hits another's.
 */
export function blobFiles(host: Pick<AgentHost, "sql" | "tx" | "blobs">): LargeFiles {
  return {
    async put(name, bytes) {
      const whole = concat([headOf(name), bytes]);
      const note = (blob: string) => host.tx(() => writeCell(host, PREFIX + name, blob), "commit");
      // Before the bytes: so none are ever forgotten.
      const expected = await sha256(whole);
      note(expected);
      const stored = await host.blobs.put(whole);
      if (stored !== expected) note(stored);
    },
    async get(name) {
      const blob = readCell(host, PREFIX + name);
      return blob === undefined ? undefined : (await host.blobs.get(blob))?.subarray(headOf(name).length);
    },
    async delete(name) {
      const blob = readCell(host, PREFIX + name);
      if (blob === undefined) return;
      await host.blobs.delete(blob);
      host.tx(() => deleteCell(host, PREFIX + name), "commit");
    },
  };
}

function headOf(name: string): Uint8Array {
  return encodeText(`perdure ${name}\n`);
}
