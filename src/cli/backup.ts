import { PerdureError } from "../base/error.ts";
import { all, answered, type Call, type Item, NotHeld, one } from "./call.ts";
import { type Backup, BackupFolder, type BackupLine } from "./backup-folder.ts";
import { fetchRows, piecesOf } from "./copy-agents.ts";
import { inParallel, Progress } from "./progress.ts";

/** How many agents are asked for at a time: enough to keep the disk busy, and few for a host that has other things to do. */
const AT_ONCE = 4;
/** A file may be deleted between the copy of the rows that name it and its own. */
const MAX_TRIES = 3;

/** What became of a backup. */
interface BackupDone extends Item {
  readonly backup: number;
  readonly at: number;
  readonly agents: number;
  /** Agents whose rows are the same as in the backup before. */
  readonly unchanged: number;
  readonly bytes: number;
  /** Bytes that were not there yet. */
  readonly newBytes: number;
}

/** Copies all agents of a host or of a directory into a folder, one after the other, and checks each copy. */
export async function backUp(call: Call, to: string, keep: number | undefined): Promise<BackupDone> {
  // What only this takes.
  const { flawsOf } = await import("../host/node/flaws.ts");
  const { schemaOf } = await import("../host/node/newcomer.ts");
  const folder = new BackupFolder(to);
  const release = folder.open();
  try {
    const { at, version } = (await one(call, "POST", "backup", {})) as { at: number; version: string };
    const before = new Map(newest(folder)?.lines.map((line) => [line.id, line]));
    const found = (await all(call, "backup")) as unknown as { id: string; version: string | null }[];
    const progress = new Progress("agents", found.length);
    const sums = { unchanged: 0, bytes: 0, newBytes: 0 };
    const lines: BackupLine[] = [];

    const store = async (bytes: AsyncIterable<Uint8Array>, check?: (file: string) => void) => {
      const { isNew, ...stored } = await folder.store(bytes, check);
      if (isNew) sums.newBytes += stored.bytes;
      return stored;
    };
    const copyBlob = async (id: string, name: string): Promise<boolean> => {
      if (folder.has(name)) return true;
      try {
        const place = `agents/${encodeURIComponent(id)}/blobs/${name}`;
        const { sha256 } = await store(piecesOf(await answered(call, "GET", place)));
        if (sha256 !== name) throw new NotHeld(`The file ${name} of ${id} is damaged: it has another SHA-256.`);
        return true;
      } catch (thrown) {
        if (PerdureError.is(thrown, "not_found")) return false;
        throw thrown;
      }
    };
    const copyAgent = async (id: string): Promise<BackupLine> => {
      for (let tries = 1; ; tries++) {
        const { about, bytes } = await fetchRows(call, id);
        let schema = 0;
        const stored = await store(bytes, (file) => {
          const [flaw] = flawsOf(file, undefined);
          if (flaw !== undefined) throw new NotHeld(`The rows of ${id} are damaged: ${flaw}.`);
          schema = schemaOf(file);
        });
        const gone: string[] = [];
        for (const name of about.blobs) if (!(await copyBlob(id, name))) gone.push(name);
        // Files that nothing names any more may go while this runs: then newer rows say so.
        if (gone.length > 0 && tries < MAX_TRIES) continue;
        const { awake, due, erased, version: rows } = about;
        const blobs = about.blobs.filter((name) => !gone.includes(name));
        return { id, ...stored, schema, awake, due, erased, version: rows, blobs };
      }
    };
    await inParallel(found, AT_ONCE, async ({ id, version: rows }) => {
      const known = before.get(id);
      const isSame = known !== undefined && rows !== null && known.version === rows && isThere(folder, known);
      try {
        const line = isSame ? known : await copyAgent(id);
        lines.push(line);
        sums.bytes += line.bytes;
        if (isSame || known?.sha256 === line.sha256) sums.unchanged++;
      } catch (thrown) {
        // It was deleted since the list was made.
        if (!PerdureError.is(thrown, "not_found")) throw thrown;
      }
      progress.step();
    });
    progress.end();
    // Last: what was erased meanwhile is on its list.
    const host = await store(piecesOf(await answered(call, "GET", "backup/host")));
    lines.sort((a, b) => (a.id < b.id ? -1 : 1));
    const backup = await folder.finish({ at, version, host: host.sha256 }, lines);
    await one(call, "POST", "backup/done", { at, agents: lines.length });
    if (keep !== undefined) folder.trim(keep);
    return { backup, at, agents: lines.length, ...sums };
  } finally {
    release();
  }
}

function newest(folder: BackupFolder): Backup | undefined {
  return folder.numbers().length === 0 ? undefined : folder.read();
}

function isThere(folder: BackupFolder, { sha256, blobs }: BackupLine): boolean {
  return [sha256, ...blobs].every((name) => folder.has(name));
}
