import type { LanguageModel } from "ai";
import { streamCall } from "../../base/ai-sdk.ts";
import { reservedTokens } from "../../context/estimate.ts";
import type { LearnedFactors } from "../../context/learned.ts";
import type { AskSummary, SummaryAnswer } from "../../context/summarise.ts";
import type { SummaryPrompt } from "../../context/summary-prompt.ts";
import { type CountText, unitsOfText } from "../../context/text-units.ts";
import type { TokenCounters } from "../../context/token-counters.ts";
import { unitsOfRequest } from "../../context/units.ts";
import { newId, sleep } from "../../base/id.ts";
import type { AgentHost } from "../../port.ts";
import type { CallResult } from "../../ledger/charge.ts";
import type { Ledger, NewCall } from "../../ledger/ledger.ts";
import type { Payers } from "../../ledger/payers.ts";
import { readUsage } from "../../ledger/token-usage.ts";
import type { CallPurpose } from "../../store/usage.ts";
import { type AttemptFact, nextAttempt } from "../../model/attempts.ts";
import {
  type ChatErrorClassification,
  describeProviderError,
  retryAfterMs,
  wasRefused,
} from "../../model/provider-error.ts";
import { budgetText, budgetTextAbove } from "../../model/budget-question.ts";
import { deadline } from "../../model/deadline.ts";
import { named } from "./model-call.ts";

/** A summary that takes longer is given up. */
const SUMMARY_TIMEOUT_MS = 5 * 60_000;

/** Who asks for a summary, and whom. */
export interface SummaryCaller {
  readonly host: AgentHost;
  readonly ledger: Ledger;
  /** Who pays for it besides the agent. */
  readonly payers: Payers | undefined;
  readonly session: string;
  readonly turn: { readonly id: string; readonly seq: number } | undefined;
  readonly step: number;
  readonly model: LanguageModel;
  /** The longest answer of the model. */
  readonly maxOutput: number | undefined;
  readonly signal: AbortSignal;
  /** How the model counts, and what learns from its calls. */
  readonly learned?: LearnedFactors;
  /** How the model counts texts, if the app says so. */
  readonly counters?: TokenCounters;
  /** Default: `compaction`. */
  readonly purpose?: CallPurpose;
  classify(error: unknown): Promise<ChatErrorClassification>;
}

/**
 * How summaries are asked for: each call is booked in the ledger, as one for compaction, and tried as often as the calls
 * of a turn are. Rejects only with the reason of the signal.
 */
export function askWith(caller: SummaryCaller): AskSummary {
  return async (request) => {
    const facts: AttemptFact[] = [];
    let error = "";
    for (;;) {
      const next = nextAttempt(facts, { models: 1 });
      if (next.kind === "end") return next.errorClass === "context_overflow" ? { kind: "overflow" } : failed(error);
      const wait = next.notBefore - caller.host.clock.now();
      if (wait > 0) await sleep(caller.host.clock, wait, caller.signal);
      const tried = await attempt(caller, request, facts.length + 1);
      if (tried.kind !== "error") return tried;
      error = tried.error;
      facts.push(tried.fact);
    }
  };
}

type Attempt = SummaryAnswer | { readonly kind: "error"; readonly error: string; readonly fact: AttemptFact };

function failed(error: string): SummaryAnswer {
  return { kind: "failed", error };
}

async function attempt(caller: SummaryCaller, request: Parameters<AskSummary>[0], number: number): Promise<Attempt> {
  const { host, ledger, payers, signal } = caller;
  const maxOutputTokens = Math.min(request.maxOutputTokens, caller.maxOutput ?? Number.POSITIVE_INFINITY);
  const call = toCall(caller, request, maxOutputTokens, number);
  const over = await reserve(caller, call);
  if (over !== undefined) return failed(over);
  const end = async (result: CallResult, also = () => {}) => {
    host.tx(() => {
      ledger.settle(call.id, result);
      also();
    }, "commit");
    await payers?.settle(call.id, result);
  };
  try {
    const { text, usage } = await read(caller, request, maxOutputTokens, call.id);
    await end(
      { outcome: "ok", usage },
      () => void caller.learned?.learn(call.model, { ...countedFor(caller, call.model, request), usage }),
    );
    return { kind: "text", text };
  } catch (thrown) {
    if (signal.aborted) {
      await end({ outcome: "cut", usage: undefined });
      throw signal.reason;
    }
    const errorClass = await caller.classify(thrown);
    const wait = retryAfterMs(thrown, host.clock.now());
    const error = describeProviderError(thrown, errorClass);
    const waits = wait !== undefined && { retryAfterMs: wait };
    await end({
      ...{ outcome: "error", usage: undefined, error, errorClass, refused: wasRefused(thrown) || undefined },
      ...waits,
    });
    const now = host.clock.now();
    const fact: AttemptFact = { model: 0, outcome: "error", errorClass, retryAfterMs: wait ?? null, settledAt: now };
    return { kind: "error", error, fact };
  }
}

function toCall(caller: SummaryCaller, { system, prompt }: SummaryPrompt, output: number, attempt: number): NewCall {
  const { provider, modelId } = named(caller.model);
  const model = `${provider}/${modelId}`;
  const input = weigh(caller, model, (count) => {
    return reservedTokens([{ role: "user", content: prompt }], system, {}, caller.learned?.of(model), count);
  });
  return {
    ...{ id: newId("call"), turn: caller.turn, session: caller.session, step: caller.step, attempt },
    ...{
      purpose: caller.purpose ?? "compaction",
      model,
      modelIndex: 0,
      estimate: { input, output },
    },
  };
}

function countedFor({ counters }: SummaryCaller, model: string, { system, prompt }: SummaryPrompt) {
  const messages = [{ role: "user" as const, content: prompt }];
  const units = (count: CountText) => unitsOfRequest({ instructions: system, tools: {}, messages }, count);
  return counters?.counted(model, units) ?? { units: units(unitsOfText) };
}

function weigh({ counters }: SummaryCaller, model: string, by: (count: CountText) => number): number {
  return counters?.weigh(model, by) ?? by(unitsOfText);
}

/** @returns why it may not be made. */
async function reserve({ host, ledger, payers, signal }: SummaryCaller, call: NewCall): Promise<string | undefined> {
  if (payers !== undefined) {
    const { id, step, attempt: number, model, modelIndex, estimate } = call;
    const price = ledger.priceOf(model);
    const above = await payers.reserve({ id, step, attempt: number, model, modelIndex, estimate, price }, signal);
    if (!above.ok) return budgetTextAbove(above, above.agent);
  }
  const verdict = host.tx(() => ledger.reserve(call), "commit");
  if (verdict.ok) return undefined;
  await payers?.release(call.id);
  return budgetText(verdict);
}

async function read(
  { host, model, signal }: SummaryCaller,
  { system, prompt }: SummaryPrompt,
  maxOutputTokens: number,
  callId: string,
) {
  const limits = deadline(host.clock, signal, { totalMs: SUMMARY_TIMEOUT_MS });
  try {
    const { stream } = await limits.within(
      streamCall({
        ...{ model, instructions: system, messages: [{ role: "user", content: prompt }], maxOutputTokens, callId },
        abortSignal: limits.signal,
      }),
    );
    let text = "";
    let usage: ReturnType<typeof readUsage>;
    let ended = false;
    for await (const part of limits.each(stream)) {
      if (part.type === "text-delta") text += part.text;
      else if (part.type === "error") throw part.error;
      else if (part.type === "model-call-end") {
        usage = readUsage(part.usage);
        ended = true;
      }
      signal.throwIfAborted();
    }
    if (!ended) throw new Error("The model's stream ended before the model did.");
    return { text, usage };
  } finally {
    limits.end();
  }
}
