import { PerdureError } from "../../base/error.ts";
import { ByteFiles } from "./byte-files.ts";
import { callWorkspace, operationNames, type WorkspaceOperation } from "./serve.ts";
import type { WorkspaceFiles } from "./types.ts";

const MAX_TRIES = 20;

/**
 * Asks another agent, or anything else, to work on its files; `callWorkspace` is the other side. Rejects as that does. Only plain
 * data crosses: texts, numbers, bytes, lists and objects of them.
 */
export type WorkspaceCall = (operation: string, args: readonly unknown[]) => Promise<unknown>;

/** What is asked for under its own name, with its own arguments. */
type Passed = Exclude<WorkspaceOperation, "swapFile">;

/** The methods that only pass on: the static block below defines them. */
export interface RemoteWorkspace extends Pick<WorkspaceFiles, Passed> {} // oxlint-disable-line typescript/no-unsafe-declaration-merging

/** Somebody else's files, as a child has its parent's: all methods of a workspace but points. Every method is a call. */
export class RemoteWorkspace extends ByteFiles implements WorkspaceFiles {
  readonly #call: WorkspaceCall;

  static {
    for (const name of operationNames.filter((one) => one !== "swapFile"))
      Object.defineProperty(this.prototype, name, {
        configurable: true,
        writable: true,
        async value(this: RemoteWorkspace, ...args: readonly unknown[]): Promise<unknown> {
          return this.#call(name, args);
        },
      });
  }

  /** @param call may be slow and may reject */
  constructor(call: WorkspaceCall) {
    super();
    this.#call = call;
  }

  /** As `Workspace.updateFile`: the other side only writes if nothing changed since `change` saw it. */
  async updateFile(path: string, change: (text: string | null) => string | null): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const before = await this.readFile(path);
      const after = change(before);
      if (after === null || (await this.#call("swapFile", [path, before, after])) === true) return;
    }
    throw new PerdureError("conflict", `${path} keeps being changed by others. Try again later.`);
  }
}

/** The files of somebody else, such as the parent of an agent: `call` takes each operation there. */
export function sharedWorkspace(call: WorkspaceCall): RemoteWorkspace {
  return new RemoteWorkspace(call);
}

/**
 * A real directory as a workspace, with its path as the root. Nothing outside can be reached: symlinks that lead out are refused,
 * and writes never follow symlinks. No points. Needs Node, loaded at first use. Other programs that change the directory are not
 * kept out.
 */
export function localWorkspace(directory: string, options: { readonly readOnly?: boolean } = {}): RemoteWorkspace {
  let opened: Promise<WorkspaceFiles> | undefined;
  const open = () => (opened ??= import("./node/local-files.ts").then((it) => it.openLocalFiles(directory)));
  const access = options.readOnly === true ? "read" : "read-write";
  return new RemoteWorkspace(async (operation, args) => callWorkspace(await open(), operation, args, access));
}
