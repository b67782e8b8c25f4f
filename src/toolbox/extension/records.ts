import { sha256 } from "../../base/hash.ts";
import type { Sql } from "../../port.ts";
import { deleteCell, listCells, readCell, writeCell } from "../../store/cell.ts";
import type { Described } from "./guest.ts";
import { checkManifest, type ExtensionManifest } from "./manifest.ts";

/** An extension as it is stored. */
interface ExtensionRecord {
  readonly manifest: ExtensionManifest;
  readonly source: string;
  /** Of manifest and source. */
  readonly hash: string;
  /** What somebody has agreed to, as of `wishesOf`. */
  readonly agreed: readonly string[];
  /** What the source was found to be, so that it need not run before it is used. */
  readonly described: Described;
  /** Its place in the order of loading. */
  readonly order: number;
}

const LOADED = "extension:";
/** What the sources in code were found to be. */
const DECLARED = "extension-declared:";
/** What somebody was shown of one before it is loaded. */
const SHOWN = "extension-shown:";
const MAX_SHOWN = 100;

export function writeRecord(db: Sql, record: ExtensionRecord): void {
  writeCell(db, LOADED + record.manifest.name, JSON.stringify(record));
}

/** @returns whether it was there. */
export function deleteRecord(db: Sql, name: string): boolean {
  return deleteCell(db, LOADED + name);
}

/** In load order. What cannot be read is left out, and told to `failed`. */
export function readRecords(db: Sql, failed: (name: string, error: unknown) => void): ExtensionRecord[] {
  const records = listCells(db, LOADED).flatMap(({ key, value }) => {
    try {
      const record = JSON.parse(value) as ExtensionRecord;
      return [{ ...record, manifest: checkManifest(record.manifest) }];
    } catch (thrown) {
      failed(key.slice(LOADED.length), thrown);
      return [];
    }
  });
  return records.toSorted((a, b) => a.order - b.order);
}

/** What a source in code was found to be, if it is still the same. */
export function readDeclared(db: Sql, name: string, hash: string): Described | undefined {
  const value = readCell(db, DECLARED + name);
  if (value === undefined) return undefined;
  const stored = JSON.parse(value) as { readonly hash: string; readonly described: Described };
  return stored.hash === hash ? stored.described : undefined;
}

export function writeDeclared(db: Sql, name: string, hash: string, described: Described): void {
  writeCell(db, DECLARED + name, JSON.stringify({ hash, described }));
}

/** How extensions described themselves when somebody was asked about them. Stored where there is a host. */
export class ShownExtensions {
  readonly #host: (Sql & { readonly blank: boolean }) | undefined;
  readonly #inMemory = new Map<string, string>();

  constructor(host: (Sql & { readonly blank: boolean }) | undefined) {
    this.#host = host;
  }

  get(hash: string): string | undefined {
    if (this.#host === undefined) return this.#inMemory.get(hash);
    return this.#host.blank ? undefined : readCell(this.#host, SHOWN + hash);
  }

  /** @param described undefined: it counts as shown no more. */
  set(hash: string, described: string | undefined): void {
    const host = this.#host;
    if (described === undefined) {
      this.#inMemory.delete(hash);
      if (host?.blank === false) deleteCell(host, SHOWN + hash);
    } else if (host === undefined) this.#inMemory.set(hash, described);
    else host.tx(() => writeShown(host, hash, described));
  }
}

function writeShown(db: Sql, hash: string, described: string): void {
  const others = listCells(db, SHOWN);
  // Questions that were never answered leave one each.
  for (const { key } of others.slice(0, Math.max(0, others.length - MAX_SHOWN))) deleteCell(db, key);
  writeCell(db, SHOWN + hash, described);
}

/** The fingerprint of an extension. */
export function hashOf(manifest: ExtensionManifest, source: string): Promise<string> {
  return sha256(JSON.stringify([manifest, source]));
}
