import { PerdureError } from "../../base/error.ts";
import { DEFAULT_LIMITS, type Limits } from "./sandbox.ts";

/** What no run may ask for: numbers above are mistakes, and would be held against the host. */
const CEILING: Limits = {
  wallMs: 24 * 60 * 60 * 1_000,
  cpuMs: 60 * 60 * 1_000,
  memoryMB: 2_048,
  outputBytes: 256 << 20,
  toolCalls: 1_000_000,
  toolBytes: 256 << 20,
};

const names = Object.keys(DEFAULT_LIMITS) as readonly (keyof Limits)[];

/**
 * Every limit, with what was given in front of the defaults.
 * @throws PerdureError `bad_input` for a limit that is no number from 1 to its ceiling
 */
export function resolveLimits(...given: readonly (Partial<Limits> | undefined)[]): Limits {
  const limits: { -readonly [K in keyof Limits]: number } = { ...DEFAULT_LIMITS };
  for (const some of given) {
    for (const name of names) {
      const value: unknown = some?.[name];
      if (value === undefined) continue;
      if (typeof value !== "number" || !(value >= 1 && value <= CEILING[name])) {
        throw new PerdureError(
          "bad_input",
          `The limit ${name} must be a number from 1 to ${CEILING[name]}, not ${typeof value === "number" ? value : JSON.stringify(value)}.`,
        );
      }
      limits[name] = Math.floor(value);
    }
  }
  return limits;
}
