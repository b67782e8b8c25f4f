import type { LanguageModel } from "ai";
import { aiSdk } from "../base/ai-sdk.ts";
import { reservedTokens } from "../context/estimate.ts";
import type { LearnedFactors } from "../context/learned.ts";
import type { AskSummary } from "../context/summarise.ts";
import { type CountText, unitsOfText } from "../context/text-units.ts";
import type { TokenCounters } from "../context/token-counters.ts";
import { unitsOfRequest } from "../context/units.ts";
import { readUsage } from "../ledger/token-usage.ts";
import { describeProviderError } from "./provider-error.ts";
import { budgetText, budgetTextAbove } from "./budget-question.ts";
import { type BookedCall, type Books, callModel, nameOf } from "./call.ts";

/** A summary that takes longer is given up. */
const SUMMARY_TIMEOUT_MS = 5 * 60_000;

/** Who asks for a summary, and whom. */
export interface SummaryCaller extends Books, Pick<BookedCall, "purpose" | "session" | "turn" | "step"> {
  readonly model: LanguageModel;
  /** The longest answer of the model. */
  readonly maxOutput: number | undefined;
  /** How the model counts, and what learns from its calls. */
  readonly counts?: { readonly learned: LearnedFactors; readonly counters: TokenCounters };
}

/** How summaries are asked for, and all else that is a text for a text. Rejects only with the reason of the signal. */
export function askWith(caller: SummaryCaller): AskSummary {
  const { model, counts, signal, purpose, session, turn, step } = caller;
  const name = nameOf(model);
  return async ({ system, prompt, maxOutputTokens: most }) => {
    const maxOutputTokens = Math.min(most, caller.maxOutput ?? Number.POSITIVE_INFINITY);
    const messages = [{ role: "user" as const, content: prompt }];
    const units = (count: CountText) => unitsOfRequest({ instructions: system, tools: {}, messages }, count);
    const tokens = (count: CountText) => reservedTokens(messages, system, {}, counts?.learned.of(name), count);
    let text = "";
    const end = await callModel(caller, {
      ...{ purpose, session, turn, step, models: [model] },
      prepare: async () => ({
        ...{ model, timeout: { totalMs: SUMMARY_TIMEOUT_MS }, output: maxOutputTokens },
        input: () => counts?.counters.weigh(name, tokens) ?? tokens(unitsOfText),
        begin: (callId) => {
          text = "";
          return {
            open: (abortSignal) =>
              aiSdk().experimental_streamLanguageModelCall({
                model,
                instructions: system,
                messages,
                maxOutputTokens,
                callId,
                abortSignal,
              }),
            take: (part) => void (text += part.type === "text-delta" ? part.text : ""),
            ended: (end) => () => {
              const usage = readUsage(end.usage);
              counts?.learned.learn(name, { ...counts.counters.counted(name, units), usage });
            },
          };
        },
      }),
    });
    if (end.kind === "answered") return { kind: "text", text };
    if (end.kind === "stopped") throw signal.reason;
    if (end.kind === "over") {
      const { over } = end;
      return { kind: "failed", error: "agent" in over ? budgetTextAbove(over, over.agent) : budgetText(over) };
    }
    if (end.errorClass === "context_overflow") return { kind: "overflow" };
    return { kind: "failed", error: describeProviderError(end.error, end.errorClass) };
  };
}
