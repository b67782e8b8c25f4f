import { constants } from "node:fs";
import { chmod, lstat, open, readdir, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { errorText } from "../../../../base/error.ts";
import type { SandboxFiles } from "../../sandbox.ts";
import { joinPath } from "../../path.ts";
import type { CheckoutBounds, FilesReport } from "../files-report.ts";
import { hashOf, type Original, stampOf, toJail } from "./checkout.ts";
import { JAIL_WORKSPACE } from "./jail-paths.ts";

/** What a path is after the run; bytes are read only when they come back. */
type Result =
  | { readonly type: "file"; readonly size: number; readonly mode: number; readonly stamp: string }
  | Exclude<Original, { type: "file" }>;

interface Draft {
  readonly written: string[];
  readonly deleted: string[];
  readonly conflicts: { path: string; kept: string | undefined }[];
  readonly refused: { path: string; reason: string }[];
}

const MAX_CONFLICT_NAMES = 100;
/** One at a time for the same files: two runs that end together must see what the other one wrote. */
const turns = new WeakMap<SandboxFiles, Promise<unknown>>();

/**
 * Brings back what a run changed in its copy, once none of its processes is left. The report has what cannot come back; others'
 * changes stay, with the run's version put beside them.
 */
export async function checkIn(
  files: SandboxFiles,
  folder: string,
  originals: ReadonlyMap<string, Original>,
  bounds: CheckoutBounds,
): Promise<FilesReport> {
  const before = turns.get(files) ?? Promise.resolve();
  const mine = before.then(() => bringBack(files, folder, originals, bounds));
  turns.set(
    files,
    mine.catch(() => undefined),
  );
  return await mine;
}

async function bringBack(
  files: SandboxFiles,
  folder: string,
  originals: ReadonlyMap<string, Original>,
  bounds: CheckoutBounds,
): Promise<FilesReport> {
  const report: Draft = { written: [], deleted: [], conflicts: [], refused: [] };
  const results = await resultsOf(folder, bounds, report);
  if (results === undefined) return report;

  const changed: [path: string, result: Result][] = [];
  let bytes = 0;
  for (const [path, result] of results) {
    if (result.type === "file") {
      if (isUntouched(originals.get(path), result)) continue;
      if (result.size > bounds.fileBytes) {
        report.refused.push({ path, reason: `It has ${result.size} bytes; at most ${bounds.fileBytes} come back.` });
        continue;
      }
      bytes += result.size;
    }
    changed.push([path, result]);
  }
  if (bytes > bounds.bytes) {
    report.refused.push({
      path: "/",
      reason: `${bytes} bytes changed, and at most ${bounds.bytes} come back: none did.`,
    });
    return report;
  }

  const left = new Set(report.refused.map(({ path }) => path));
  const attempt = async (path: string, work: () => Promise<void>) => {
    try {
      await work();
    } catch (thrown) {
      report.refused.push({ path, reason: errorText(thrown) });
    }
  };
  // What is inside goes before what it is in.
  for (const [path, original] of [...originals].reverse()) {
    const result = results.get(path);
    if (result?.type === original.type || left.has(path)) continue;
    await attempt(path, async () => await removeOne(files, path, original, report));
  }
  for (const [path, result] of changed) {
    const original = originals.get(path);
    const same = original?.type === result.type ? original : undefined;
    await attempt(path, async () => await writeOne(files, folder, path, result, same, report));
  }
  return report;
}

async function removeOne(files: SandboxFiles, path: string, original: Original, report: Draft): Promise<void> {
  const now = await files.lstat(path);
  if (now === null) return;
  const empty = original.type !== "directory" || (now.type === "directory" && (await files.readDir(path)).length === 0);
  if (!empty || !(await isStill(files, path, original))) {
    report.conflicts.push({ path, kept: undefined });
    return;
  }
  await files.rm(path, { recursive: original.type === "directory" });
  report.deleted.push(path);
}

async function writeOne(
  files: SandboxFiles,
  folder: string,
  path: string,
  result: Result,
  original: Original | undefined,
  report: Draft,
): Promise<void> {
  const now = await files.lstat(path);
  if (result.type === "directory") {
    if (now?.type === "directory") return;
    if (now !== null) report.conflicts.push({ path, kept: undefined });
    else if (original === undefined) {
      await files.mkdir(path, { recursive: true });
      report.written.push(path);
    }
    return;
  }
  if (result.type === "symlink") {
    if (original?.type === "symlink" && original.target === result.target) return;
    const target = fromJail(path, result.target);
    if (target === undefined) {
      report.refused.push({ path, reason: "It is a link that leads out of the workspace." });
      return;
    }
    const to = await placeFor(files, path, now !== null && !(await isStill(files, path, original)), report);
    if (to === path && now !== null) await files.rm(path);
    await files.symlink(target, to);
    report.written.push(to);
    return;
  }
  const content = await readResult(join(folder, path), result.size);
  const kept = original?.type === "file" ? original : undefined;
  if (kept?.hash === hashOf(content)) {
    if (kept.mode === result.mode || now?.type !== "file") return;
  } else if (!(now?.type === "file" && hashOf(await files.readFileBytes(path)) === hashOf(content))) {
    const conflict = now === null ? original !== undefined : !(await isStill(files, path, original));
    const to = await placeFor(files, path, conflict, report);
    await files.writeFileBytes(to, content);
    report.written.push(to);
    if (to !== path) return;
  }
  if ((result.mode & 0o111) !== ((kept?.mode ?? 0) & 0o111)) {
    await files.chmod(path, result.mode);
    if (report.written.at(-1) !== path) report.written.push(path);
  }
}

/** Where the run's version goes: its own path, or a new one beside it. */
async function placeFor(files: SandboxFiles, path: string, conflict: boolean, report: Draft): Promise<string> {
  if (!conflict) return path;
  for (let number = 1; number <= MAX_CONFLICT_NAMES; number += 1) {
    const kept = `${path}.conflict${number === 1 ? "" : `-${number}`}`;
    if ((await files.lstat(kept)) !== null) continue;
    report.conflicts.push({ path, kept });
    return kept;
  }
  throw new Error("It was changed elsewhere meanwhile, and there are too many versions beside it already.");
}

/** Whether a path is what it was when the run began. */
async function isStill(files: SandboxFiles, path: string, original: Original | undefined): Promise<boolean> {
  const now = await files.lstat(path);
  if (original === undefined || now === null) return now === null && original === undefined;
  if (now.type !== original.type) return false;
  if (original.type === "symlink") return original.target === toJail(await files.readlink(path));
  return original.type === "directory" || hashOf(await files.readFileBytes(path)) === original.hash;
}

function isUntouched(original: Original | undefined, result: Result): boolean {
  return original?.type === "file" && result.type === "file" && original.stamp === result.stamp;
}

async function resultsOf(
  folder: string,
  bounds: CheckoutBounds,
  report: Draft,
): Promise<Map<string, Result> | undefined> {
  const results = new Map<string, Result>();
  const folders = ["/"];
  for (let here = folders.shift(); here !== undefined; here = folders.shift()) {
    const real = join(folder, here);
    // The run may have locked it against its own user, which is ours when we are not root.
    await chmod(real, 0o755);
    for (const name of await readdir(real)) {
      const path = joinPath(here, name);
      if (results.size >= bounds.files) {
        const reason = `There are more than ${bounds.files} files and folders after the run: none came back.`;
        report.refused.push({ path: "/", reason });
        return undefined;
      }
      const found = await lstat(join(folder, path)).catch(() => undefined);
      if (found?.isDirectory() === true) {
        results.set(path, { type: "directory" });
        folders.push(path);
      } else if (found?.isSymbolicLink() === true) {
        results.set(path, { type: "symlink", target: await readlink(join(folder, path)) });
      } else if (found?.isFile() === true) {
        const stamp = await stampOf(join(folder, path));
        results.set(path, { type: "file", size: found.size, mode: 0o644 | (found.mode & 0o111), stamp });
      } else {
        const reason = found === undefined ? "Its name is no valid text." : "It is a pipe, a socket or a device.";
        report.refused.push({ path, reason });
      }
    }
  }
  return results;
}

/** Links stay inside: a way through `..` that leaves the workspace would mean something else there. */
function fromJail(path: string, target: string): string | undefined {
  const absolute = posix.resolve(posix.join(JAIL_WORKSPACE, posix.dirname(path)), target);
  if (absolute !== JAIL_WORKSPACE && !absolute.startsWith(`${JAIL_WORKSPACE}/`)) return undefined;
  if (!target.startsWith("/")) return target;
  return absolute === JAIL_WORKSPACE ? "/" : absolute.slice(JAIL_WORKSPACE.length);
}

async function readResult(path: string, size: number): Promise<Uint8Array> {
  await chmod(path, 0o600);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const content = await file.readFile();
    if (content.byteLength !== size) throw new Error("It changed while it was read.");
    return new Uint8Array(content);
  } finally {
    await file.close();
  }
}
