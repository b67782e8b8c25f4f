import type { DeliverTo } from "../../store/delivery.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Lineage } from "./lineage.ts";
import type { AgentToolLifecycleResult, AgentToolMilestone, AgentToolRunInfo } from "./types.ts";

/** The turns of an agent that holds a conversation, as its runs look at them. */
export interface OwnTurns {
  /** Whether a turn was cut because it stalled, and is about to be carried on. */
  isStalled(turnId: string): boolean;
  /** Whether a turn is under way, not stopped, and what it is for is wanted by the agents above. */
  isWanted(turnId: string): Promise<boolean>;
  /** Whether calls of a turn go on without it. */
  goesOn(turnId: string): boolean;
  readonly conversation: RunConversation;
  /** The run of the agent above that a turn was taken for, if it was. */
  runOf(turnId: string): string | undefined;
  /** Which runs a turn comes of, or code outside turns. */
  lineageOf(turnId: string | undefined): Lineage | undefined;
  /** The session of a turn; without one, that of the running turn, else the current one. */
  sessionOf(turnId: string | undefined): string | undefined;
  /** Where model calls are booked, also those that children make for the agent. */
  readonly ledger?: Ledger | undefined;
}

/** What a message about a run is for: the session that asked for it, and whoever it was done for. */
export interface ReactingTo {
  readonly session: string | undefined;
  readonly identity: string | null;
  readonly deliverTo?: DeliverTo | undefined;
}

/** Where ends and milestones of detached runs are told: the session that asked, if it is there. Each `key` is told once. */
export interface RunConversation {
  /** Why an answer cannot be delivered there; undefined: it can. */
  whyNowhere(place: unknown): Promise<string | undefined>;
  formatCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string;
  formatMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone): string;
  /** Adds an answer that no model wrote. */
  narrate(key: string, text: string, session: string | undefined): void;
  /** Has the model answer a message. */
  react(key: string, text: string, metadata: Record<string, unknown>, run: ReactingTo): void;
}
