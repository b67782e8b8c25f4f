import type { AgentHost } from "../port.ts";
import type { RetryOptions } from "./retry.ts";

/** What schedules, queue and fibers may ask of the agent that they work for. */
export interface WorkContext {
  readonly host: Pick<
    AgentHost,
    "id" | "sql" | "tx" | "afterTx" | "durable" | "breathe" | "clock" | "emit" | "report" | "keepAwake" | "context"
  >;
  /** The agent's method, bound; undefined when there is none. It runs in a context of its own, whoever started the work. */
  method(name: string): ((...args: unknown[]) => unknown) | undefined;
  /** Due times or running work changed: the agent recomputes its alarm. Called after that transaction; a throw is reported. */
  changed(): void;
  /** Defaults for retries. */
  readonly retry: Required<RetryOptions>;
  /** Which turn the calling code comes of, to be stored with what it plans; null: none. */
  cause(): string | null;
  /** What is carried along with work that comes of it. */
  carry(cause: string | null): object;
  /** True once the host drains or halts: start nothing new. */
  stopped(): boolean;
}

/** One kind of work with a due time. */
export interface Work {
  /** The earliest due time of what is not already running; null when nothing waits. */
  next(): number | null;
  /** Whether something runs now that another life would have to carry on. */
  active(): boolean;
  /** Starts what is due. Never throws, does not wait. What does not fit in one call shows in {@link Work.next}. */
  runDue(): void;
  /** This life ends now: aborts what runs and writes nothing more. */
  halt(reason: unknown): void;
}

/** How often work may be cut by the end of the process before it counts as its own fault. */
export const MAX_INTERRUPTIONS = 10;
/** Failed rows that each table keeps for reading; beyond it the oldest go. */
export const MAX_FAILED_ROWS = 1000;
/** What is started in one synchronous stretch, so that much due work does not hold up sockets. */
export const START_BATCH = 100;
/** What may run at one time, per kind of work. The rest waits in its rows. */
export const MAX_RUNNING = 1000;
