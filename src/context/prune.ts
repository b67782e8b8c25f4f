import { isTerminal, isToolPart, toolName } from "../message/types.ts";
import { isCleared } from "./cleared.ts";
import type { Measure } from "./measure.ts";
import { callKey, type ContextView } from "./view.ts";

/** So many of the user's last turns keep all outputs. */
const PROTECTED_TURNS = 2;
/** The newest outputs of tools before the user's last two turns are never cleared, up to this many tokens. */
export const PRUNE_PROTECT = 40_000;
/** For less than this many tokens nothing is cleared: what follows has to be read anew by the provider. */
export const PRUNE_MINIMUM = 20_000;
/** Outputs that are not longer than what would stand in their place. */
const MIN_OUTPUT_TOKENS = 100;

/** Outputs that could be cleared. */
export interface PrunePlan {
  /** The newest message with one of them. */
  readonly at: number;
  /** The number of the message and the id of the call. */
  readonly calls: readonly (readonly [number, string])[];
  /** How many tokens that frees, about. */
  readonly tokens: number;
}

/**
 * Old outputs of tools that could be left out, oldest first. Nothing of the user's last two turns, nor of the newest
 * 40,000 tokens of outputs before them, nor of pinned messages or tools that say `keep: "always"`; and nothing at all for
 * less than 20,000. What counts is what the model reads of an output.
 * Stops at a summary, because a view does.
 */
export function planPrune(
  view: ContextView,
  measure: Pick<Measure, "output">,
  keepAlways: (tool: string) => boolean,
): PrunePlan | undefined {
  const calls: [number, string][] = [];
  let turns = 0;
  let seen = 0;
  let gain = 0;
  for (const { seq, message, from, pinned } of view.nodes.toReversed()) {
    if (message.role === "user") turns++;
    if (turns < PROTECTED_TURNS || message.role !== "assistant" || pinned) continue;
    for (const part of message.parts.slice(from).toReversed()) {
      if (!isToolPart(part) || part.state !== "output-available" || !isTerminal(part)) continue;
      if (view.cleared.has(callKey(seq, part.toolCallId)) || isCleared(part.output)) continue;
      if (keepAlways(toolName(part))) continue;
      const tokens = measure.output(message, part);
      seen += tokens;
      if (seen <= PRUNE_PROTECT || tokens < MIN_OUTPUT_TOKENS) continue;
      calls.push([seq, part.toolCallId]);
      gain += tokens;
    }
  }
  const [newest] = calls;
  if (newest === undefined || gain < PRUNE_MINIMUM) return undefined;
  return { at: newest[0], calls: calls.reverse(), tokens: gain };
}
