import type { Fibers } from "../fiber/fibers.ts";
import type { Queue } from "../fiber/queue.ts";
import type { RetryOptions } from "../fiber/retry.ts";
import type { Schedules } from "../fiber/schedules.ts";
import type { Work } from "../fiber/work.ts";
import type { AgentHost } from "../port.ts";
import type { ParsedFrame } from "../wire/parse.ts";
import type { OnDemand } from "./lazy.ts";
import type { Connection, Connections } from "./connection.ts";
import type { StateKeeper } from "./state.ts";
import type { SubAgents } from "./sub-agents.ts";

/**
 * A feature that a class adds to the agent underneath it (chat is one). Each member is asked in the order of
 * the features; none may be slow but `request` and `frame`.
 */
export interface Feature {
  /** After `onStart`, before anything else is handled. */
  started?(): void;
  /** Sends what a new connection must see first; it gets no broadcasts before this returns. */
  connecting?(connection: Connection): void;
  /** Takes a frame that the base agent does not handle. @returns false to leave it to `onMessage`. */
  frame?(connection: Connection, frame: ParsedFrame): boolean | Promise<boolean>;
  /** Answers a request before `onRequest` does, or returns undefined. */
  request?(request: Request): Response | undefined | Promise<Response | undefined>;
  closed?(connection: Connection): void;
}

/** What an agent object is wired from. Kept under a symbol: every plain name belongs to those who extend it. */
export interface AgentParts<State> {
  readonly host: AgentHost;
  readonly connections: Connections;
  readonly state: StateKeeper<State>;
  readonly schedules: Schedules;
  readonly queue: Queue;
  readonly fibers: Fibers;
  readonly children: SubAgents;
  readonly features: Feature[];
  /** Everything with a due time; all share the agent's one alarm. */
  readonly works: OnDemand<Work>[];
  /** Defaults for retries. */
  readonly retry: Required<RetryOptions>;
  /** No new work: the host is going away. */
  draining: boolean;
  /** This life is over. */
  halted: boolean;
  /** Recomputes the alarm. */
  rearm(): void;
}

/** Where the parts of an agent are. */
export const parts: unique symbol = Symbol("perdure.parts");
