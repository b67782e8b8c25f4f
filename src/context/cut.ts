import { isTerminal, isToolPart, type Part, type UIMessage } from "../message/types.ts";
import type { Measure } from "./measure.ts";
import { shownFrom, type ContextView, type PathNode, type ShownNode } from "./view.ts";

/** The most that is kept as it is behind a summary, in tokens. */
const MAX_TAIL_TOKENS = 20_000;
/** The same as a share of what a request may hold. */
const TAIL_SHARE = 0.25;
/** The same as a share of the conversation: one that is asked for early should cover something too. */
const TAIL_OF_CONVERSATION = 0.3;
/** Up to this share of what a request may hold, the last turn is kept whole. */
const WHOLE_TURN_SHARE = 0.4;

/** Where a conversation is cut: what stands before is summarised. */
export interface Cut {
  /** The newest message that is covered, or of which a part is. */
  readonly at: number;
  /** How many of its parts are covered; null: all. */
  readonly parts: number | null;
  /** What is covered and was not before, oldest first. */
  readonly covered: readonly { readonly node: ShownNode; readonly parts: readonly Part[] }[];
  /** Messages that are covered and shown whole all the same, oldest first. */
  readonly pins: readonly PathNode[];
  /** What is not covered, oldest first. */
  readonly rest: readonly ShownNode[];
}

/** How many tokens to keep behind a summary. */
export function tailBudget(usable: number, conversation: number): number {
  return Math.floor(Math.min(MAX_TAIL_TOKENS, TAIL_SHARE * usable, TAIL_OF_CONVERSATION * conversation));
}

/** A message of a user, or one step of an answer: what is kept or covered together. */
interface Piece {
  readonly node: number;
  readonly from: number;
  readonly tokens: number;
}

/**
 * Where to cut: before a user's message, with as much behind it as fits into `tail` tokens, at least from the user's last message
 * on. If what follows that message is too much by itself, the answer is cut between two steps, and the message is still shown
 * whole. Never between a call and its result, never after a call that waits.
 * @param open the last message is an answer that is still being written.
 * @returns undefined when nothing could be covered.
 */
export function findCut(
  view: ContextView,
  measure: Pick<Measure, "message" | "usable">,
  tail: number,
  open = false,
): Cut | undefined {
  const { nodes } = view;
  const pieces = nodes.flatMap((node, index) => toPieces(view, node, index, measure));
  const sizeFrom = (at: number) => pieces.slice(at).reduce((sum, { tokens }) => sum + tokens, 0);
  const asks = (at: number) => nodes[pieces[at]?.node ?? -1]?.message.role === "user";
  let at = pieces.length;
  let size = 0;
  while (at > 0 && size + (pieces[at - 1]?.tokens ?? 0) <= tail) size += pieces[--at]?.tokens ?? 0;

  const lastUser = nodes.findLastIndex(({ message }) => message.role === "user");
  const turn = pieces.findIndex(({ node }) => node === lastUser);
  const most = WHOLE_TURN_SHARE * measure.usable;
  if (turn !== -1 && (at <= turn || lastUser === nodes.length - 1)) {
    at = Math.min(at, turn);
    // What stands behind a summary begins with something that was asked.
    while (!asks(at)) at++;
  } else if (turn > 0 && sizeFrom(turn) <= most) {
    at = turn;
  } else if (at === pieces.length && (!open || sizeFrom(at - 1) <= most)) {
    // Something has to be there that the conversation goes on from.
    at--;
  }
  at = Math.min(at, firstWaiting(nodes, pieces));
  const piece = pieces[at];
  // An answer that has grown since is covered as far as it was.
  const [index, parts] = piece === undefined ? [nodes.length - 1, undefined] : [piece.node, piece.from];
  const split = nodes[index];
  if (split === undefined || at === 0) return undefined;
  if (piece === undefined) return toCut(view, nodes.length, open ? split.message.parts.length : 0, lastUser);
  return toCut(view, index, parts === split.from ? 0 : (parts ?? 0), lastUser);
}

/** @param split how many parts of the message at `index`, or of the last one, are covered; 0: no part alone. */
function toCut(view: ContextView, index: number, split: number, lastUser: number): Cut | undefined {
  const { nodes, pinned } = view;
  const past = index === nodes.length;
  const inside = split > 0 ? nodes[past ? index - 1 : index] : undefined;
  // What is pinned is shown whole, or not covered at all.
  if (inside?.pinned === true) return toCut(view, past ? index - 1 : index, 0, lastUser);
  const whole = nodes.slice(0, past && inside !== undefined ? index - 1 : index);
  const last = whole.at(-1);
  const at = inside?.seq ?? last?.last;
  if (at === undefined) return undefined;
  const covered = whole.map((node) => ({ node, parts: node.message.parts.slice(node.from) }));
  if (inside !== undefined) covered.push({ node: inside, parts: inside.message.parts.slice(inside.from, split) });
  // When the user's last message was covered before, it stays what it was then.
  const stays = lastUser === -1 ? pinned.findLast(({ message }) => message.role === "user") : undefined;
  const pins: PathNode[] = pinned.filter((node) => node.pinned || node === stays);
  for (const [i, node] of whole.entries()) {
    if (node.pinned || i === lastUser) pins.push(node);
    // A pinned answer shows what it took in.
    if (!node.pinned) pins.push(...(node.taken ?? []));
  }
  // To cover only what is shown all the same would be for nothing.
  if (inside === undefined && whole.every((node) => pins.includes(node))) return undefined;
  const after = nodes.slice(whole.length);
  const rest = inside === undefined ? after : after.map((node) => (node === inside ? { ...node, from: split } : node));
  return { at, parts: inside === undefined ? null : split, covered, pins, rest };
}

/** A cut behind a message, or behind its first `parts` parts. Undefined when it is not shown, or nothing would be covered. */
export function cutAt(view: ContextView, at: number, parts: number | null): Cut | undefined {
  const index = view.nodes.findIndex((node) => node.seq === at || node.last === at);
  const node = view.nodes[index];
  if (node === undefined) return undefined;
  const lastUser = view.nodes.findLastIndex(({ message }) => message.role === "user");
  if (parts === null) return toCut(view, index + 1, 0, lastUser);
  return parts > node.from && parts <= node.message.parts.length ? toCut(view, index, parts, lastUser) : undefined;
}

function toPieces(view: ContextView, node: ShownNode, index: number, measure: Pick<Measure, "message">): Piece[] {
  const { message, from } = node;
  const bounds = message.role === "assistant" ? stepBounds(message).filter((at) => at > from) : [];
  // Part by part as stored, but for the texts that stand in the places of outputs.
  const shown = shownFrom(node, view);
  return [from, ...bounds].map((start, i) => {
    const parts = shown?.parts.slice(start - from, bounds[i] === undefined ? undefined : bounds[i] - from) ?? [];
    return { node: index, from: start, tokens: measure.message(message, parts) };
  });
}

/** Where the steps of an answer begin, but for the first. What was said to a step stands before it. */
export function stepBounds({ parts }: Pick<UIMessage, "parts">): number[] {
  const bounds: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (part.type !== "step-start") continue;
    let at = index;
    while (parts[at - 1]?.type === "steering-message") at--;
    if (at > 0) bounds.push(at);
  }
  return bounds;
}

/** The first piece with a call that has no end: it must be kept, or its result would have no call. */
function firstWaiting(nodes: readonly ShownNode[], pieces: readonly Piece[]): number {
  const at = pieces.findIndex(({ node, from }, i) => {
    const next = pieces[i + 1];
    const parts = nodes[node]?.message.parts.slice(from, next?.node === node ? next.from : undefined) ?? [];
    return parts.some((part) => isToolPart(part) && !isTerminal(part));
  });
  return at === -1 ? pieces.length : at;
}
