import { isTerminal, isToolPart, toolName } from "../message/types.ts";
import { isCleared, noteInstead } from "./cleared.ts";
import type { Measure } from "./measure.ts";
import { findSuperseded, type OutputRules } from "./superseded.ts";
import { callKey, type ContextView, type NewerCall, type PrunedCall } from "./view.ts";

/** So many of the user's last turns keep all outputs. */
const PROTECTED_TURNS = 2;
/** The newest outputs of tools before the user's last two turns are never cleared, up to this many tokens. */
export const PRUNE_PROTECT = 40_000;
/** For less than this many tokens nothing is cleared: what follows has to be read anew by the provider. */
export const PRUNE_MINIMUM = 20_000;
/** The same as shares of what may be sent: in a small window they are what counts. */
const PROTECT_SHARE = 1 / 3;
const MINIMUM_SHARE = 1 / 6;
/** When a turn begins, superseded outputs are left out if they are this share of the request. */
const SUPERSEDED_SHARE = 1 / 3;
/** For a smaller share of what may be sent they are left alone, whatever else is done. */
const SUPERSEDED_MINIMUM = 1 / 20;
/** Outputs that are not longer than what would stand in their place. */
const MIN_OUTPUT_TOKENS = 100;

/** Outputs that could be left out. */
export interface PrunePlan {
  /** Where it counts: on paths through this message, the newest that it is about. */
  readonly at: number;
  readonly calls: readonly PrunedCall[];
  /** How many tokens that frees, about. */
  readonly tokens: number;
}

type Measuring = Pick<Measure, "output" | "text" | "usable">;

/** How many tokens of the newest outputs are kept, and for how few nothing is done, in a window of this size. */
export function pruneBounds(usable: number): { readonly protect: number; readonly minimum: number } {
  return {
    protect: Math.min(PRUNE_PROTECT, PROTECT_SHARE * usable),
    minimum: Math.min(PRUNE_MINIMUM, MINIMUM_SHARE * usable),
  };
}

/** Outputs that newer ones replace, back to the last summary; none if they are less than a twentieth of what may be sent. */
export function planSuperseded(view: ContextView, measure: Measuring, rules: OutputRules): PrunePlan | undefined {
  const calls: PrunedCall[] = [];
  let at = 0;
  let gain = 0;
  for (const one of findSuperseded(view, rules)) {
    const tokens = measure.output(one.message, one.part);
    if (tokens < MIN_OUTPUT_TOKENS) continue;
    calls.push([one.seq, one.part.toolCallId, one.newer.map(({ message, call }) => [message, call] as const)]);
    gain += tokens - measure.text(noteInstead(one.part, one.message.id, one.newer));
    at = Math.max(at, one.at);
  }
  return calls.length === 0 || gain < SUPERSEDED_MINIMUM * measure.usable ? undefined : { at, calls, tokens: gain };
}

/** Whether that is so much of a request that the provider may read the rest of it anew. */
export function isMuchOf({ tokens }: PrunePlan, request: number, usable: number): boolean {
  return tokens >= Math.max(SUPERSEDED_SHARE * request, pruneBounds(usable).minimum);
}

/** What a view shows with a plan. */
export function withPlan(view: ContextView, { calls }: PrunePlan): ContextView {
  const newer = new Map(view.newer);
  for (const [seq, call, by] of calls) {
    if (by !== undefined)
      newer.set(
        callKey(seq, call),
        by.map(([message, id]): NewerCall => ({ message, call: id })),
      );
  }
  return { ...view, newer, cleared: new Set([...view.cleared, ...calls.map(([seq, call]) => callKey(seq, call))]) };
}

/** Two plans in one, the second of which was made for what the first one leaves. */
export function joined(first: PrunePlan | undefined, second: PrunePlan | undefined): PrunePlan | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  const at = Math.max(first.at, second.at);
  return { at, calls: [...first.calls, ...second.calls], tokens: first.tokens + second.tokens };
}

/**
 * Old tool outputs that could be left out, oldest first. Spared: the user's last two turns, the newest 40,000 tokens of outputs
 * before them, pinned messages, tools with `keep: "always"`; and nothing is cleared for less than 20,000. (In a small window: a
 * third and a sixth of what may be sent.) Counts what the model reads of an output. Stops at a summary, as a view does.
 */
export function planPrune(
  view: ContextView,
  measure: Pick<Measure, "output" | "usable">,
  keepAlways: (tool: string) => boolean,
): PrunePlan | undefined {
  const { protect, minimum } = pruneBounds(measure.usable);
  const calls: [number, string][] = [];
  let turns = 0;
  let seen = 0;
  let gain = 0;
  for (const { seq, message, from, pinned } of view.nodes.toReversed()) {
    if (message.role === "user") turns++;
    if (turns < PROTECTED_TURNS || message.role !== "assistant" || pinned) continue;
    for (const part of message.parts.slice(from).toReversed()) {
      if (!isToolPart(part) || part.state !== "output-available" || !isTerminal(part)) continue;
      if (view.cleared.has(callKey(seq, part.toolCallId)) || isCleared(part)) continue;
      // What a provider did by itself, it wants back as it said it.
      if (keepAlways(toolName(part)) || part.providerExecuted === true) continue;
      const tokens = measure.output(message, part);
      seen += tokens;
      if (seen <= protect || tokens < MIN_OUTPUT_TOKENS) continue;
      calls.push([seq, part.toolCallId]);
      gain += tokens;
    }
  }
  const [newest] = calls;
  if (newest === undefined || gain < minimum) return undefined;
  return { at: newest[0], calls: calls.reverse(), tokens: gain };
}
