import { errorText } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { Act, ActTarget, Ask, Caller, Judge, Refusal } from "../door/authorize.ts";
import type { AgentPart } from "./part.ts";
import type { AgentParts } from "./agent-parts.ts";

/** The app's own rule. */
export interface Judging {
  authorize(identity: Identity | undefined, act: Act, on: ActTarget): boolean | Promise<boolean>;
}

/** What decides about an agent beside the rules that hold for all. @param base whose rule is none: it is not asked */
export function judgeOf(agent: Judging, base: Judging, own: AgentParts<unknown>): Judge {
  const { host } = own;
  return {
    host,
    consents: (caller, ask) => consentOf(own.parts, caller, ask),
    get app(): Judge["app"] {
      const isOwn = agent.authorize !== base.authorize;
      return isOwn ? (identity, act, on) => agent.authorize(identity, act, on) : undefined;
    },
    sessionOf: (caller) => own.sessionOf(caller),
    failed: (error, stage) => {
      host.emit("agent:failed", { stage, error: errorText(error) });
      void own.failed(error, { stage });
    },
  };
}

/** What the parts say, one after the other. */
function consentOf(parts: readonly AgentPart[], caller: Caller, ask: Ask, from = 0): Refusal | Promise<Refusal> {
  for (let at = from; at < parts.length; at++) {
    const said = parts[at]?.consents?.(caller, ask);
    if (said instanceof Promise) return said.then((refusal) => refusal ?? consentOf(parts, caller, ask, at + 1));
    if (said !== undefined) return said;
  }
  return undefined;
}
