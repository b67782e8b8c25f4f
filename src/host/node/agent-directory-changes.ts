import { type BigIntStats, type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { join } from "node:path";

/** Editors and tools write in several steps, and several files. */
const SETTLE_MS = 60;
/** How often to look for a directory that was taken away: nothing would tell. */
const LOOK_AGAIN_MS = 500;

const IGNORED = /^\.|^node_modules$/;

/** A file that is not as it was. */
export interface FileChange {
  readonly file: string;
  readonly kind: "added" | "changed" | "removed";
}

interface Snapshot {
  /** What a file's time and size were. */
  readonly files: ReadonlyMap<string, string>;
  /** Which directory it was: one that was made anew under the same name needs another watcher. */
  readonly folders: ReadonlyMap<string, string>;
}

/**
 * Tells which files below a directory changed. What the system reports is only taken as a sign to look: two looks are
 * compared, so that nothing depends on how an editor saves, or on events that came late, twice or not at all.
 */
export class FileChanges {
  readonly #root: string;
  readonly #changed: (changes: readonly FileChange[]) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #watchers = new Map<string, { readonly mark: string; readonly watcher: FSWatcher }>();
  #seen: Snapshot;
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #again = false;
  #closed = false;

  /**
   * Compares with how the files are now. Call {@link FileChanges.start} to be told.
   * @param changed not called again before its promise settles; must not reject.
   * @param failed a directory cannot be watched (too many are, say). Its changes are then not noticed by themselves.
   */
  constructor(
    root: string,
    changed: (changes: readonly FileChange[]) => Promise<void>,
    failed: (error: unknown) => void,
  ) {
    this.#root = root;
    this.#changed = changed;
    this.#failed = failed;
    this.#seen = look(root);
  }

  start(): void {
    this.#watchFolders(this.#seen);
    // What happened since the first look.
    this.#soon();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #soon(delayMs = SETTLE_MS): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), delayMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    const now = look(this.#root);
    // In a new directory there may be more already than this look saw.
    if (this.#watchFolders(now)) this.#again = true;
    const changes = compare(this.#seen.files, now.files);
    this.#seen = now;
    if (changes.length > 0) await this.#changed(changes);
    this.#looking = false;
    if (this.#again) this.#soon();
    else if (now.folders.size === 0) this.#soon(LOOK_AGAIN_MS);
    this.#again = false;
  }

  /** @returns whether there is a directory that was not watched before. */
  #watchFolders({ folders }: Snapshot): boolean {
    for (const [folder, { mark, watcher }] of this.#watchers) {
      if (folders.get(folder) === mark) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    let fresh = false;
    for (const [folder, mark] of folders) {
      if (this.#watchers.has(folder) || this.#closed) continue;
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#soon());
        // It was taken away. The event before that leads to another look.
        watcher.on("error", () => this.#soon());
        this.#watchers.set(folder, { mark, watcher });
        fresh = true;
      } catch (thrown) {
        if (isThere(folder)) this.#failed(thrown);
      }
    }
    return fresh;
  }
}

function look(root: string): Snapshot {
  const files = new Map<string, string>();
  const folders = new Map<string, string>();
  // Links may lead round in a circle.
  const visited = new Set<string>();
  const visit = (path: string, stats: BigIntStats | undefined) => {
    if (stats?.isFile()) files.set(path, `${stats.mtimeNs} ${stats.size} ${stats.ino}`);
    if (!stats?.isDirectory()) return;
    // Numbers of what was deleted are given out again.
    const mark = `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`;
    const names = visited.has(mark) ? undefined : namesIn(path);
    if (names === undefined) return;
    visited.add(mark);
    folders.set(path, mark);
    for (const name of names) if (!IGNORED.test(name)) visit(join(path, name), statsOf(join(path, name)));
  };
  visit(root, statsOf(root));
  return { files, folders };
}

/** Undefined when it is gone, or never was one: files come and go while one looks. */
function namesIn(folder: string): string[] | undefined {
  try {
    return readdirSync(folder);
  } catch {
    return undefined;
  }
}

function statsOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isThere(path: string): boolean {
  return statsOf(path) !== undefined;
}

function compare(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): FileChange[] {
  const changes: FileChange[] = [];
  for (const [file, mark] of after) {
    const old = before.get(file);
    if (old !== mark) changes.push({ file, kind: old === undefined ? "added" : "changed" });
  }
  for (const file of before.keys()) if (!after.has(file)) changes.push({ file, kind: "removed" });
  return changes;
}
