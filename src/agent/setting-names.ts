import type { ContextOverflow } from "../context/overflow.ts";
import type { RetryOptions } from "../work/retry.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import type { Budget, Budgets } from "../ledger/budget.ts";
import type { MediaRetention } from "../media/media.ts";
import type { ChatRecoveryConfig } from "../turn/policy.ts";
import type { MessageConcurrency } from "../turn/intake/overlap.ts";
import type { AgentOptions } from "../parts/agent-parts.ts";
import type { TitleOptions } from "../parts/titles.ts";

const options = namesOf<AgentOptions>()("sendIdentityOnConnect allowClientState retry fiberRecoveryMaxAgeMs");
const retry = namesOf<RetryOptions>()("maxAttempts baseDelayMs maxDelayMs");
const budget = namesOf<Budget>()("maxTokens maxCost soft");
const budgets = namesOf<Budgets>()("turn session agent");
const chatRecovery = namesOf<ChatRecoveryConfig>()(
  "maxAttempts maxAgeMs maxNoProgressAttempts noProgressTimeoutMs shouldKeepRecovering terminalMessage",
  "onExhausted",
);
const contextOverflow = namesOf<ContextOverflow>()("reactive maxRetries proactive background coldAfterMs");
const proactive = namesOf<Exclude<ContextOverflow["proactive"], boolean | undefined>>()(
  "maxInputTokens threshold maxCompactions",
);
const mediaRetention = namesOf<MediaRetention>()("keepInMessages days address");
const titles = namesOf<TitleOptions>()("model after");
const messageConcurrency = namesOf<Exclude<MessageConcurrency, string>>()("strategy debounceMs");

/**
 * Settings that are objects, by the path that leads to them from an agent. Of these, names that there are not are refused; the
 * name of a setting itself cannot be, since a class may have fields of its own.
 */
const settings: Readonly<Record<string, Readonly<Record<string, true>>>> = {
  ...{ budgets, "budgets.turn": budget, "budgets.session": budget, "budgets.agent": budget },
  ...{ chatRecovery, contextOverflow, "contextOverflow.proactive": proactive, mediaRetention, titles },
  ...{ messageConcurrency, waitForMcpConnections: { timeout: true } },
};

/**
 * Refuses settings with names that there are not, of an agent and of its class.
 * @throws PerdureError `bad_config`
 */
export function checkSettings(agent: object, className: string): void {
  const own = (agent.constructor as { readonly options?: AgentOptions }).options;
  refuseUnknown(own, options, `static options of ${className}`);
  refuseUnknown(own?.retry, retry, `static options of ${className}: retry`);
  for (const [path, names] of Object.entries(settings)) {
    const value = path.split(".").reduce<unknown>((at, key) => (Object(at) as Record<string, unknown>)[key], agent);
    refuseUnknown(value, names, `${path} of ${className}`);
  }
}
