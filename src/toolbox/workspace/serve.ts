import { PerdureError } from "../../base/error.ts";
import { isRecord } from "../../base/json.ts";
import { posixError } from "../sandbox/posix-error.ts";
import type { WorkspaceFiles, WorkspaceLike } from "./types.ts";

/** What somebody else may do with the files of an agent. */
export type WorkspaceAccess = "read" | "read-write";

type Argument = "text" | "bytes" | "number" | "text or null" | "options";

/** What can be asked for, and with what. `swapFile` writes a text if the file still holds what the caller has seen. */
const operations = {
  readFile: { access: "read", takes: ["text"] },
  readFileBytes: { access: "read", takes: ["text"] },
  exists: { access: "read", takes: ["text"] },
  stat: { access: "read", takes: ["text"] },
  lstat: { access: "read", takes: ["text"] },
  readDir: { access: "read", takes: ["text", "options"] },
  readlink: { access: "read", takes: ["text"] },
  glob: { access: "read", takes: ["text", "options"] },
  diff: { access: "read", takes: ["text", "text"] },
  diffContent: { access: "read", takes: ["text", "text"] },
  writeFile: { access: "read-write", takes: ["text", "text"] },
  writeFileBytes: { access: "read-write", takes: ["text", "bytes"] },
  appendFile: { access: "read-write", takes: ["text", "text"] },
  appendFileBytes: { access: "read-write", takes: ["text", "bytes"] },
  swapFile: { access: "read-write", takes: ["text", "text or null", "text"] },
  mkdir: { access: "read-write", takes: ["text", "options"] },
  rm: { access: "read-write", takes: ["text", "options"] },
  rename: { access: "read-write", takes: ["text", "text"] },
  cp: { access: "read-write", takes: ["text", "text", "options"] },
  symlink: { access: "read-write", takes: ["text", "text"] },
  chmod: { access: "read-write", takes: ["text", "number"] },
  utimes: { access: "read-write", takes: ["text", "number"] },
} as const satisfies Record<string, { readonly access: WorkspaceAccess; readonly takes: readonly Argument[] }>;

/** Names of what can be asked for. */
export type WorkspaceOperation = keyof typeof operations;

/** All of them. */
export const operationNames = Object.keys(operations) as WorkspaceOperation[];

/**
 * Does on a workspace what somebody else, such as a child, asks for, after checking name, arguments and permission. Rejects with
 * PerdureError `bad_input` for no operation, `read_only` (`EROFS: …`), and as the workspace does.
 */
export async function callWorkspace(
  workspace: WorkspaceLike | WorkspaceFiles,
  operation: string,
  args: readonly unknown[],
  access: WorkspaceAccess,
): Promise<unknown> {
  if (!Object.hasOwn(operations, operation))
    throw new PerdureError("bad_input", `A workspace has no operation ${JSON.stringify(operation)}.`);
  const rule = operations[operation as WorkspaceOperation];
  if (rule.access === "read-write" && access !== "read-write")
    throw posixError("EROFS", `These files are read-only: ${operation} is not possible.`);
  const checked = rule.takes.map((kind: Argument, at) => check(operation, kind, args[at], at));
  if (operation === "swapFile") return swap(workspace, checked);
  const method: unknown = Reflect.get(workspace, operation);
  if (typeof method !== "function") throw posixError("EPERM", `This workspace does not know ${operation}.`);
  return await Reflect.apply(method, workspace, checked);
}

function check(operation: string, kind: Argument, value: unknown, at: number): unknown {
  if (kind === "options") return isRecord(value) ? plainOptions(value) : {};
  if (kind === "text or null" && value === null) return null;
  if (kind === "bytes" ? value instanceof Uint8Array : typeof value === (kind === "number" ? "number" : "string"))
    return value;
  throw new PerdureError("bad_input", `Argument ${at + 1} of ${operation} must be: ${kind}.`);
}

/** Only what options of files can hold. */
function plainOptions(options: Record<string, unknown>): Record<string, unknown> {
  const isFlag = (value: unknown) => typeof value === "boolean";
  const isCount = (value: unknown) => typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
  return Object.fromEntries(Object.entries(options).filter(([, value]) => isFlag(value) || isCount(value)));
}

/** @returns whether the file held what was expected, and so was written */
async function swap(workspace: WorkspaceLike | WorkspaceFiles, args: readonly unknown[]): Promise<boolean> {
  const [path, before, after] = args as [string, string | null, string];
  let isDone = false;
  const change = (now: string | null): string | null => {
    isDone = now === before;
    return isDone ? after : null;
  };
  if ("updateFile" in workspace && typeof workspace.updateFile === "function") {
    await Reflect.apply(workspace.updateFile, workspace, [path, change]);
    return isDone;
  }
  const next = change(await workspace.readFile(path));
  if (next !== null) await workspace.writeFile(path, next);
  return isDone;
}
