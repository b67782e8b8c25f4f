import { lstat, open, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { PerdureError } from "../../../base/error.ts";
import type { SkillFolder } from "../load-all.ts";
import { MAX_RESOURCE_BYTES, MAX_RESOURCES } from "../read-skill.ts";

const MAX_DEPTH = 8;

interface Found {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Every directory in `root`, with its files. Names that begin with a dot are passed over. */
export async function listDirectory(root: string): Promise<{ folders: SkillFolder[]; fingerprint: string }> {
  const real = await realpath(root);
  const folders: SkillFolder[] = [];
  const seen: unknown[] = [];
  const entries = await readdir(real, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith(".") || !(entry.isDirectory() || entry.isSymbolicLink())) continue;
    const folder = await listFolder(real, entry.name);
    folders.push(folder.made);
    seen.push([entry.name, folder.files.map(({ path, size, mtimeMs }) => [path, size, mtimeMs]), folder.made.fault]);
  }
  return { folders, fingerprint: JSON.stringify(seen) };
}

async function listFolder(root: string, name: string): Promise<{ made: SkillFolder; files: Found[] }> {
  const base = join(root, name);
  const files: Found[] = [];
  const read = (path: string): Promise<Uint8Array> => readInside(base, path);
  try {
    if ((await lstat(base)).isSymbolicLink()) throw new PerdureError("bad_input", "It is a link.");
    await walk(base, "", 0, files);
    return { made: { name, files, read }, files };
  } catch (thrown) {
    if (!PerdureError.is(thrown)) throw thrown;
    return { made: { name, files, read, fault: thrown.message }, files };
  }
}

async function walk(base: string, below: string, depth: number, found: Found[]): Promise<void> {
  if (depth > MAX_DEPTH) throw new PerdureError("limit", `Its directories are nested deeper than ${MAX_DEPTH}.`);
  for (const entry of await readdir(join(base, below), { withFileTypes: true })) {
    if (entry.name.startsWith(".")) continue;
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) {
      await walk(base, path, depth + 1, found);
      continue;
    }
    if (found.length > MAX_RESOURCES) throw new PerdureError("limit", `It has more than ${MAX_RESOURCES} files.`);
    const target = await insideOf(base, path);
    if (target === undefined)
      throw new PerdureError("bad_input", `${path} is a link that leads out of it, or nowhere.`);
    const stat = await lstat(target);
    if (!stat.isFile()) throw new PerdureError("bad_input", `${path} is not a plain file.`);
    found.push({ path, size: stat.size, mtimeMs: stat.mtimeMs });
  }
}

/** Where a path really is, or undefined when that is not in the directory. */
async function insideOf(base: string, path: string): Promise<string | undefined> {
  try {
    const target = await realpath(join(base, path));
    return target.startsWith(base + sep) ? target : undefined;
  } catch {
    return undefined;
  }
}

/** Looks again where the file is: it may have become a link since it was listed. */
async function readInside(base: string, path: string): Promise<Uint8Array> {
  const target = await insideOf(base, path);
  if (target === undefined) throw new PerdureError("not_found", `The file "${path}" is gone.`);
  const file = await open(target, "r");
  try {
    const { size } = await file.stat();
    if (size > MAX_RESOURCE_BYTES) throw new PerdureError("limit", `The file "${path}" is too large.`);
    return new Uint8Array(await file.readFile());
  } finally {
    await file.close();
  }
}
