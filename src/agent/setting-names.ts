import type { ContextOverflow } from "../context/overflow.ts";
import type { RetryOptions } from "../work/retry.ts";
import { type OptionNames, refuseUnknown } from "../base/known-options.ts";
import type { Budget, Budgets } from "../ledger/budget.ts";
import type { MediaRetention } from "../media/media.ts";
import type { ChatRecoveryConfig } from "../turn/engine/chat-types.ts";
import type { MessageConcurrency } from "../turn/intake/overlap.ts";
import type { AgentOptions } from "./agent-base.ts";
import type { TitleOptions } from "./title-keeper.ts";

const options: OptionNames<AgentOptions> = {
  sendIdentityOnConnect: true,
  allowClientState: true,
  retry: true,
  fiberRecoveryMaxAgeMs: true,
};
const retry: OptionNames<RetryOptions> = { maxAttempts: true, baseDelayMs: true, maxDelayMs: true };
const budget: OptionNames<Budget> = { maxTokens: true, maxCost: true, soft: true };
const budgets: OptionNames<Budgets> = { turn: true, session: true, agent: true };
const chatRecovery: OptionNames<ChatRecoveryConfig> = {
  maxAttempts: true,
  maxAgeMs: true,
  maxNoProgressAttempts: true,
  noProgressTimeoutMs: true,
  shouldKeepRecovering: true,
  terminalMessage: true,
  onExhausted: true,
};
const contextOverflow: OptionNames<ContextOverflow> = {
  reactive: true,
  maxRetries: true,
  proactive: true,
  background: true,
  coldAfterMs: true,
};
const proactive: OptionNames<Exclude<ContextOverflow["proactive"], boolean | undefined>> = {
  maxInputTokens: true,
  threshold: true,
  maxCompactions: true,
};
const mediaRetention: OptionNames<MediaRetention> = { keepInMessages: true, days: true, address: true };
const titles: OptionNames<TitleOptions> = { model: true, after: true };
const messageConcurrency: OptionNames<Exclude<MessageConcurrency, string>> = { strategy: true, debounceMs: true };

/** Settings that are objects, by the path that leads to them from an agent. */
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
