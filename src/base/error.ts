/** The codes of {@link PerdureError}: stable, for programs. The message, what was wrong and what to do, is for people. */
export type PerdureErrorCode =
  /** A frame, body or argument that does not have the shape it must have. */
  | "bad_input"
  /** A class name that the host was not given. */
  | "unknown_agent"
  /** An agent, child, method, row or file that is not there. */
  | "not_found"
  /** A key or an id that already stands for something else. */
  | "conflict"
  /** A method that clients may not call. */
  | "not_callable"
  /** Something that the app does not let this client do. */
  | "not_allowed"
  /** A write on a connection that may only read. */
  | "read_only"
  /** A value that `validateStateChange` (or JSON) refused. */
  | "state_rejected"
  /** A statement that agents may not run, or a name that belongs to the framework. */
  | "sql_refused"
  /** A statement that SQLite refused. */
  | "sql_failed"
  /** A database written by a newer version of Perdure. */
  | "database_newer"
  /** A database file that SQLite cannot read. */
  | "database_corrupt"
  /** No room left to write. */
  | "disk_full"
  /** The data directory cannot be written to. */
  | "directory_read_only"
  /** Another process holds the data directory. */
  | "directory_locked"
  /** The host is stopping, or was stopped. */
  | "host_stopped"
  /** The agent was destroyed, or aborted, while the call was under way. */
  | "agent_gone"
  /** A bound was reached: sizes, counts, queues. */
  | "limit"
  /** The body of a request that is larger than its host takes. */
  | "too_large"
  /** Something took longer than it was given. */
  | "timeout"
  /** The connection was lost, or left, before the answer came. */
  | "disconnected"
  /** The agent answered a call with an error; the message is its. */
  | "call_failed"
  /** A context block's provider failed, or gave what is no text; its own error is the cause. */
  | "provider_failed"
  /** The model's server reported an error, or its stream ended before the answer did. */
  | "model_failed"
  /** A writer or a runner whose work another one has taken over. */
  | "fenced"
  /** Somebody asked for the work to be given up. */
  | "cancelled"
  /** Called at a moment when it cannot work; the message says when it can. */
  | "bad_state"
  /** An option or a declaration that cannot work. */
  | "bad_config";

const marker = Symbol.for("perdure.error");

/** The framework's only error class. Use {@link PerdureError.is}, not `instanceof`: it knows errors of other copies too. */
export class PerdureError extends Error {
  override readonly name = "PerdureError";
  readonly code: PerdureErrorCode;

  constructor(code: PerdureErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    Object.defineProperty(this, marker, { value: true });
  }

  /** Whether `value` is a PerdureError, and has `code` if one is given. */
  static is(value: unknown, code?: PerdureErrorCode): value is PerdureError {
    if (typeof value !== "object" || value === null || !(marker in value)) return false;
    return code === undefined || (value as { code?: unknown }).code === code;
  }
}

/** The text of anything that was thrown, for places that need one line. */
export function errorText(thrown: unknown): string {
  if (thrown instanceof Error) {
    // Both can be anything: errors are often filled from the body of a response.
    const texts: unknown[] = [thrown.message, thrown.name];
    const text = texts.find((one) => typeof one === "string" && one !== "");
    if (typeof text === "string") return text;
  }
  return typeof thrown === "string" ? thrown : "Unknown error occurred";
}
