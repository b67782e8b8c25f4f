/** Reports a run of a child agent to the clients of its parent. */
export interface AgentToolEventFrame {
  readonly type: "agent-tool-event";
  /** The tool call that started the run; absent for a run that no tool call started. */
  readonly parentToolCallId?: string;
  /**
   * 0 for `started`, i+1 for the child's stored chunk i, live and replayed alike, then the end. Progress, milestones and unstored
   * chunks carry the next number without using it up. A wrong or repeated number makes clients drop text.
   */
  readonly sequence: number;
  /** Only on the replay of stored runs to a new connection. */
  readonly replay?: true;
  readonly event: AgentToolEvent;
}

/** Why a run was given up although its child may still live. */
export type AgentToolInterruptReason =
  | "no-progress"
  | "window-exceeded"
  | "not-tailable"
  | "inspect-timeout"
  | "inspect-failed"
  | "recovery-deadline"
  | "budget-exceeded";

/** One event of one run. */
export type AgentToolEvent =
  | {
      readonly kind: "started";
      readonly runId: string;
      /** The registered class name, not the kebab form. */
      readonly agentType: string;
      readonly inputPreview?: unknown;
      readonly order: number;
      readonly display?: { readonly name?: string; readonly icon?: string };
    }
  | {
      readonly kind: "chunk";
      readonly runId: string;
      /** JSON text of one UI message chunk. */
      readonly body: string;
      /** Names a chunk that is not stored, so that it is not mistaken for the next stored one. */
      readonly unstoredId?: string;
    }
  | { readonly kind: "finished"; readonly runId: string; readonly summary: string }
  | { readonly kind: "error"; readonly runId: string; readonly error: string }
  | { readonly kind: "aborted"; readonly runId: string; readonly reason?: string }
  | {
      readonly kind: "interrupted";
      readonly runId: string;
      readonly error: string;
      readonly reason?: AgentToolInterruptReason;
      readonly childStillRunning?: boolean;
    };

/** Body of a progress chunk: coalesced, never stored, never replayed. */
export interface AgentProgressChunk {
  readonly type: "data-agent-progress";
  /** New for each chunk. */
  readonly id: string;
  readonly transient: true;
  readonly data: AgentProgress;
}

/** Body of a milestone chunk: stored and replayed. */
export interface AgentMilestoneChunk {
  readonly type: "data-agent-milestone";
  /** `sequence` counts the milestones of the run from 0; `at` is milliseconds since the epoch. */
  readonly data: AgentProgress & { readonly name: string; readonly sequence: number; readonly at: number };
}

/** How far a run is. */
export interface AgentProgress {
  /** From 0 to 1. */
  readonly fraction?: number;
  readonly message?: string;
  readonly phase?: string;
  readonly data?: unknown;
}
