import { PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import type { Clock } from "../../base/time.ts";
import type { Log } from "../log.ts";
import type { AgentClasses } from "../registry.ts";
import type { RouteOptions } from "../route.ts";
import { atLeast } from "../route-rules.ts";
import type { Storage } from "../storage.ts";

/** Bounds of a host. Each is generous for one machine; reaching one is an error for that client or agent alone. */
export interface HostLimits {
  /** Largest frame that is read, in bytes. A larger one closes its socket with 1009. Default 16 MiB. */
  readonly frameBytes: number;
  /** Sockets per agent; one more is closed with 1013. Default 10,000. */
  readonly connectionsPerAgent: number;
  /** Bytes waiting for a slow reader before it is dropped, to catch up by reconnecting. Default 16 MiB. */
  readonly sendBufferBytes: number;
  /** Agents in memory at a time. Default 10,000. */
  readonly agents: number;
  /** Database files open at a time. Default 256. */
  readonly openDatabases: number;
  /** Largest database of one agent, in bytes. Default 8 GiB. */
  readonly databaseBytes: number;
}

const defaultLimits: HostLimits = {
  frameBytes: 16 * 1024 * 1024,
  connectionsPerAgent: 10_000,
  sendBufferBytes: 16 * 1024 * 1024,
  agents: 10_000,
  openDatabases: 256,
  databaseBytes: 8 * 1024 ** 3,
};

/** The limits with what is missing filled in. @throws PerdureError `bad_config` */
export function resolveLimits(limits: Partial<HostLimits> = {}): HostLimits {
  refuseUnknown(limits, defaultLimits, "limits");
  const resolved = { ...defaultLimits };
  for (const name of Object.keys(defaultLimits) as (keyof HostLimits)[]) {
    const value = limits[name];
    if (value !== undefined) Object.assign(resolved, { [name]: atLeast(1, value, `limits.${name}`) });
  }
  return resolved;
}

/** What agents get as `this.env`. @throws PerdureError `bad_config` */
export function resolveEnv(env: object = process.env): object {
  if ((typeof env === "object" && (env as object | null) !== null) || typeof env === "function") return env;
  throw new PerdureError("bad_config", `env must be an object, not ${typeof env}. Agents get it as this.env.`);
}

/** What {@link createHost} needs: the classes, and where to keep their agents. */
export interface HostOptions extends RouteOptions {
  /** Classes that clients can reach, by name or as a list. */
  readonly agents: AgentClasses;
  /** Classes that exist only as children of other agents. */
  readonly subAgents?: AgentClasses;
  /** The directory of all data. One host at a time may use it. */
  readonly dir?: string;
  /** How long to block at the start until another process lets go of the directory. Default: not at all. */
  readonly lock?: { readonly waitMs?: number };
  /** Instead of `dir`: `memoryStorage()`, for tests and for agents that may be forgotten. */
  readonly storage?: Storage;
  /** What agents get as `this.env`: settings, secrets, clients of databases. Default: `process.env`. */
  readonly env?: object;
  /** Agents that wake with the host, as class and name: those that poll, as for Telegram. */
  readonly start?: readonly (readonly [className: string, name: string])[];
  /** Handed to `onStart` of every agent that this host wakes. */
  readonly props?: object;
  /** How long an agent that nothing needs stays in memory. Its sockets stay open. Default 30 s. */
  readonly idleMs?: number;
  /** How long `stop()` waits for running work. What does not settle is carried on at the next start. Default 10 s. */
  readonly graceMs?: number;
  readonly limits?: Partial<HostLimits>;
  /** Where failures go: a function gets each once, with the error as thrown; `false`: nowhere. Default: the console. */
  readonly log?: Log;
  /** Default: the machine's clock. */
  readonly clock?: Clock;
  /** Called after each commit of an agent, or of the host's index (`agentId` is empty). For crash tests; must not throw. */
  readonly onCommit?: (count: number, agentId: string) => void;
}

/** The names of all of them. */
export const hostOptionNames = namesOf<HostOptions>()(
  "agents subAgents dir storage env props start idleMs graceMs limits clock onCommit lock log prefix cors",
  "origins hosts maxBodyBytes onBeforeRequest onBeforeConnect",
);

/** @throws PerdureError `bad_config` unless these are options, with names that there are. */
export function checkOptions(options: object, names: Readonly<Record<string, true>>, where: string): void {
  if (typeof (options as unknown) !== "object" || (options as unknown) === null) {
    throw new PerdureError(
      "bad_config",
      `${where} needs options: \`agents\` must be the classes of the host by name, as in \`{ ChatAgent }\`, or a list.`,
    );
  }
  // What findAgents() and watchAgents() return may be spread into the options as it is.
  refuseUnknown(options, { ...names, manifest: true, close: true }, where);
  refuseUnknown((options as Partial<HostOptions>).lock, { waitMs: true }, `${where}: lock`);
}
