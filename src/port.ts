import type { PerdureError } from "./base/error.ts";
import type { Emit } from "./base/event.ts";
import type { Clock } from "./base/time.ts";
import type { Identity } from "./base/identity.ts";

/** What SQLite can store, on every host. */
export type SqlValue = string | number | null | Uint8Array;
/** A row by the names of its columns. */
export type SqlRow = Record<string, SqlValue>;

/**
 * How sure a write must be before anything that was sent after it may leave (the gate).
 *
 * - `sync`: it survives the loss of power. For facts: input, results, answers, approvals, cancels.
 * - `commit`: it survives the death of the process. For the chunks of a stream, of which there are many.
 */
export type WriteLevel = "sync" | "commit";

/** Synchronous SQL on the agent's own database. */
export interface Sql {
  /**
   * Runs one SQLite statement and returns its rows. Outside of {@link Sql.tx} it commits by itself, at
   * level `sync`. No BEGIN, COMMIT, SAVEPOINT, PRAGMA, ATTACH or VACUUM. A statement that writes throws what
   * {@link HostedAgent.refusal} says, if it says something.
   */
  sql<T = SqlRow>(query: string, ...args: SqlValue[]): T[];
  /**
   * Runs `work` in a transaction and commits, or rolls back and rethrows. Nests: an inner `tx` that
   * throws undoes only its own writes and sends. `work` must be synchronous; a returned promise throws.
   */
  tx<T>(work: () => T, level?: WriteLevel): T;
}

/** Where something failed. */
export interface AboutFailure {
  /** `turn`, `schedule tick`, `onConnect`: what was under way. */
  readonly stage: string;
  /** The turn that it belongs to. */
  readonly requestId?: string;
}

/** One step of an address: which class, which instance. */
export interface AgentStep {
  /** The name that the class was registered under. */
  readonly className: string;
  readonly name: string;
}
/** A whole address, root first. A path of one step is an agent; a longer one, a child. */
export type AgentPath = readonly [AgentStep, ...AgentStep[]];

/** One client's socket on one agent. Kept by the host: it outlives the agent's stay in memory. */
export interface Socket {
  /** What the client calls itself (`_pk`). A hint: two sockets may share it. */
  readonly id: string;
  /** The URL that it connected with. */
  readonly uri: string;
  /** Who it belongs to, as the app established it. Absent when it did not. */
  readonly identity?: Identity;
  /** An agent on the way to this one has said that who it belongs to may only read. */
  readonly mayOnlyRead?: boolean;
  readonly tags: readonly string[];
  /** JSON that belongs to the connection. Survives eviction of the agent, not the socket's end. Replaced, never changed in place. */
  attachment: unknown;
  /** The same for what the chat knows of the connection. */
  memo: unknown;
  readonly open: boolean;
  /** It was closed from this side. Its client may go on sending until it has heard of that; nothing of it counts. */
  readonly dismissed: boolean;
  /** While connecting: from now on it is one of {@link Sockets.all}. Before that it only gets what is sent to it. */
  join(tags: readonly string[]): void;
  /**
   * Queues `data` behind the gate: it leaves after all writes before it are as durable as they asked to
   * be, in the order of the sends. Inside a `tx` that rolls back it is never sent. No-op once closed.
   * @throws PerdureError `bad_input` for what is neither text nor bytes.
   */
  send(data: string | Uint8Array): void;
  /** Sends several frames in order, as one write where the platform can. */
  sendAll(frames: readonly string[]): void;
  /** Closes after everything queued before it has left. */
  close(code?: number, reason?: string): void;
}

/** The connected clients of an agent. */
export interface Sockets {
  /** Open sockets that have joined, oldest first. */
  all(tag?: string): Socket[];
}

/** Large bytes, outside of rows, named by their content. */
export interface Blobs {
  /** Stores `bytes` durably and returns their name (the same bytes have the same name). */
  put(bytes: Uint8Array): Promise<string>;
  /** The bytes, or `undefined` when there are none of that name. */
  get(name: string): Promise<Uint8Array | undefined>;
  delete(name: string): Promise<void>;
}

/** Carries a value along asynchronous calls, like `AsyncLocalStorage`. */
export interface AsyncContext {
  run<T>(value: unknown, work: () => T): T;
  get(): unknown;
}

/** What agents get as `env` when nobody says otherwise: the variables of the process's environment. */
export interface AgentEnv {
  readonly [name: string]: string | undefined;
}

/**
 * All that an agent may ask of the world. Agent code imports no platform: a host implements this and the
 * same agent runs there. `testing/host-conformance` says what an implementation must do.
 */
export interface AgentHost extends Sql {
  /** The whole address as one string, unique on the host. */
  readonly id: string;
  readonly path: AgentPath;
  /** Where clients reach it at this host: the path of its URL, percent-encoded, as in `/agents/chat/anna`. */
  readonly address: string;
  /** Nothing was ever written: there are no rows, and so nothing to look for. */
  readonly blank: boolean;
  readonly clock: Clock;
  readonly emit: Emit;
  /** For the host's log: a failure that the agent's people should know. Never throws; may be told the same error twice. */
  report(error: unknown, about: AboutFailure): void;
  readonly sockets: Sockets;
  readonly blobs: Blobs;
  readonly context: AsyncContext;
  /** What the app gives to all of its agents: settings, secrets, clients. The same object for every agent and life. */
  readonly env: object;
  /** Resolves when everything written so far survives the loss of power. If that fails, this life ends. */
  durable(): Promise<void>;
  /**
   * Calls `ended` when the transaction under way has ended: with true once it is committed, with false when it, or
   * the nested one that this was called in, was undone, then the last caller first. Outside of a transaction: at once,
   * with true. For what is kept in memory beside rows. `ended` must not throw.
   */
  afterTx(ended: (committed: boolean) => void): void;
  /**
   * Makes what was deleted unreadable in the files of the agent's rows as well; may be slow, and rejects when there is no
   * room for it. Absent on hosts whose platform keeps old states of a database by its own rules.
   */
  scrub?(): Promise<void>;
  /**
   * Has the host remember that something is deleted for good, so that no copy of the agent from before brings it back.
   * @param scope `session:` or `subject:` and the SHA-256 of its name. Resolves when that is durable. Absent on hosts that make
   * no copies.
   */
  erased?(scope: string): Promise<void>;
  /** Runs `work` when everything written so far may be shown: what a socket's `send` does, for other ways out. Must not throw. */
  show(work: () => void): void;
  /**
   * Asks for one call of {@link HostedAgent.alarm} at `at`; replaces the earlier request. May come early or
   * twice. If the agent has left memory or the process has died by then, the agent is woken instead, never
   * later than `at` by more than the time the host was down, and must ask again in its `start`.
   */
  alarm(at: number | null): void;
  /**
   * Keeps the agent in memory until `work` settles. An agent that wrote anything in a life which did not
   * end in order (the process died) is woken when the host starts again, with nobody connected.
   */
  keepAwake<T>(work: Promise<T>): Promise<T>;
  /** Resolves after other work of the process had its turn. For long loops that never wait by themselves. */
  breathe(): Promise<void>;
  /**
   * Calls a method of another agent on this host, waking it. Copies plain data, with symbol keys, but no functions; what cannot
   * be handed over is refused.
   */
  call(path: AgentPath, method: string, args: readonly unknown[]): Promise<unknown>;
  /** The name that `cls` was registered under. @throws PerdureError `unknown_agent` */
  classNameOf(cls: HostedAgentClass): string;
  /** Ends another agent's life in memory: its calls fail with `agent_gone`; its rows stay. */
  abort(path: AgentPath, reason?: unknown): void;
  /** Deletes an agent, all of its children, rows, files, alarms; closes their sockets with 1001. */
  remove(path: AgentPath): Promise<void>;
}

/** What was said of a request before it is let in. Empty: it passes as it is. */
export interface ReadVerdict {
  /** It is not let in, and this is the answer. */
  readonly refusal?: Response;
  /** Instead of the request that came. */
  readonly request?: Request;
  /** Who sent it, instead of what was known. */
  readonly identity?: Identity;
  /** Its sender may only read there, and so in everything below. */
  readonly mayOnlyRead?: boolean;
}

/** What a host asks of an agent. A class exposes it under {@link hosted}, so that it takes no name from users' methods. */
export interface HostedAgent {
  /** Before anything else, once per life. A rejection fails what was waiting; the next use tries again. */
  start(props: unknown): Promise<void>;
  /**
   * @param rest the path behind the agent's own address; starts with `/`.
   * @param identity who sent it, as the app established it.
   * @param mayOnlyRead an agent on the way here has said that its sender may only read.
   */
  request(request: Request, rest: string, identity?: Identity, mayOnlyRead?: boolean): Promise<Response>;
  /** Frames of this socket are held back until this settles. */
  connect(socket: Socket, request: Request): Promise<void>;
  message(socket: Socket, data: string | Uint8Array): Promise<void>;
  close(socket: Socket, code: number, reason: string, wasClean: boolean): Promise<void>;
  alarm(): Promise<void>;
  invoke(method: string, args: readonly unknown[]): Promise<unknown>;
  /**
   * Whether somebody from outside may reach a child: what `onBeforeSubAgent` has said, and a refusal unless there is such a
   * child or its class is declared. An empty object lets pass. Stores nothing. @param identity who sent it, as far as is known.
   */
  admitChild(request: Request, child: AgentStep, identity?: Identity): Promise<ReadVerdict>;
  /** Why the running code may not write: its caller may only read. Asked before each write of rows and files: must be quick. */
  refusal?(): PerdureError | undefined;
  /** What is handed to another agent in the place of a plain object of this one's; undefined: a copy of it. Must not throw. */
  lend?(value: object): object | undefined;
  /** A child that was reached from outside is about to store its first row: it is to be listed. */
  childMade?(child: AgentStep): void;
  /** A child of this agent was deleted, by whomever. */
  childRemoved?(child: AgentStep): void;
  /** The host is going away: start nothing new; what runs may settle within the host's grace period. */
  drain(): void;
  /** This life ends now (destroyed, aborted): stop everything, write nothing more. */
  halt(reason: unknown): void;
  /** This life ended because nothing needed it. Lets go of connections and processes. Writes nothing, and must not throw. */
  left?(): void;
}

/** Where a host finds the {@link HostedAgent} of an instance. */
export const hosted: unique symbol = Symbol.for("perdure.hosted") as never;

/** What marks a class that a host can run. Shared by all installed copies of the package. */
export const hostable: unique symbol = Symbol.for("perdure.hostable") as never;

/** Where a class says what must be loaded before its agents start. */
export const loads: unique symbol = Symbol.for("perdure.loads") as never;

/** What a host can run. `Agent` and everything that extends it. */
export interface HostedAgentClass<T extends { readonly [hosted]: HostedAgent } = { readonly [hosted]: HostedAgent }> {
  new (host: AgentHost): T;
  readonly name: string;
  /** Loads what its agents need. Undefined: nothing, or nothing any more. A host begins with it early. */
  readonly [loads]?: () => Promise<unknown> | undefined;
}

/** Whether `value` is `Agent` or extends it. */
export function isAgentClass(value: unknown): value is HostedAgentClass {
  return typeof value === "function" && hostable in value;
}
