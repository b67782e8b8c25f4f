import { PerdureError } from "../base/error.ts";
import { checkCors } from "./cors.ts";
import { hostGate } from "./host-names.ts";
import { originGate } from "./origin.ts";
import type { RouteOptions, RouteRules } from "./route.ts";

const DEFAULT_BODY_BYTES = 32 * 1024 * 1024;

/** The options that say how requests find their agent, read. @throws PerdureError `bad_config` for one of another kind. */
export function routeRules(options: RouteOptions): RouteRules {
  const { origins, hosts, cors, prefix } = options;
  if (prefix !== undefined && typeof prefix !== "string") throw wrongKind("prefix", "the first segments of addresses");
  for (const hook of ["onBeforeRequest", "onBeforeConnect"] as const) {
    if (options[hook] !== undefined && typeof options[hook] !== "function") throw wrongKind(hook, "a function");
  }
  checkCors(cors);
  const maxBodyBytes = atLeast(1, options.maxBodyBytes ?? DEFAULT_BODY_BYTES, "maxBodyBytes");
  return { ...options, admits: originGate(origins, cors), answersTo: hostGate(hosts), maxBodyBytes };
}

function wrongKind(option: string, right: string): PerdureError {
  return new PerdureError("bad_config", `${option} must be ${right}.`);
}

/** @throws PerdureError `bad_config` unless `value` is a number from `least` up. Infinity is one. */
export function atLeast(least: number, value: number, what: string): number {
  if (typeof value === "number" && value >= least) return value;
  throw new PerdureError("bad_config", `${what} must be a number of at least ${least}, not ${String(value)}.`);
}
