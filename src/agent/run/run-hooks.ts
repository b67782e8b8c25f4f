import type { Lineage, RunBounds } from "./lineage.ts";
import type { Identity } from "../../base/identity.ts";
import type { AgentRunRow } from "../../store/agent-run.ts";
import type {
  AgentToolLifecycleResult,
  AgentToolMilestone,
  AgentToolProgressSnapshot,
  AgentToolRunInfo,
} from "./types.ts";

/** What the runs of an agent ask of it. */
export interface RunHooks extends RunBounds {
  readonly maxConcurrentAgentTools: number;
  readonly detachedMaxBudgetMs: number;
  readonly detachedNoProgressBudgetMs: number;
  onAgentToolStart(run: AgentToolRunInfo): unknown;
  onAgentToolFinish(run: AgentToolRunInfo, result: AgentToolLifecycleResult): unknown;
  onProgress(run: AgentToolRunInfo, progress: AgentToolProgressSnapshot): unknown;
  /** Calls a method of the agent by its name. */
  method(name: string): ((...args: unknown[]) => unknown) | undefined;
  /** The turn that the calling code runs in. */
  turn(): string | undefined;
  /** For whom it runs, as it is stored; or whom it names. @throws PerdureError `bad_input` for what is no identity */
  identity(given: Identity | undefined): string | null;
  /** Which runs the calling code comes of; undefined where nothing else asked for it. */
  lineage(): Lineage | undefined;
  /** The session of that turn, or the one that work outside of turns is for. */
  session(): string | undefined;
  /** Whether what a turn waits for was let go only because the turn stalled: it is carried on, and comes back. */
  turnStalled(turnId: string): boolean;
  /** Whether a turn is under way and not stopped, and wanted by the agents above, if any. */
  turnWanted(turnId: string): boolean | Promise<boolean>;
  /** The conversation of the agent, if it holds one. */
  conversation(): RunConversation | undefined;
  /** A run has ended, in the transaction that stores it: calls of it that are still open in the ledger were cut. */
  closeCalls(run: AgentRunRow): void;
  /** Runs a hook that only watches, as the agent. What it throws is reported. */
  watch(hook: () => unknown): void;
  /** Something failed that no caller waits for. Must not throw. */
  failed(error: unknown): void;
}

/** What a message about a run is for: the session that asked for it, and whoever it was done for. */
export interface ReactingTo {
  readonly session: string | undefined;
  readonly identity: string | null;
}

/**
 * Where the ends and milestones of detached runs are told: in the session that asked for them; if it is gone, nowhere.
 * Each `key` is told once, however often it is asked.
 */
export interface RunConversation {
  formatCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string;
  formatMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone): string;
  /** Adds an answer that no model wrote. */
  narrate(key: string, text: string, session: string | undefined): void;
  /** Has the model answer a message. */
  react(key: string, text: string, metadata: Record<string, unknown>, run: ReactingTo): void;
}
