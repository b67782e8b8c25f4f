import { PerdureError } from "../../base/error.ts";
import { refuseUnknown } from "../../base/known-options.ts";

/** What one egress may use of the network. */
export interface EgressLimits {
  /** Redirects that one request may follow. */
  readonly redirects: number;
  readonly requestBytes: number;
  /** Of the body as the guest reads it, after decompression. */
  readonly responseBytes: number;
  /** Milliseconds of a whole request, redirects and waiting for a free place included. */
  readonly totalMs: number;
  /** Milliseconds in which nothing at all is sent or received. */
  readonly idleMs: number;
  /** Requests and tunnels at once. More wait for their turn. */
  readonly concurrent: number;
  readonly requestsPerMinute: number;
  /** As long as this egress lives. Default: no bound. */
  readonly requests: number;
  /** Both directions of one tunnel of the proxy. */
  readonly tunnelBytes: number;
  readonly tunnelMs: number;
  readonly tunnelIdleMs: number;
}

/** What holds when nothing else is said. */
export const DEFAULT_EGRESS_LIMITS: EgressLimits = {
  redirects: 5,
  requestBytes: 10 << 20,
  responseBytes: 10 << 20,
  totalMs: 30_000,
  idleMs: 10_000,
  concurrent: 32,
  requestsPerMinute: 600,
  requests: Number.POSITIVE_INFINITY,
  tunnelBytes: 256 << 20,
  tunnelMs: 600_000,
  tunnelIdleMs: 60_000,
};

/** Timers cannot be set for longer. */
const MAX_MS = 2_147_483_647;

/**
 * The limits with the defaults filled in.
 * @throws PerdureError `bad_config` for a limit that is no number of at least 1 (`redirects`: 0)
 */
export function egressLimits(given: Partial<EgressLimits> = {}): EgressLimits {
  refuseUnknown(given, DEFAULT_EGRESS_LIMITS, "limits of the network");
  const limits: Record<string, number> = { ...DEFAULT_EGRESS_LIMITS };
  for (const [name, value] of Object.entries(given) as [keyof EgressLimits, unknown][]) {
    if (value === undefined) continue;
    const least = name === "redirects" ? 0 : 1;
    if (typeof value !== "number" || !(value >= least)) {
      throw new PerdureError("bad_config", `The network limit "${name}" must be a number of at least ${least}.`);
    }
    limits[name] = name.endsWith("Ms") ? Math.min(value, MAX_MS) : value;
  }
  return limits as unknown as EgressLimits;
}
