import type { FiberContext } from "../fiber/fiber-view.ts";
import type { Identity } from "../identity.ts";
import type { AsyncContext } from "../port.ts";
import type { Agent } from "./agent.ts";
import type { Connection } from "./connection.ts";

/** Who is running now, and for whom. */
export interface CurrentAgent<T extends Agent<object> = Agent<object>> {
  readonly agent: T | undefined;
  /** The connection whose frame is being handled. */
  readonly connection: Connection | undefined;
  /** The request being answered, or the one that opened the connection. */
  readonly request: Request | undefined;
  /** For whom: who sent the request or the frame; in a turn, who wrote the message that began it. */
  readonly identity?: Identity;
  /** The fiber that this runs in. */
  readonly fiber?: FiberContext;
  /** The turn that this runs in. */
  readonly turn?: string;
}

/** Set by the first agent of the process; a host uses one context for all of its agents. */
let carrier: AsyncContext | undefined;

/** Tells where the current agent is carried. */
export function carryWith(context: AsyncContext): void {
  carrier = context;
}

const NOBODY: CurrentAgent = { agent: undefined, connection: undefined, request: undefined };

/**
 * The agent that the calling code runs for, however deep in the call and across awaits, with the connection
 * and request that it serves. All fields are undefined outside of an agent.
 */
export function getCurrentAgent<T extends Agent<object> = Agent<object>>(): CurrentAgent<T> {
  return (carrier?.get() ?? NOBODY) as CurrentAgent<T>;
}

/** Runs `work` as what the caller runs as, but in no turn: for what goes on after the turn that began it. */
export function runOutsideTurn<T>(context: AsyncContext, work: () => T): T {
  const { turn: _, ...rest } = getCurrentAgent();
  return context.run(rest, work);
}

/** Runs `work` for an agent. */
export function runAs<T>(context: AsyncContext, current: CurrentAgent, work: () => T): T {
  return context.run(current, work);
}
