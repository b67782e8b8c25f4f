import { APICallError } from "ai";
import { type ScriptedModel, scriptedModel, type ScriptedReply } from "perdure/testing";
import { type Conversation, type Fact, newest } from "./conversation.ts";
import type { Meter } from "./meter.ts";

/**
 * How well summaries are written. `faithful`: each fact that is in the request, in its exact words, but for those that
 * another one there replaces. `lossy`: every third fact of the user, and every third of those that tools told.
 * `forgetful`: words that would fit any conversation. `failing`: there is no answer at all.
 */
export type SummariserKind = "faithful" | "lossy" | "forgetful" | "failing";

const KEPT_BY_LOSSY = 3;

/** A model that writes summaries. It reads what it is sent, and knows nothing else. */
export function summariser(kind: SummariserKind, { facts }: Conversation, meter: Meter): ScriptedModel {
  const write = (text: string): ScriptedReply => {
    meter.answered(text);
    return { text };
  };
  return scriptedModel((call): ScriptedReply => {
    const { prompt } = call;
    meter.request(call, meter.requests);
    if (kind === "failing") return { error: refusal(401, "invalid key") };
    if (kind === "forgetful") return write("## Goal\nSeveral things were talked about. Go on as was agreed.");
    const text = JSON.stringify(prompt);
    const read = facts.filter((fact) => text.includes(fact.text));
    const kept = newest(read).filter((fact) => kind === "faithful" || isKept(fact, facts));
    return write(["## Goal", "Go on.", "## State of the work", ...kept.map((fact) => `- ${fact.text}`)].join("\n"));
  }, NAME);
}

function isKept(fact: Fact, facts: readonly Fact[]): boolean {
  return facts.filter(({ by }) => by === fact.by).indexOf(fact) % KEPT_BY_LOSSY === 0;
}

const NAME = { provider: "scripted", modelId: "summariser" };

/** What a provider answers that takes no such request. */
export function refusal(statusCode: number, message: string): APICallError {
  return new APICallError({ message, url: "https://model.example", requestBodyValues: {}, statusCode });
}
