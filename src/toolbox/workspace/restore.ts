import { PerdureError } from "../../base/error.ts";
import type { AgentHost } from "../../port.ts";
import { closeFilesSince, type FilePlace, type FileRow, filesOnlyAt, LIVE, reviveFiles } from "../../store/file.ts";
import type { Bodies } from "./bodies.ts";
import { unifiedDiff } from "./diff.ts";
import { joinPath } from "../sandbox/path.ts";
import { decodeText } from "./text.ts";
import type { Tree } from "./tree.ts";
import type { PointChange, RestoreResult } from "./types.ts";
import type { Versions } from "./versions.ts";

/** Larger files are only said to differ. */
const MAX_DIFF_BYTES = 1_000_000;
/** Further changes are listed without their lines. */
const MAX_DIFFS = 200;

/** What a namespace is made of. */
export interface Realm {
  readonly host: Pick<AgentHost, "sql" | "tx" | "clock" | "breathe">;
  readonly ns: string;
  readonly versions: Versions;
  readonly bodies: Bodies;
  readonly tree: Tree;
}

/** The version of a point. @throws PerdureError `not_found` */
export function versionOf({ versions }: Realm, point: string | number): number {
  // Before the first change there was nothing, and that needs no rows.
  if (point === 0) return 0;
  const found =
    typeof point === "number" ? versions.list().find(({ version }) => version === point) : versions.find(point);
  if (found !== undefined) return found.version;
  const what = typeof point === "number" ? `version ${point}` : `the message ${JSON.stringify(point)}`;
  throw new PerdureError("not_found", `There is no point of ${what}. It may be forgotten; points() lists what exists.`);
}

/**
 * Restores the tree to a point, in the caller's transaction. The present becomes a point first, so no current row is lost, and
 * all rows move in two statements, however many there are.
 */
export function restoreTo(realm: Realm, version: number): RestoreResult {
  const { host, ns, versions, bodies } = realm;
  const before = versions.counter().version;
  const undo = `undo:${before}`;
  bodies.release(versions.mark(undo, host.clock.now()));
  const now = before + 1;
  const closed = new Set(closeFilesSince(host, ns, version, now).map(pathOf));
  const created: string[] = [];
  const updated: string[] = [];
  for (const row of reviveFiles(host, ns, version, now)) {
    const path = pathOf(row);
    (closed.delete(path) ? updated : created).push(path);
    bodies.referAgain(row);
  }
  const deleted = [...closed];
  if (created.length + updated.length + deleted.length > 0) versions.open();
  return { version, undo, created: created.sort(), updated: updated.sort(), deleted: deleted.sort() };
}

/** What differs between two versions; `undefined` is now. */
export async function diffVersions(realm: Realm, a: number, b: number | undefined): Promise<PointChange[]> {
  const { host, ns } = realm;
  const other = b ?? LIVE - 1;
  const before = new Map(filesOnlyAt(host, ns, a, other).map((row) => [pathOf(row), row]));
  const after = new Map(filesOnlyAt(host, ns, other, a).map((row) => [pathOf(row), row]));
  const changes: PointChange[] = [];
  for (const path of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const [old, now] = [before.get(path), after.get(path)];
    if (old !== undefined && now !== undefined && isSame(old, now)) continue;
    const change = old === undefined ? "added" : now === undefined ? "removed" : "changed";
    const diff = changes.length < MAX_DIFFS ? await diffOf(realm, path, old, now) : undefined;
    changes.push({ path, change, kind: (now ?? old)?.kind ?? "file", ...(diff !== undefined && { diff }) });
    await host.breathe();
  }
  return changes;
}

async function diffOf(
  { bodies }: Realm,
  path: string,
  old: FileRow | undefined,
  now: FileRow | undefined,
): Promise<string | undefined> {
  const rows = [old, now].filter((row) => row !== undefined);
  if (rows.some(({ kind, size }) => kind !== "file" || size > MAX_DIFF_BYTES)) return undefined;
  try {
    const [a, b] = await Promise.all(
      [old, now].map(async (row) => (row === undefined ? "" : decodeText(await bodies.read(row)))),
    );
    if (a === undefined || b === undefined) return undefined;
    return unifiedDiff(a, b, { a: old === undefined ? "/dev/null" : path, b: now === undefined ? "/dev/null" : path });
  } catch (thrown) {
    // Too many lines, or the point was forgotten meanwhile: what changed is known all the same.
    if (PerdureError.is(thrown, "limit") || PerdureError.is(thrown, "not_found")) return undefined;
    throw thrown;
  }
}

function isSame(a: FileRow, b: FileRow): boolean {
  const isFace = a.kind === b.kind && a.mode === b.mode && a.target === b.target && a.size === b.size;
  return isFace && a.hash === b.hash && sameBytes(a.content, b.content);
}

/** Whether two contents are the same. */
export function sameBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null) return a === b;
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

function pathOf({ parent, name }: FilePlace): string {
  return joinPath(parent, name);
}
