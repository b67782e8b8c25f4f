import { PerdureError } from "../base/error.ts";
import type { AgentHost } from "../port.ts";

/** What was said is said again after this, if it still is so. */
const AGAIN_MS = 60 * 60_000;
const MAX_SAID = 1_000;

/** What was said to the people who run a host, by all of its agents. */
const saidAt = new WeakMap<object, Map<string, number>>();

/**
 * Says to the people who run the host, in its log, what they have to know and would not look for. Once an hour for each `what`,
 * however many agents it happens to.
 */
export function sayOnce(host: Pick<AgentHost, "env" | "clock" | "report">, what: string, words: string): void {
  const said = saidAt.get(host.env) ?? new Map<string, number>();
  saidAt.set(host.env, said);
  const now = host.clock.now();
  const before = said.get(what);
  if (before !== undefined && before <= now && now - before < AGAIN_MS) return;
  if (said.size >= MAX_SAID) said.clear();
  said.set(what, now);
  const error = new PerdureError("call_failed", words);
  // It comes from a network: where in the code it was noticed helps nobody.
  delete error.stack;
  host.report(error, { stage: "messenger" });
}
