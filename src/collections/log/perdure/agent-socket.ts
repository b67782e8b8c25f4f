import { PerdureError, type PerdureErrorCode } from "../../../base/error.ts";
import { isTerminalCloseCode } from "../../../wire/close-code.ts";

/** A connection that reconnects: the public `AgentClient`, ours of `perdure/client`, or what `useAgent()` returns. */
export interface AgentSocket {
  send(data: string): void;
  /** 1: it is open. */
  readonly readyState: number;
  addEventListener(type: "open" | "close" | "message", listener: (event: Event) => void): void;
  removeEventListener(type: "open" | "close" | "message", listener: (event: Event) => void): void;
  /** Why it does not come back by itself any more, where the client tells. */
  readonly connectionError?: Error | null;
  /** The class of the agent and its name, for errors. */
  readonly agent?: string;
  readonly name?: string;
}

const OPEN = 1;

/** Whether frames can be sent now. Not while it is coming back: it would send them once more than we do. */
export function isOpen(socket: AgentSocket): boolean {
  return socket.readyState === OPEN;
}

/**
 * Why the connection is lost for good; undefined: it comes back by itself. Public clients tell it by the code alone.
 * @param event how it was closed just now
 */
export function whyGone({ connectionError }: AgentSocket, event?: Event): string | undefined {
  if (connectionError !== undefined && connectionError !== null) return connectionError.message;
  if (event === undefined || !("code" in event) || typeof event.code !== "number") return undefined;
  if (!isTerminalCloseCode(event.code)) return undefined;
  return `It was closed with ${event.code}${"reason" in event && event.reason !== "" ? `: ${String(event.reason)}` : ""}.`;
}

/** Names the agent in errors and checkpoints. */
export function sourceOf({ agent, name }: AgentSocket): string {
  return `perdure:${agent ?? "agent"}/${name ?? "default"}`;
}

/** Codes that mean the same here as there. */
const CODES: ReadonlySet<string> = new Set<PerdureErrorCode>([
  ...(["agent_gone", "bad_config", "bad_input", "conflict", "disk_full", "fenced", "host_stopped"] as const),
  ...(["limit", "not_allowed", "not_found", "read_only", "sql_failed", "too_large"] as const),
]);

/** An error that the agent has told. */
export function toldError({ code, message }: { readonly code: string; readonly message: string }): PerdureError {
  return new PerdureError(CODES.has(code) ? (code as PerdureErrorCode) : "call_failed", message);
}
