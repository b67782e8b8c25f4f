import { PerdureError } from "../../base/error.ts";
import { callWorkspace } from "./serve.ts";
import { collectStream, streamOf } from "./text.ts";
import type { PageOptions, WorkspaceEntry, WorkspaceFiles } from "./types.ts";

/** Larger streams are not sent. */
const MAX_STREAM_BYTES = 100_000_000;
const MAX_TRIES = 20;

/**
 * Asks another agent, or anything else, to do something with its files; `callWorkspace` is the other side. Rejects as that
 * does. Only plain data goes and comes: texts, numbers, bytes, lists and objects of them.
 */
export type WorkspaceCall = (operation: string, args: readonly unknown[]) => Promise<unknown>;

/**
 * The files of somebody else, with all methods of a workspace but points: a child that works in its parent's files has
 * one. Every method is a call.
 */
export class RemoteWorkspace implements WorkspaceFiles {
  readonly #call: WorkspaceCall;

  /** @param call may be slow and may reject */
  constructor(call: WorkspaceCall) {
    this.#call = call;
  }

  async readFile(path: string): Promise<string | null> {
    return (await this.#call("readFile", [path])) as string | null;
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    return (await this.#call("readFileBytes", [path])) as Uint8Array;
  }

  async readFileStream(path: string): Promise<ReadableStream<Uint8Array> | null> {
    if (!(await this.exists(path))) return null;
    return streamOf(await this.readFileBytes(path));
  }

  async writeFile(path: string, content: string): Promise<void> {
    await this.#call("writeFile", [path, content]);
  }

  async writeFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    await this.#call("writeFileBytes", [path, bytes]);
  }

  async writeFileStream(path: string, stream: ReadableStream<Uint8Array>): Promise<void> {
    await this.writeFileBytes(path, await collectStream(stream, MAX_STREAM_BYTES));
  }

  async appendFile(path: string, text: string): Promise<void> {
    await this.#call("appendFile", [path, text]);
  }

  async appendFileBytes(path: string, bytes: Uint8Array): Promise<void> {
    await this.#call("appendFileBytes", [path, bytes]);
  }

  /** As `Workspace.updateFile`: the other side only writes if nothing changed since `change` saw it. */
  async updateFile(path: string, change: (text: string | null) => string | null): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const before = await this.readFile(path);
      const after = change(before);
      if (after === null || (await this.#call("swapFile", [path, before, after])) === true) return;
    }
    throw new PerdureError("conflict", `${path} was changed by others again and again. Try again later.`);
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#call("exists", [path])) === true;
  }

  async stat(path: string): Promise<WorkspaceEntry | null> {
    return (await this.#call("stat", [path])) as WorkspaceEntry | null;
  }

  async lstat(path: string): Promise<WorkspaceEntry | null> {
    return (await this.#call("lstat", [path])) as WorkspaceEntry | null;
  }

  async readDir(path: string, options: PageOptions = {}): Promise<WorkspaceEntry[]> {
    return (await this.#call("readDir", [path, options])) as WorkspaceEntry[];
  }

  async glob(pattern: string, options: { readonly limit?: number } = {}): Promise<WorkspaceEntry[]> {
    return (await this.#call("glob", [pattern, options])) as WorkspaceEntry[];
  }

  async mkdir(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    await this.#call("mkdir", [path, options]);
  }

  async rm(path: string, options: { readonly recursive?: boolean; readonly force?: boolean } = {}): Promise<void> {
    await this.#call("rm", [path, options]);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#call("rename", [from, to]);
  }

  async mv(from: string, to: string): Promise<void> {
    await this.rename(from, to);
  }

  async cp(from: string, to: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    await this.#call("cp", [from, to, options]);
  }

  async symlink(target: string, path: string): Promise<void> {
    await this.#call("symlink", [target, path]);
  }

  async readlink(path: string): Promise<string> {
    return (await this.#call("readlink", [path])) as string;
  }

  async chmod(path: string, mode: number): Promise<void> {
    await this.#call("chmod", [path, mode]);
  }

  async utimes(path: string, mtimeMs: number): Promise<void> {
    await this.#call("utimes", [path, mtimeMs]);
  }

  async diff(pathA: string, pathB: string): Promise<string> {
    return (await this.#call("diff", [pathA, pathB])) as string;
  }

  async diffContent(path: string, content: string): Promise<string> {
    return (await this.#call("diffContent", [path, content])) as string;
  }
}

/** The files of somebody else, such as the parent of an agent: `call` takes each operation there. */
export function sharedWorkspace(call: WorkspaceCall): RemoteWorkspace {
  return new RemoteWorkspace(call);
}

/**
 * A real directory of this machine as a workspace, with its path as the root. Nothing outside of it can be reached: what
 * symlinks lead out is refused, and writing never goes through a symlink. There are no points. On hosts with Node, which is
 * loaded at first use. Other programs that change the directory at the same time are not kept out.
 */
export function localWorkspace(directory: string, options: { readonly readOnly?: boolean } = {}): RemoteWorkspace {
  let opened: Promise<WorkspaceFiles> | undefined;
  const open = () => (opened ??= import("./node/local-files.ts").then((it) => it.openLocalFiles(directory)));
  const access = options.readOnly === true ? "read" : "read-write";
  return new RemoteWorkspace(async (operation, args) => callWorkspace(await open(), operation, args, access));
}
