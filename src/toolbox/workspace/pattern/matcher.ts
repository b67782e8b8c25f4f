import { PerdureError } from "../../../base/error.ts";
import { isWordChar, type Assertion, type CharTest, type Pattern } from "./syntax.ts";

/** Patterns that come to more states are refused: each character costs at most one look at each. */
export const MAX_STATES = 2_000;
/** How many sets of states are remembered before all are forgotten. */
const MAX_REMEMBERED = 1_000;
const MAX_STEPS_REMEMBERED = 50_000;
const ASCII = 128;
const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;

/** Finds a pattern in texts, in time that grows with their length alone, whatever the pattern. */
export interface Matcher {
  /** Whether the pattern is anywhere in `text`. */
  test(text: string): boolean;
  /** How many states were looked at so far, for whoever shares the time with others. Absent: next to nothing. */
  readonly work?: number;
}

type State =
  | { readonly kind: "char"; readonly test: CharTest; readonly next: number }
  | { readonly kind: "split"; readonly next: readonly number[] }
  | { readonly kind: "assert"; readonly what: Assertion; readonly next: number }
  | { readonly kind: "found" };

/** What stands beside a here in the text. */
type Side = "edge" | "word" | "other";

/** All states that a text can be in after what was read of it, and what came last. */
interface StateSet {
  readonly states: readonly number[];
  readonly before: Side;
  readonly ascii: (StateSet | typeof FOUND | undefined)[];
  readonly more: Map<number, StateSet | typeof FOUND>;
  /** Whether the pattern is found when the text ends here, once it was asked. */
  atEnd: boolean | undefined;
}

const FOUND = Symbol("found");

/**
 * Makes a matcher. It never goes back in the text: it follows all ways through the pattern at the same time, and
 * remembers which set of ways each character leads to.
 * @throws PerdureError `limit` for a pattern that comes to too many states
 */
export function createMatcher(pattern: Pattern): Matcher {
  const states = compile(pattern);
  let known = new Map<string, StateSet>();
  let steps = 0;
  /** Where every text begins. */
  let begin: StateSet | undefined;
  let work = 0;
  /** In which round each state was seen last: a set of them would cost more than all the rest. */
  const seen = new Uint32Array(states.length);
  let round = 0;

  /** Every state that is reached without reading; true when the pattern is found. */
  function close(from: readonly number[], before: Side, after: Side): number[] | typeof FOUND {
    const reached: number[] = [];
    const waiting = [...from, 0];
    round++;
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      if (seen[at] === round) continue;
      seen[at] = round;
      reached.push(at);
      const state = states[at];
      if (state?.kind === "found") return FOUND;
      if (state?.kind === "split") waiting.push(...state.next);
      if (state?.kind === "assert" && holds(state.what, before, after)) waiting.push(state.next);
    }
    work += reached.length;
    return reached;
  }

  function setOf(ways: readonly number[], before: Side): StateSet {
    const bits = new Uint16Array(Math.ceil(states.length / 16));
    for (const at of ways) bits[at >> 4] = (bits[at >> 4] ?? 0) | (1 << (at & 15));
    const key = `${before} ${String.fromCharCode(...bits)}`;
    let here = known.get(key);
    if (here === undefined) {
      if (known.size >= MAX_REMEMBERED || steps >= MAX_STEPS_REMEMBERED) {
        known = new Map();
        steps = 0;
        // All the others hang on this one.
        begin?.more.clear();
        if (begin !== undefined) begin.ascii.length = 0;
      }
      const different = ways.filter((at) => {
        const word = bits[at >> 4] ?? 0;
        bits[at >> 4] = word & ~(1 << (at & 15));
        return (word & (1 << (at & 15))) !== 0;
      });
      here = { states: different, before, ascii: [], more: new Map(), atEnd: undefined };
      known.set(key, here);
    }
    return here;
  }

  function step(here: StateSet, char: number): StateSet | typeof FOUND {
    const side: Side = isWordChar(char) ? "word" : "other";
    const closed = close(here.states, here.before, side);
    if (closed === FOUND) return FOUND;
    const next: number[] = [];
    for (const at of closed) {
      const state = states[at];
      if (state?.kind === "char" && state.test(char)) next.push(state.next);
    }
    return setOf(next, side);
  }

  return {
    get work() {
      return work;
    },
    test(text) {
      let here: StateSet = (begin ??= setOf([], "edge"));
      for (let at = 0; at < text.length; at++) {
        let char = text.charCodeAt(at);
        if (char >= FIRST_SURROGATE && char <= LAST_SURROGATE) {
          char = text.codePointAt(at) ?? char;
          if (char > 0xffff) at++;
        }
        let next = char < ASCII ? here.ascii[char] : here.more.get(char);
        if (next === undefined) {
          next = step(here, char);
          steps++;
          if (char < ASCII) here.ascii[char] = next;
          else here.more.set(char, next);
        }
        if (next === FOUND) return true;
        here = next;
      }
      return (here.atEnd ??= close(here.states, here.before, "edge") === FOUND);
    },
  };
}

function holds(what: Assertion, before: Side, after: Side): boolean {
  // Only the ends of the text are edges: lines are looked at one by one.
  if (what === "start") return before === "edge";
  if (what === "end") return after === "edge";
  const isBoundary = (before === "word") !== (after === "word");
  return what === "boundary" ? isBoundary : !isBoundary;
}

/** The states of a pattern; the first is where it begins. */
function compile(pattern: Pattern): readonly State[] {
  const states: (State | undefined)[] = [undefined];
  const add = (state: State): number => {
    if (states.length >= MAX_STATES)
      throw new PerdureError("limit", "The pattern is too large. Use smaller counts in {…}, or a simpler pattern.");
    return states.push(state) - 1;
  };

  /** @returns the state where `part` begins, when `next` comes behind it. */
  const build = (part: Pattern, next: number): number => {
    if (part.type === "char") return add({ kind: "char", test: part.test, next });
    if (part.type === "assert") return add({ kind: "assert", what: part.what, next });
    if (part.type === "all") return part.parts.reduceRight((behind, one) => build(one, behind), next);
    if (part.type === "any") return add({ kind: "split", next: part.parts.map((one) => build(one, next)) });
    return repeat(part, next);
  };

  const repeat = (part: Extract<Pattern, { type: "repeat" }>, next: number): number => {
    let behind = next;
    if (part.max === Number.POSITIVE_INFINITY) {
      behind = add({ kind: "split", next: [] });
      states[behind] = { kind: "split", next: [build(part.part, behind), next] };
    } else {
      for (let n = part.min; n < part.max; n++) behind = add({ kind: "split", next: [build(part.part, behind), next] });
    }
    for (let n = 0; n < part.min; n++) behind = build(part.part, behind);
    return behind;
  };

  const found = add({ kind: "found" });
  states[0] = { kind: "split", next: [build(pattern, found)] };
  return states.map((state): State => state ?? { kind: "split", next: [] });
}
