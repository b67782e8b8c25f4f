import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { PerdureError } from "../base/error.ts";
import { FILE_MODE } from "../host/node/private-files.ts";
import { makeDirectory, syncDirectory } from "../host/node/wal-sync.ts";
import { Unreached } from "./target.ts";

/*
 * A folder of backups. `data/` has bytes by their SHA-256, once each; a backup is a file with a number, of one JSON per line, which
 * says what was copied. It gets its name when all of that is on the disk: so one that was cut off is none, and those from before stay.
 */

const MARK = "perdure-backups.json";
const FORMAT = 1;
const MANIFEST = /^(\d{6,})\.jsonl$/;
const LOCK = "lock";

/** The first line of a backup. */
interface BackupHead {
  readonly backup: number;
  /** When it was begun: whatever was acknowledged before is in it. */
  readonly at: number;
  readonly version: string;
  /** The host's own database. */
  readonly host: string;
}

/** What a backup says of one agent. */
export interface BackupLine {
  readonly id: string;
  /** Of its rows. */
  readonly sha256: string;
  readonly bytes: number;
  readonly schema: number;
  readonly awake: boolean;
  readonly due: number | null;
  readonly erased: number;
  readonly version: string | null;
  readonly blobs: readonly string[];
}

/** A whole backup. */
export interface Backup {
  readonly head: BackupHead;
  readonly lines: readonly BackupLine[];
}

/** Bytes as they were received. */
interface Received {
  readonly sha256: string;
  readonly bytes: number;
  readonly isNew: boolean;
}

/** A folder of backups. */
export class BackupFolder {
  readonly #dir: string;
  readonly #touched = new Set<string>();

  constructor(dir: string) {
    this.#dir = path.resolve(dir);
  }

  /** Makes the folder, or takes it as it is, for as long as the returned function is not called. @throws PerdureError, Unreached */
  open(): () => void {
    makeDirectory(this.#dir);
    const names = fs.readdirSync(this.#dir);
    if (!names.includes(MARK)) {
      if (names.length > 0) throw noFolder(this.#dir, "has other files in it. Name an empty directory, or a new one");
      writeSynced(path.join(this.#dir, MARK), JSON.stringify({ format: FORMAT }));
    }
    this.#check();
    const release = takeLock(path.join(this.#dir, LOCK));
    this.#dropDrafts();
    return release;
  }

  /** The numbers of its backups, the newest last. @throws PerdureError when this is no such folder */
  numbers(): number[] {
    this.#check();
    const names = fs.readdirSync(this.#dir).flatMap((name) => MANIFEST.exec(name)?.[1] ?? []);
    return names.map(Number).sort((a, b) => a - b);
  }

  /** A backup: the newest, or the one with that number. @throws PerdureError `not_found` */
  read(number?: number): Backup {
    const numbers = this.numbers();
    const chosen = number ?? numbers.at(-1);
    if (chosen === undefined || !numbers.includes(chosen))
      throw new PerdureError(
        "not_found",
        numbers.length === 0
          ? `There is no whole backup in ${this.#dir}.`
          : `There is no backup ${String(chosen)} in ${this.#dir}. There are: ${numbers.join(", ")}.`,
      );
    const [head, ...rest] = fs.readFileSync(this.#manifest(chosen), "utf8").trimEnd().split("\n");
    const end = JSON.parse(rest.pop() ?? "{}") as { readonly end?: number };
    const lines = rest.map((line) => JSON.parse(line) as BackupLine);
    if (end.end !== lines.length) throw noFolder(this.#manifest(chosen), "is not whole");
    return { head: JSON.parse(head ?? "{}") as BackupHead, lines };
  }

  has(sha256: string): boolean {
    return fs.existsSync(this.file(sha256));
  }

  /** Where bytes are. */
  file(sha256: string): string {
    return path.join(this.#dir, placeOf(sha256));
  }

  /** Stores bytes as they come. @param check may refuse them, by where they are now @throws what it or `bytes` throws */
  async store(bytes: AsyncIterable<Uint8Array>, check?: (file: string) => void): Promise<Received> {
    const folder = path.join(this.#dir, "data");
    makeDirectory(folder);
    const draft = path.join(folder, `${randomUUID()}.draft`);
    const hash = createHash("sha256");
    let size = 0;
    try {
      const file = await fs.promises.open(draft, "wx", FILE_MODE);
      try {
        for await (const piece of bytes) {
          hash.update(piece);
          size += piece.byteLength;
          await file.writeFile(piece);
        }
        await file.datasync();
      } finally {
        await file.close();
      }
      check?.(draft);
      const sha256 = hash.digest("hex");
      const isNew = !this.has(sha256);
      if (isNew) {
        makeDirectory(path.dirname(this.file(sha256)));
        await fs.promises.rename(draft, this.file(sha256));
        this.#touched.add(path.dirname(this.file(sha256)));
      }
      return { sha256, bytes: size, isNew };
    } finally {
      await fs.promises.rm(draft, { force: true });
    }
  }

  /** Writes down that a backup is whole. @returns its number */
  async finish(head: Omit<BackupHead, "backup">, lines: readonly BackupLine[]): Promise<number> {
    for (const folder of this.#touched) await syncDirectory(folder);
    this.#touched.clear();
    const backup = (this.numbers().at(-1) ?? 0) + 1;
    const all = [{ backup, ...head }, ...lines, { end: lines.length }];
    const draft = path.join(this.#dir, "backup.draft");
    writeSynced(draft, `${all.map((line) => JSON.stringify(line)).join("\n")}\n`);
    fs.renameSync(draft, this.#manifest(backup));
    await syncDirectory(this.#dir);
    return backup;
  }

  /** Forgets all but the newest backups, and the bytes that only those others had. @returns how many backups went */
  trim(keep: number): number {
    const old = this.numbers().slice(0, -keep);
    if (old.length === 0) return 0;
    for (const number of old) fs.rmSync(this.#manifest(number));
    const kept = new Set(this.numbers().flatMap((number) => namesOf(this.read(number))));
    for (const folder of fs.readdirSync(path.join(this.#dir, "data"))) {
      const at = path.join(this.#dir, "data", folder);
      for (const name of fs.readdirSync(at)) if (!kept.has(name)) fs.rmSync(path.join(at, name));
    }
    return old.length;
  }

  #manifest(number: number): string {
    return path.join(this.#dir, `${String(number).padStart(6, "0")}.jsonl`);
  }

  #check(): void {
    let format: unknown;
    try {
      format = (JSON.parse(fs.readFileSync(path.join(this.#dir, MARK), "utf8")) as { format?: unknown }).format;
    } catch {
      throw noFolder(this.#dir, "is no folder of backups");
    }
    if (format !== FORMAT) throw noFolder(this.#dir, "was written by another version of Perdure. Use that one");
  }

  /** What a backup that was cut off has left. */
  #dropDrafts(): void {
    const data = path.join(this.#dir, "data");
    if (!fs.existsSync(data)) return;
    for (const name of fs.readdirSync(data)) if (name.endsWith(".draft")) fs.rmSync(path.join(data, name));
  }
}

/** Where bytes are, in the folder. */
export function placeOf(sha256: string): string {
  return path.join("data", sha256.slice(0, 2), sha256);
}

/** The bytes that a backup is made of, by their SHA-256. */
export function namesOf({ head, lines }: Backup): string[] {
  return [head.host, ...lines.flatMap(({ sha256, blobs }) => [sha256, ...blobs])];
}

function noFolder(place: string, why: string): PerdureError {
  return new PerdureError("bad_config", `${place} ${why}.`);
}

function writeSynced(file: string, text: string): void {
  const fd = fs.openSync(file, "w", FILE_MODE);
  try {
    fs.writeSync(fd, text);
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/** One backup at a time. The lock of a process that is no more does not count. */
function takeLock(file: string): () => void {
  for (;;) {
    try {
      fs.writeFileSync(file, String(process.pid), { flag: "wx", mode: FILE_MODE });
      return () => fs.rmSync(file, { force: true });
    } catch (thrown) {
      if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST")) throw thrown;
      const pid = Number(fs.readFileSync(file, "utf8"));
      if (isRunning(pid))
        throw new Unreached(
          `Another backup (process ${pid}) is being written to ${path.dirname(file)}. If there is none, delete ${file}.`,
        );
      fs.rmSync(file, { force: true });
    }
  }
}

function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown && thrown.code === "EPERM";
  }
}
