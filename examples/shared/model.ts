import type { LanguageModel } from "ai";
import { type ScriptedCall, scriptedModel, type ScriptedToolCall } from "perdure/testing";
import { chooseModel } from "../start/model/choose.ts";

const WORD_MS = 40;

/** What a script says when the model is called: a text, or a tool that it wants to be run. */
export type Line = string | ScriptedToolCall;

/**
 * The model of an example: the one that the environment names (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, …), else one that
 * plays `script`: no network, and words that come one by one.
 */
export function pickModel(script: (call: ScriptedCall) => Line): LanguageModel {
  const choice = chooseModel(process.env);
  if (!choice.builtIn) return choice.model;
  return scriptedModel(
    (call) => {
      const line = script(call);
      return typeof line === "string" ? { text: wordsAfter(said(call), line) } : { toolCalls: [line] };
    },
    { delayMs: WORD_MS },
  );
}

/** After a crash a model is given what it had said already, to go on behind it. */
function said({ prompt }: ScriptedCall): string {
  const last = prompt.at(-1);
  if (last?.role !== "assistant") return "";
  return last.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function wordsAfter(beginning: string, text: string): string[] {
  return text.slice(text.startsWith(beginning) ? beginning.length : 0).split(/(?<= )/);
}
