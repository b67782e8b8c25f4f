import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { PerdureError } from "../../base/error.ts";
import { openDiskStorage } from "./disk-storage.ts";
import { RESTORING } from "./disk-storage.ts";
import { resolveLimits } from "./options.ts";
import { FILE_MODE, FOLDER_MODE } from "./private-files.ts";
import { syncDirectory } from "./wal-sync.ts";

/** An agent as a backup has it. */
interface Kept {
  readonly id: string;
  readonly sha256: string;
  readonly awake: boolean;
  readonly due: number | null;
  readonly erased: number;
  readonly blobs: readonly string[];
}

/** A directory that a backup is put into. Until it is closed, no host starts there. */
export interface Restoring {
  /** Takes in an agent. @param fileOf where bytes are, by their SHA-256 @returns false: all of it was erased since */
  adopt(kept: Kept, fileOf: (sha256: string) => string): Promise<boolean>;
  /** @param outcome for the audit; `cut off`: no host is to start here */
  close(outcome: string): Promise<void>;
}

/** The SHA-256 of a file; undefined: there is none. */
export async function digestOfFile(file: string): Promise<string | undefined> {
  if (!fs.existsSync(file)) return undefined;
  const hash = createHash("sha256");
  await pipeline(fs.createReadStream(file), hash);
  return hash.digest("hex");
}

/** Begins with an empty directory. @param hostDb a host's own database, of which the audit and the list of erasures are kept */
export function openRestoring(dir: string, hostDb: string): Restoring {
  fs.mkdirSync(dir, { recursive: true, mode: FOLDER_MODE });
  const mark = path.join(dir, RESTORING);
  fs.writeFileSync(mark, "", { mode: FILE_MODE });
  fs.copyFileSync(hostDb, path.join(dir, "host.db"));
  fs.chmodSync(path.join(dir, "host.db"), FILE_MODE);
  const storage = openDiskStorage(dir, { ...resolveLimits(), isRestored: true });
  const { copies } = storage;
  if (copies === undefined) throw new PerdureError("bad_state", "A directory has copies.");
  return {
    async adopt({ id, sha256, awake, due, erased, blobs }, fileOf) {
      const bytesOf = async (name: string) => (await fs.openAsBlob(fileOf(name))).stream();
      if (copies.isErased(id, erased)) return false;
      for (const name of blobs) await copies.putBlob(id, name, await bytesOf(name));
      await copies.adopt({ id, from: id, erased, evenDeleted: false, awake, due }, await bytesOf(sha256));
      return true;
    },
    async close(outcome) {
      const about = { at: Date.now(), via: "files", who: "operator", act: "admin.restore", agent: null };
      const note = storage.audit?.note({ ...about, detail: outcome });
      if (note !== undefined) storage.audit?.settle(note, outcome === CUT_OFF ? CUT_OFF : "ok");
      await storage.durable();
      await storage.close();
      if (outcome !== CUT_OFF) fs.rmSync(mark);
      await syncDirectory(dir);
    },
  };
}

const CUT_OFF = "cut off";
