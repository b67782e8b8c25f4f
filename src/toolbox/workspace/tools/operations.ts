import type { FileStat } from "../../sandbox/sandbox.ts";
import type { PageOptions } from "../types.ts";

/** May come at once or later. */
type Later<T> = T | Promise<T>;

/** What is known of an entry of a list. */
export interface ListedEntry {
  readonly name: string;
  readonly type: "file" | "directory" | "symlink";
  readonly path?: string;
  readonly size?: number;
  readonly target?: string;
}

/** What `read` needs of a storage. A missing file is null, or an error. */
export interface ReadOperations {
  readFileBytes(path: string): Later<Uint8Array | null>;
  stat(path: string): Later<Pick<FileStat, "type" | "size"> | null>;
}

/** What `write` needs of a storage. It makes the directories that are missing, or `mkdir` is asked to. */
export interface WriteOperations {
  readFile(path: string): Later<string | null>;
  writeFile(path: string, content: string): Later<void>;
  mkdir?(path: string, options?: { readonly recursive?: boolean }): Later<void>;
  /** Changes a text in one go. Without it, changes by others between reading and writing can be lost. */
  updateFile?(path: string, change: (text: string | null) => string | null): Promise<void>;
}

/** What `edit` needs of a storage. */
export type EditOperations = WriteOperations;

/** What `list` needs of a storage. */
export interface ListOperations {
  readDir(path: string, options?: PageOptions): Later<readonly ListedEntry[]>;
}

/** What `find` needs of a storage. */
export interface FindOperations {
  glob(pattern: string): Later<readonly (ListedEntry & { readonly path: string })[]>;
}

/** What `grep` needs of a storage. */
export interface GrepOperations extends FindOperations {
  readFile(path: string): Later<string | null>;
  stat(path: string): Later<Pick<FileStat, "type" | "size"> | null>;
}

/** What `delete` needs of a storage. */
export interface DeleteOperations {
  rm(path: string, options?: { readonly recursive?: boolean; readonly force?: boolean }): Later<void>;
}
