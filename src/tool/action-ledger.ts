import { encodeJson } from "../base/json.ts";
import type { AgentHost } from "../port.ts";
import {
  type ActionHead,
  type ActionRow,
  deleteAction,
  deletePendingAction,
  insertAction,
  listActions,
  readAction,
  restartAction,
  settleAction,
  trimActions,
} from "../store/action.ts";

/** After this long a pending action whose key the app named may run again. */
export const RECLAIM_AFTER_MS = 5 * 60_000;
const DAY_MS = 24 * 3_600_000;
/** How long a result is remembered. */
export const SETTLED_KEPT_MS = 30 * DAY_MS;
/** How long it is remembered that nobody knows what became of an action. */
export const PENDING_KEPT_MS = 90 * DAY_MS;
/** Old rows are looked for with the first action of a life, and then with every so manieth. */
const TRIM_EVERY = 200;
const TRIM_ROWS = 500;
const DEFAULT_LIST = 100;

/** Which action, under which key. */
export interface ActionEntry {
  readonly key: string;
  readonly action: string;
  readonly digest: string;
  readonly session: string;
  /** The app named the key: then a pending row may be reclaimed. */
  readonly named: boolean;
}

/** How an action stands before it runs. */
export type ActionStanding =
  /** It may run. */
  | { readonly kind: "free" }
  | { readonly kind: "settled"; readonly output: unknown }
  /** The key stands for another input. */
  | { readonly kind: "conflict" }
  /** It was begun, and nobody knows what became of it. */
  | { readonly kind: "pending"; readonly since: number };

/** One action as `listActions` shows it. */
export interface ActionRecord {
  readonly key: string;
  readonly action: string;
  readonly sessionId: string;
  readonly attempts: number;
  readonly startedAt: number;
  /** Null: it is under way, or was cut off. */
  readonly settledAt: number | null;
}

/** What came of an action: its output, or what the model is told of its failure. */
export interface ActionEnd {
  readonly done: boolean;
  readonly output: unknown;
}

/** An action that runs in this life. */
interface Running {
  readonly digest: string;
  readonly ended: Promise<ActionEnd>;
}

/**
 * What the agent's actions have done. A row is written before an action runs and settled with its result, so that the same key
 * gives the same result without the work.
 */
export class ActionLedger {
  readonly host: Pick<AgentHost, "sql" | "tx" | "clock" | "durable" | "keepAwake">;
  /** By key: what runs now. A second call of the same key waits for the first. */
  readonly running = new Map<string, Running>();
  #begun = 0;

  constructor(host: Pick<AgentHost, "sql" | "tx" | "clock" | "durable" | "keepAwake">) {
    this.host = host;
  }

  /** How an action stands. Changes nothing. @param reclaimAfterMs false: a pending row stays what it is. */
  standing(entry: ActionEntry, reclaimAfterMs: number | false = RECLAIM_AFTER_MS): ActionStanding {
    return this.#standingOf(readAction(this.host, entry.key), entry, reclaimAfterMs);
  }

  /**
   * Records that an action is about to run, if it may. Must be durable before it runs.
   * @returns when the attempt began, which names it; or why it may not run
   */
  begin(
    entry: ActionEntry,
    reclaimAfterMs: number | false = RECLAIM_AFTER_MS,
  ): { readonly kind: "begun"; readonly startedAt: number } | Exclude<ActionStanding, { kind: "free" }> {
    const { host } = this;
    return host.tx(() => {
      const row = readAction(host, entry.key);
      const standing = this.#standingOf(row, entry, reclaimAfterMs);
      if (standing.kind !== "free") return standing;
      const startedAt = host.clock.now();
      const { key, action, digest, session, named } = entry;
      if (row === undefined) insertAction(host, { key, action, digest, session, named: named ? 1 : 0, startedAt });
      else restartAction(host, key, session, startedAt);
      if (this.#begun++ % TRIM_EVERY === 0) {
        trimActions(host, startedAt - SETTLED_KEPT_MS, startedAt - PENDING_KEPT_MS, TRIM_ROWS);
      }
      return { kind: "begun", startedAt };
    });
  }

  /** Stores the result of an attempt, inside the caller's transaction if there is one. */
  settle(key: string, startedAt: number, output: unknown): void {
    const json = encodeJson(output ?? null, "The output of the action") ?? "null";
    settleAction(this.host, key, startedAt, json, this.host.clock.now());
  }

  /** The attempt failed: it may be tried again. */
  drop(key: string, startedAt: number): void {
    deletePendingAction(this.host, key, startedAt);
  }

  /** The newest first. */
  list(limit = DEFAULT_LIST): ActionRecord[] {
    return listActions(this.host, limit).map(toRecord);
  }

  /** For somebody who found out what became of a pending action, or wants it done again. @returns whether there was one. */
  forget(key: string): boolean {
    return deleteAction(this.host, key);
  }

  #standingOf(row: ActionRow | undefined, entry: ActionEntry, reclaimAfterMs: number | false): ActionStanding {
    if (row === undefined) return { kind: "free" };
    if (row.digest !== entry.digest) return { kind: "conflict" };
    if (row.settledAt !== null) return { kind: "settled", output: JSON.parse(row.output ?? "null") as unknown };
    const age = this.host.clock.now() - row.startedAt;
    // The name of the key says that doing it again under that name is safe; the time, that nobody else is at it.
    if (entry.named && reclaimAfterMs !== false && age >= reclaimAfterMs) return { kind: "free" };
    return { kind: "pending", since: row.startedAt };
  }
}

function toRecord({ key, action, session, attempts, startedAt, settledAt }: ActionHead): ActionRecord {
  return { key, action, sessionId: session, attempts, startedAt, settledAt };
}
