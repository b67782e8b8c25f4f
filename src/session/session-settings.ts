import type { UIMessage } from "../message/types.ts";

/** What an app's own compaction says. `null`: leave it as it is. */
export type OwnSummary = string | { readonly summary: string; readonly toMessageId?: string } | null | undefined;

/**
 * An app's own compaction. It gets the messages that are shown now, the summary so far first, and says what the model
 * should read instead of the older ones: up to a message that it names, or up to where Perdure would cut. May be slow;
 * what it throws is a compaction that failed.
 */
export type CompactFunction = (
  messages: readonly UIMessage[],
  context: { readonly focus: string | undefined; readonly signal: AbortSignal },
) => OwnSummary | Promise<OwnSummary>;

/** Counts the tokens of what the model would read. Must be quick; a number that is none counts as 0. */
export type TokenCounter = (messages: readonly UIMessage[], system: string) => number | Promise<number>;

/** What a session was told about itself by the code that configures it. */
export interface SessionSettings {
  /** Compact after a turn that leaves more tokens than this. */
  readonly compactAfter?: number;
  readonly tokenCounter?: TokenCounter;
  readonly compact?: CompactFunction;
  /** What the model may search: its own session, or all of the agent. Undefined: Perdure decides. */
  readonly searchScope?: "session" | "agent";
}
