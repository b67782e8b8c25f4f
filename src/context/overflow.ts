import { PROACTIVE_SHARE } from "./token-budget.ts";
import { PerdureError } from "../base/error.ts";

/** What is done about conversations that grow too long for the model. All of it is on unless it is said otherwise. */
export interface ContextOverflow {
  /** When a provider says that a request is too long: compact, and try again. */
  readonly reactive?: boolean;
  /** How often that is done in one turn. Default 1. */
  readonly maxRetries?: number;
  /** Before a request that would be too long. `false`: only when a provider says so. */
  readonly proactive?:
    | boolean
    | {
        /** The most to send, where that is less than what the model can read. */
        readonly maxInputTokens?: number;
        /** Compact from this share of `maxInputTokens` on. Default 0.9. */
        readonly threshold?: number;
        /** How often in one turn, each time after it has come further. Default 10. */
        readonly maxCompactions?: number;
      };
  /** Start to summarise at 60 % while turns continue; none waits below 85 %. Default: true, unless `proactive` is false. */
  readonly background?: boolean;
  /** Idle time after which the provider's cache is gone, so old tool outputs are cleared. Default one hour; `Infinity`: never. */
  readonly coldAfterMs?: number;
}

/** {@link ContextOverflow} with all that was left out. */
export type OverflowPolicy = Required<
  Omit<ContextOverflow, "proactive"> & Exclude<ContextOverflow["proactive"], boolean>
> & {
  readonly proactive: boolean;
};

const DEFAULT_RETRIES = 1;
const DEFAULT_COMPACTIONS = 10;
const DEFAULT_COLD_MS = 60 * 60_000;

/** What is to be done; undefined: nothing. @throws PerdureError `bad_config` for numbers that are none. */
export function overflowPolicy(given: ContextOverflow | boolean): OverflowPolicy | undefined {
  if (given === false) return undefined;
  const setting = given === true ? {} : given;
  const { reactive = true, maxRetries = DEFAULT_RETRIES, coldAfterMs = DEFAULT_COLD_MS } = setting;
  const proactive = setting.proactive ?? true;
  const { background = proactive !== false } = setting;
  const { maxInputTokens, threshold, maxCompactions } = typeof proactive === "object" ? proactive : {};
  const policy: OverflowPolicy = {
    reactive,
    maxRetries,
    proactive: proactive !== false,
    maxInputTokens: maxInputTokens ?? Number.POSITIVE_INFINITY,
    threshold: threshold ?? PROACTIVE_SHARE,
    maxCompactions: maxCompactions ?? DEFAULT_COMPACTIONS,
    background,
    coldAfterMs,
  };
  for (const name of ["maxRetries", "maxInputTokens", "threshold", "maxCompactions", "coldAfterMs"] as const) {
    if (typeof policy[name] === "number" && policy[name] >= 0) continue;
    throw new PerdureError("bad_config", `contextOverflow: ${name} must be a number of at least 0.`);
  }
  return policy;
}
