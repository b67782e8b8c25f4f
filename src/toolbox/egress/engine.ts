import type { Admission } from "./admission.ts";
import type { OnDecision } from "./decision.ts";
import type { Inject } from "./inject.ts";
import type { EgressLimits } from "./limits.ts";
import type { Policy } from "./policy.ts";

/**
 * All addresses of a host. May be slow; what it throws fails the request. It is asked once for each connection, and only
 * what it says is connected to.
 */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

/** What the sockets are told by the part that knows no sockets. */
export interface Engine {
  readonly policy: Policy;
  readonly limits: EgressLimits;
  readonly admission: Admission;
  readonly inject: Inject;
  /** Whether the methods are bounded, so that headers must not change them. */
  readonly keepMethod: boolean;
  readonly onDecision: OnDecision | undefined;
  /** Default: the system's. */
  readonly resolve: ResolveHost | undefined;
  /** Certificates to trust besides the usual ones. */
  readonly ca: string | undefined;
}
