import type { FileStat, SandboxFiles } from "../sandbox/sandbox.ts";

/** One file, directory or symlink of a workspace. */
export interface WorkspaceEntry extends FileStat {
  readonly path: string;
  readonly name: string;
  /** Where a symlink leads, as it was written. */
  readonly target?: string;
}

/** A piece of a list. */
export interface PageOptions {
  /** At most this many. Default: all. */
  readonly limit?: number;
  /** Leaves out this many at the beginning. */
  readonly offset?: number;
}

/** The least that can stand in for a workspace. A missing file is `null`, or rejects with an error that begins with `ENOENT`. */
export interface WorkspaceLike {
  readFile(path: string): Promise<string | null>;
  readFileBytes(path: string): Promise<Uint8Array | null>;
  writeFile(path: string, content: string): Promise<void>;
  readDir(path: string, options?: PageOptions): Promise<readonly WorkspaceEntry[]>;
  rm(path: string, options?: { readonly recursive?: boolean; readonly force?: boolean }): Promise<void>;
  glob(pattern: string): Promise<readonly WorkspaceEntry[]>;
  mkdir(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  stat(path: string): Promise<FileStat | null>;
}

/**
 * All operations on a workspace's files. Relative paths start at the root. Methods reject with a `PerdureError` whose message
 * begins with a POSIX name where there is one (`ENOENT: …`).
 */
export interface WorkspaceFiles extends SandboxFiles, WorkspaceLike {
  /** The text of a file; null when there is none. Rejects (`EINVAL`) for what is no UTF-8, `EISDIR` for a directory. */
  readFile(path: string): Promise<string | null>;
  /** The bytes of a file. Rejects with `ENOENT` when there is none. */
  readFileBytes(path: string): Promise<Uint8Array>;
  /** The bytes in pieces; null when there is no such file. */
  readFileStream(path: string): Promise<ReadableStream<Uint8Array> | null>;
  /** Writes a whole file: after a crash it is the old one or the new one. Missing directories are made. */
  writeFile(path: string, content: string): Promise<void>;
  /** Reads to the end of `stream`, then writes as one. Rejects with `EFBIG`, and cancels, when it is too long. */
  writeFileStream(path: string, stream: ReadableStream<Uint8Array>): Promise<void>;
  appendFile(path: string, text: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  /** What a directory holds, by name. */
  readDir(path: string, options?: PageOptions): Promise<readonly WorkspaceEntry[]>;
  stat(path: string): Promise<WorkspaceEntry | null>;
  lstat(path: string): Promise<WorkspaceEntry | null>;
  /** Everything whose path matches: `*`, `**`, `?`, `[a-z]`, `{a,b}`. Symlinks are listed and not followed. */
  glob(pattern: string, options?: { readonly limit?: number }): Promise<readonly WorkspaceEntry[]>;
  /** Copies a file or symlink; a directory only with `recursive`. */
  cp(from: string, to: string, options?: { readonly recursive?: boolean }): Promise<void>;
  /** The same as `rename`. */
  mv(from: string, to: string): Promise<void>;
  /** What differs between two text files, as a unified diff; empty when nothing does. */
  diff(pathA: string, pathB: string): Promise<string>;
  /** What would change in a file if it held `content`. A file that is not there is empty. */
  diffContent(path: string, content: string): Promise<string>;
}

/** What happened to one path. Only what was asked for: not each file below a directory that was deleted or moved. */
export interface WorkspaceChange {
  readonly type: "create" | "update" | "delete";
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
}

/** How much a workspace holds. */
export interface WorkspaceInfo {
  readonly files: number;
  readonly directories: number;
  readonly symlinks: number;
  /** Of all files of now. */
  readonly bytes: number;
  readonly points: number;
  readonly version: number;
}

/** A state of the workspace that can be restored. */
export interface WorkspacePoint {
  readonly messageId: string;
  /** Points between which nothing changed have the same. */
  readonly version: number;
  /** When it was marked, in milliseconds since the epoch. */
  readonly at: number;
}

/** What a restore did. */
export interface RestoreResult {
  /** The state that was restored. */
  readonly version: number;
  /** The point of the state before: restoring it takes this back. */
  readonly undo: string;
  readonly created: readonly string[];
  readonly updated: readonly string[];
  readonly deleted: readonly string[];
}

/** What differs between two points at one path. */
export interface PointChange {
  readonly path: string;
  readonly change: "added" | "changed" | "removed";
  readonly kind: "file" | "directory" | "symlink";
  /** For texts that are not too long. */
  readonly diff?: string;
}
