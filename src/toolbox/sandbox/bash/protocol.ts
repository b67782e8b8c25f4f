import { isCount, isRecord } from "../../../base/json.ts";
import type { ShellEnd } from "./outcome.ts";

/**
 * What a shell's worker and its host say to each other. The host treats every message like network input: whoever breaks out of
 * the shell must gain nothing here.
 */

/** Host to worker: run this. One at a time. */
export interface RunMessage {
  readonly type: "run";
  readonly run: number;
  readonly language: "bash" | "python";
  readonly code: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  /** The mount points, by their index in file calls. One of them may be `/`. */
  readonly mounts: readonly string[];
  readonly network: boolean;
  /** `namespace.name` of each host function. */
  readonly tools: readonly string[];
  readonly python: boolean;
  readonly wallMs: number;
  readonly outputBytes: number;
}

/** Host to worker: the answer to a call. */
export interface AnswerMessage {
  readonly type: "answer";
  readonly call: number;
  readonly value?: unknown;
  readonly error?: string;
}

const fileOps = [
  "read",
  "write",
  "append",
  "list",
  "stat",
  "lstat",
  "mkdir",
  "rm",
  "rename",
  "symlink",
  "readlink",
  "realpath",
  "chmod",
  "utimes",
] as const;

export type FileOp = (typeof fileOps)[number];

export interface FileCall {
  readonly kind: "file";
  readonly op: FileOp;
  readonly mount: number;
  readonly path: string;
  /** The other path of `rename`, the target of `symlink`. */
  readonly to?: string;
  readonly bytes?: Uint8Array;
  readonly recursive?: boolean;
  readonly force?: boolean;
  /** The mode of `chmod`, the time of `utimes`. */
  readonly number?: number;
}

export interface FetchCall {
  readonly kind: "fetch";
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ToolCall {
  readonly kind: "tool";
  readonly name: string;
  /** JSON. */
  readonly args: string;
}

export type Call = FileCall | FetchCall | ToolCall;

/** Worker to host. */
type WorkerMessage =
  | { readonly type: "ready" }
  | { readonly type: "call"; readonly run: number; readonly call: number; readonly ask: Call }
  | ({ readonly type: "done"; readonly run: number } & ShellEnd)
  | { readonly type: "failed"; readonly run: number; readonly message: string };

/** A message of the worker, or undefined for what is none. */
export function readWorkerMessage(value: unknown): WorkerMessage | undefined {
  if (!isRecord(value)) return undefined;
  const { type, run } = value;
  if (type === "ready") return { type };
  if (!isCount(run)) return undefined;
  if (type === "call") {
    const ask = readCall(value["ask"]);
    return isCount(value["call"]) && ask !== undefined ? { type, run, call: value["call"], ask } : undefined;
  }
  if (type === "done") {
    const { exitCode, stdout, stderr } = value;
    if (typeof exitCode !== "number" || typeof stdout !== "string" || typeof stderr !== "string") return undefined;
    return { type, run, exitCode, stdout, stderr, cut: value["cut"] === true };
  }
  return type === "failed" ? { type, run, message: String(value["message"]) } : undefined;
}

function readCall(value: unknown): Call | undefined {
  if (!isRecord(value)) return undefined;
  if (value["kind"] === "file") return readFileCall(value);
  if (value["kind"] === "fetch") return readFetchCall(value);
  const { kind, name, args } = value;
  return kind === "tool" && typeof name === "string" && typeof args === "string" ? { kind, name, args } : undefined;
}

function readFileCall(value: Record<string, unknown>): FileCall | undefined {
  const { mount, path, to, bytes, recursive, force, number } = value;
  const op = fileOps.find((one) => one === value["op"]);
  if (op === undefined || !isCount(mount) || typeof path !== "string") return undefined;
  return {
    kind: "file",
    op,
    mount,
    path,
    ...(typeof to === "string" && { to }),
    ...(bytes instanceof Uint8Array && { bytes }),
    recursive: recursive === true,
    force: force === true,
    ...(typeof number === "number" && { number }),
  };
}

function readFetchCall(value: Record<string, unknown>): FetchCall | undefined {
  const { url, method, headers, body } = value;
  if (typeof url !== "string" || typeof method !== "string" || !isRecord(headers)) return undefined;
  const texts = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return { kind: "fetch", url, method, headers: Object.fromEntries(texts), ...(typeof body === "string" && { body }) };
}
