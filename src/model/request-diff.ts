import { isRecord, sameJson } from "../base/json.ts";
import type { ShownRequest } from "./read-request.ts";

/** A place where two values differ. A side that is undefined is not there. */
export interface Difference {
  /** Names and numbers with dots: `messages.3.content.0.text`. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The parts of a request that count, in the order in which providers read them. */
export type RequestParts = Pick<ShownRequest, "instructions" | "tools" | "settings" | "messages">;

const PARTS = ["tools", "instructions", "settings", "messages"] as const;

/** The first place where two values differ, deepest; undefined: they are stored as the same JSON. */
export function firstDifference(before: unknown, after: unknown, path = ""): Difference | undefined {
  if (sameJson(before, after)) return undefined;
  const at = (name: string | number) => (path === "" ? String(name) : `${path}.${name}`);
  if (Array.isArray(before) && Array.isArray(after)) {
    for (let i = 0; i < Math.max(before.length, after.length); i++) {
      const found = firstDifference(before[i], after[i], at(i));
      if (found !== undefined) return found;
    }
  } else if (isRecord(before) && isRecord(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const found = firstDifference(before[name], after[name], at(name));
      if (found !== undefined) return found;
    }
  }
  return { path, before, after };
}

/** What two requests have in common, and where they differ. */
interface RequestDiff {
  /** How many messages at their beginning are the same. */
  readonly common: number;
  /** Messages of the first that are not sent with the second, and the other way round. */
  readonly removed: number;
  readonly added: number;
  /** The first difference of each part. Messages that are only added are none. */
  readonly differences: readonly Difference[];
  /** Whether a provider can read on from where it was: the second begins with all of the first. */
  readonly extends: boolean;
}

/** Compares two requests. */
export function diffRequests(before: RequestParts, after: RequestParts): RequestDiff {
  let common = 0;
  while (common < before.messages.length && sameJson(before.messages[common], after.messages[common])) common++;
  const differences = PARTS.flatMap((part) => {
    const [a, b] =
      part === "messages"
        ? [before.messages.slice(0), after.messages.slice(0, before.messages.length)]
        : [before[part], after[part]];
    const found = firstDifference(a, b, part);
    return found === undefined ? [] : [found];
  });
  return {
    ...{ common, removed: before.messages.length - common, added: after.messages.length - common },
    ...{ differences, extends: differences.every(({ path }) => path.startsWith("settings")) },
  };
}
