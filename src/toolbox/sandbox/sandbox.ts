/** The interface that every tier implements. It imports no engine: who runs code, and where, is up to the implementation. */

/** What crosses the border between the host and the code that it runs. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** What a run may use. A run that reaches one of them is ended, and says which. */
export interface Limits {
  /** Milliseconds from start to end, waiting for tools included. */
  readonly wallMs: number;
  /** Milliseconds of the guest's own computing, added up over the run. Waiting for tools is free. */
  readonly cpuMs: number;
  readonly memoryMB: number;
  /** Logs and result together. */
  readonly outputBytes: number;
  readonly toolCalls: number;
  /** The arguments or the result of one tool call. */
  readonly toolBytes: number;
}

/** The limits of a run that says nothing, in a sandbox that says nothing. */
export const DEFAULT_LIMITS: Limits = {
  wallMs: 30_000,
  cpuMs: 5_000,
  memoryMB: 64,
  outputBytes: 1 << 20,
  toolCalls: 1_000,
  toolBytes: 1 << 20,
};

/** A host function returns this to park the run: somebody has to be asked first. Needs `supports.suspend`. */
export const SUSPEND: unique symbol = Symbol.for("perdure.sandbox.suspend") as never;

/** What a host function is told besides its arguments. */
export interface HostCall {
  /** Aborts when the run ends, however it ends. */
  readonly signal: AbortSignal;
  /** The number of this call in the run, from 0. Stays the same when a parked run goes on elsewhere. */
  readonly call: number;
}

/**
 * A function that the guest may call. The guest sees its error's message, not its stack. Arguments are as untrusted as network
 * input.
 */
export type HostFunction = (
  args: Json,
  call: HostCall,
) => Json | undefined | typeof SUSPEND | Promise<Json | undefined | typeof SUSPEND>;

/** What a directory lists. */
export interface FileEntry {
  readonly name: string;
  readonly type: "file" | "directory" | "symlink";
}

/** What is known of one path. Symlinks are followed, but for {@link SandboxFiles.lstat}. */
export interface FileStat {
  readonly type: "file" | "directory" | "symlink";
  /** Bytes. */
  readonly size: number;
  readonly mtimeMs: number;
  readonly mode: number;
}

/**
 * A guest's files, by absolute paths with `/`; `Workspace` is one. Rejects with a `PerdureError` whose message begins with a
 * POSIX name where there is one (`ENOENT: …`, `EISDIR: …`, `EROFS: …`).
 */
export interface SandboxFiles {
  readFileBytes(path: string): Promise<Uint8Array>;
  writeFileBytes(path: string, bytes: Uint8Array): Promise<void>;
  appendFileBytes(path: string, bytes: Uint8Array): Promise<void>;
  readDir(path: string): Promise<readonly FileEntry[]>;
  stat(path: string): Promise<FileStat | null>;
  lstat(path: string): Promise<FileStat | null>;
  mkdir(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  rm(path: string, options?: { readonly recursive?: boolean; readonly force?: boolean }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  readlink(path: string): Promise<string>;
  chmod(path: string, mode: number): Promise<void>;
  utimes(path: string, mtimeMs: number): Promise<void>;
}

/** What a guest asks of the network. */
export interface EgressRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  readonly signal?: AbortSignal;
}

/** What the network answered. */
export interface EgressResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Where it came from in the end. */
  readonly url: string;
  readonly body: Uint8Array;
}

/**
 * The one way out to the network, for every tier: the guest has no socket and asks this. `createEgress` makes one.
 */
export interface Egress {
  /** @throws PerdureError `not_allowed` (host, address, scheme, redirect), `limit` (size, count), `timeout`, `call_failed` */
  fetch(url: string, request?: EgressRequest): Promise<EgressResponse>;
  /** Serves as a forward proxy on a unix socket, for tiers that are processes. */
  listen(socketPath: string): Promise<{ close(): Promise<void> }>;
}

/** Everything that the guest may touch. What is absent is denied. The host checks each call; the guest's side is sugar. */
export interface Capabilities {
  /** By namespace, then by name. */
  readonly tools?: Readonly<Record<string, Readonly<Record<string, HostFunction>>>>;
  readonly files?: { readonly fs: SandboxFiles; readonly mode: "read" | "read-write" };
  readonly network?: Egress;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a sandbox may be able to run. `argv` is a command with its words. */
export type Language = "js" | "ts" | "bash" | "python" | "argv";

/** One line that the guest printed. */
export interface LogLine {
  readonly level: "debug" | "log" | "info" | "warn" | "error" | "stdout" | "stderr";
  readonly text: string;
}

/** What is to be run. */
export interface RunRequest {
  readonly language: Language;
  /** `js` and `ts`: the body of an async function, its `return` is the value. `argv`: a JSON array of words. */
  readonly code: string;
  /** What the code reads as `input`. */
  readonly input?: Json;
  /** More source by its import name; `js` and `ts` only. */
  readonly modules?: Readonly<Record<string, string>>;
  readonly can?: Capabilities;
  readonly limits?: Partial<Limits>;
  readonly signal?: AbortSignal;
  readonly onLog?: (line: LogLine) => void;
  /** Where processes and shells start. Default `/`. */
  readonly cwd?: string;
  /** Standard input of `bash`, `python` and `argv`. */
  readonly stdin?: string;
}

/** Which limit ended a run. `stack`: calls or data nested too deeply. */
export type LimitName = "wall" | "cpu" | "memory" | "output" | "toolCalls" | "toolBytes" | "stack";

/** A call of a host function that has not been answered. */
export interface OpenCall {
  readonly call: number;
  readonly namespace: string;
  readonly name: string;
  readonly args: Json;
}

/** How a run ended. */
export type Outcome =
  | { readonly status: "ok"; readonly value: Json | undefined; readonly exitCode?: number }
  /** The guest's own fault: for the model to read. */
  | { readonly status: "error"; readonly error: { readonly name: string; readonly message: string } }
  /** Ended by us. */
  | { readonly status: "limit"; readonly limit: LimitName; readonly message: string }
  | { readonly status: "aborted" }
  /** Parked: every open call, and all that is needed to go on, here or in another process. */
  | { readonly status: "suspended"; readonly calls: readonly OpenCall[]; readonly snapshot: Uint8Array }
  /** The sandbox itself failed: for the operator to read. */
  | { readonly status: "crashed"; readonly message: string };

/** How a run ended, with what it printed. */
export type RunResult = Outcome & {
  readonly logs: readonly LogLine[];
  readonly stats: { readonly ms: number; readonly toolCalls: number };
};

/** The answer to a call that was open when the run was parked. */
export interface CallAnswerInSandbox {
  readonly call: number;
  readonly value?: Json;
  /** The call fails with this message. */
  readonly error?: string;
}

/** Whether a sandbox can be used here, and what is missing if not. */
export type Probe = { readonly ok: true; readonly detail: string } | { readonly ok: false; readonly missing: string };

/** A guest that stays: its source has run once, and its functions are called again and again. */
export interface SandboxSession {
  /** Calls a function that the source returned by name. Never rejects for anything the guest does. */
  call(
    name: string,
    args: readonly Json[],
    options?: { readonly limits?: Partial<Limits>; readonly signal?: AbortSignal },
  ): Promise<RunResult>;
  close(): Promise<void>;
}

/** One tier: a place where code runs that nobody has read. */
export interface Sandbox {
  /** `quickjs`, `just-bash`, `bubblewrap`, … */
  readonly kind: string;
  readonly supports: {
    readonly languages: readonly Language[];
    readonly network: boolean;
    readonly files: boolean;
    readonly suspend: boolean;
  };
  /** Never throws. */
  probe(): Promise<Probe>;
  /** Never rejects for anything that the guest does. @throws PerdureError `bad_input` for a request it cannot run at all */
  run(request: RunRequest): Promise<RunResult>;
  /** Goes on with a parked run. @throws PerdureError `bad_input` for a snapshot of another engine, or a damaged one */
  resume?(
    snapshot: Uint8Array,
    answers: readonly CallAnswerInSandbox[],
    request: Omit<RunRequest, "code" | "language">,
  ): Promise<RunResult>;
  /**
   * Runs `code` (which returns an object) once and keeps it. `value` is what it returned, with functions as `"function"` by
   * dotted name.
   */
  open?(request: RunRequest): Promise<{ readonly session: SandboxSession; readonly result: RunResult }>;
  /** Ends everything. Later runs fail as `crashed`. */
  dispose(): Promise<void>;
}
