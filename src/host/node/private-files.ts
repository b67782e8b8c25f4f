import fs from "node:fs";
import path from "node:path";

/** What a host makes is for the user that it runs as, and nobody else, whatever the umask of its process. */
export const FILE_MODE = 0o600;
export const FOLDER_MODE = 0o700;
const OTHERS = 0o077;

/** What a host keeps in its directory. */
const FOLDERS: ReadonlySet<string> = new Set(["agents", "blobs", "spare", ".admin"]);
const FILES = /^(host\.(db|pid)(-wal|-shm|-journal)?|agents\.json(\.draft)?|admin\.sock)$/;

/**
 * Closes what an earlier version, or a copy, left open to others. If others' files are in `dir`, they and `dir` are left alone.
 * Looks only into folders that were open. Never throws: modes that cannot be changed were not the host's to choose.
 */
export function closeToOthers(dir: string): void {
  const names = listed(dir);
  const own = names.filter(({ name }) => FOLDERS.has(name) || FILES.test(name));
  for (const entry of own) tighten(dir, entry);
  if (own.length === names.length) chmod(dir, FOLDER_MODE);
}

/** Makes an empty file for SQLite, whose further files take its mode. Never opens one that is there: see `WalSync`. */
export function makePrivateFile(file: string): void {
  try {
    fs.closeSync(fs.openSync(file, "wx", FILE_MODE));
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST")) throw thrown;
  }
}

/** A link leads to what somebody has put elsewhere on purpose. */
function tighten(folder: string, entry: fs.Dirent): void {
  const at = path.join(folder, entry.name);
  if (entry.isFile()) chmod(at, FILE_MODE);
  else if (entry.isDirectory() && chmod(at, FOLDER_MODE)) for (const inner of listed(at)) tighten(at, inner);
}

/** @returns whether others could do something with it before */
function chmod(at: string, mode: number): boolean {
  try {
    if ((fs.lstatSync(at).mode & OTHERS) === 0) return false;
    fs.chmodSync(at, mode);
    return true;
  } catch {
    return false;
  }
}

function listed(dir: string): fs.Dirent[] {
  try {
    return fs.readdirSync(dir, { withFileTypes: true });
  } catch {
    return [];
  }
}
