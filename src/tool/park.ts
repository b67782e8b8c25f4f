import type { Tool } from "ai";

/** What a person is asked before a call goes on, and what the call needs to go on. */
export interface ParkedQuestion {
  /** What is asked about: the tool that would run next, inside of the call. */
  readonly tool: string;
  readonly input: unknown;
  /** One sentence on what a yes does. */
  readonly summary?: string;
  /** How long the question may wait; without it, as the agent's settings say. */
  readonly waitMs?: number;
  /** What {@link ResumedCall} gets back. Stored with the question; at most a few megabytes. */
  readonly state: Uint8Array;
}

/** A call that waits for a person in the middle of its work. Made by {@link park}. */
export class ParkedCall {
  readonly question: ParkedQuestion;

  constructor(question: ParkedQuestion) {
    this.question = question;
  }
}

/**
 * What a tool returns when it needs a person's answer. The question and the state are stored, the turn ends as for any approval,
 * and nothing of the call stays in memory. After a yes, also after a restart, the tool is called again with the same input and
 * `resumed`; it may park again. After a no only the model is told.
 */
export function park(question: ParkedQuestion): ParkedCall {
  return new ParkedCall(question);
}

/** What a tool is handed when a person has said yes to what it parked for. */
export interface ResumedCall {
  readonly state: Uint8Array;
  /** Who said so. */
  readonly approver: string | undefined;
}

/** A tool that another tool calls. */
export interface NestedCall {
  readonly toolName: string;
  readonly tool: Tool;
  readonly input: unknown;
  /** Which of the calls inside this one it is. The same number means the same call, also after a restart. */
  readonly index: number;
  /** A person has said yes to exactly this call. */
  readonly approved?: boolean;
  /** Aborts when nobody waits for the call any more. The stop of the turn ends it in any case. */
  readonly signal?: AbortSignal;
}

/** Why a person has to be asked about a call, and for how long the question may wait where the tool says so. */
export interface NestedQuestion {
  readonly reason: string | undefined;
  readonly waitMs?: number;
}

/** What became of it. Never an exception. */
export type NestedOutcome =
  | { readonly kind: "output"; readonly output: unknown }
  | { readonly kind: "error"; readonly errorText: string }
  /** A person has to be asked first: {@link park}, and call it again with `approved`. */
  | ({ readonly kind: "ask" } & NestedQuestion)
  | { readonly kind: "aborted" };

/** What the turn does for a tool that calls other tools: the same rules hold for them as for the model's own calls. */
export interface ToolTurn {
  /** Checks input, asks `toolApproval`, `needsApproval` and `beforeToolCall`, runs within limits, tells `afterToolCall`. */
  runNested(call: NestedCall): Promise<NestedOutcome>;
}
