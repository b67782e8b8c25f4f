// A model that says, asks for and fails what chance decides. The same prompt mostly gets the same answer again.
import { APICallError, type LanguageModel } from "ai";
import { scriptedModel, type ScriptedCall, type ScriptedReply, type ScriptedToolCall } from "perdure/testing";
import type { Clock } from "../../src/base/time.ts";
import { CONTINUE_PROMPT } from "../../src/turn/step/continue-prompt.ts";
import { hashOf, type Random, random } from "./interleave-random.ts";
import type { ModelCall } from "./interleave-record.ts";
import type { Setup } from "./interleave-setup.ts";

const CHARS_PER_TOKEN = 3.05;
const TOKENS_PER_PIECE = 8;
const TOKENS_PER_CALL = 12;
const MESSAGE_TOKENS = 7;
/** Of the calls that repeat a prompt, how many an unfaithful model answers as before. */
const AS_BEFORE = 0.5;

export const CLIENT_TOOL = "where";

/** What the model is told about the run. */
export interface ModelWorld {
  readonly seed: number;
  readonly setup: Setup;
  /** From now on everything is answered with a few words: the run is to come to rest. */
  readonly calm: boolean;
  /** How often a prompt came, by its hash. */
  readonly asked: Map<number, number>;
  /** A call came in. Throws when there is nobody who could have made it. */
  called(prompt: readonly string[]): ModelCall;
}

export function makeModel(world: ModelWorld, clock: Clock, modelId: string): LanguageModel {
  return scriptedModel((call) => answer(world, call), { clock, modelId });
}

function answer(world: ModelWorld, call: ScriptedCall): ScriptedReply {
  const whole = call.prompt.map((message) => JSON.stringify(message));
  const goesOn = whole.at(-1)?.includes(CONTINUE_PROMPT.slice(0, 30)) === true;
  const prompt = goesOn ? whole.slice(0, -2) : whole;
  const made = world.called(prompt);
  const hash = hashOf(prompt.join("\n"));
  const times = world.asked.get(hash) ?? 0;
  world.asked.set(hash, times + 1);
  const luck = random(hashOf(`${world.seed} luck ${hash} ${times}`));
  const variant = world.setup.faithful || luck.chance(AS_BEFORE) ? 0 : times;
  const says = random(hashOf(`${world.seed} says ${hash} ${variant}`));
  const name = `${hash.toString(36)}.${variant}${world.calm ? "q" : ""}`;
  const reply = content(world, says, name, times, call);
  const failure = world.calm ? {} : failing(world.setup, luck);
  const usage = {
    inputTokens: inputTokens(whole, call),
    outputTokens: Math.min(outputTokens(reply), call.options.maxOutputTokens ?? Number.POSITIVE_INFINITY),
  };
  // Whoever refuses does so at once, and for nothing.
  const refuses = failure.error !== undefined && failure.errorAfter === undefined;
  if (!refuses) made.spent = usage.inputTokens + usage.outputTokens;
  return {
    ...reply,
    ...failure,
    usage,
    delayMs: luck.chance(0.3) ? 0 : luck.int(world.setup.paceMs + 1),
  };
}

function content(world: ModelWorld, says: Random, name: string, times: number, call: ScriptedCall): ScriptedReply {
  const { setup, calm } = world;
  const asksForTools = !calm && says.chance(setup.eager);
  const pieces = asksForTools && says.chance(0.4) ? 0 : 1 + says.int(4);
  const text = Array.from({ length: pieces }, (_, i) => `w${name}.${i} `);
  const calls: ScriptedToolCall[] = [];
  for (let i = asksForTools ? 1 + says.int(3) : 0; i > 0; i--) {
    const known = call.tools.map((tool) => tool.name).filter((tool) => tool !== CLIENT_TOOL || says.chance(0.5));
    const toolName = known[says.int(known.length)];
    if (toolName === undefined) continue;
    const id =
      setup.ids === "counted" ? `call_${calls.length}` : `c${name}.${i}${setup.ids === "same" ? "" : `.${times}`}`;
    const chunkSize = says.chance(0.3) ? { chunkSize: 4 } : {};
    calls.push({ toolName, toolCallId: id, input: { n: `${name}.${i % 2}` }, ...chunkSize });
  }
  return {
    ...(says.chance(0.15) && { reasoning: [`r${name}.0 `, `r${name}.1 `] }),
    ...((text.length > 0 || calls.length === 0) && { text: text.length > 0 ? text : [`w${name}.0 `] }),
    ...(calls.length > 0 && { toolCalls: calls }),
  };
}

function failing(setup: Setup, luck: Random): Partial<ScriptedReply> {
  if (setup.stallMs > 0 && luck.chance(0.1)) return { hang: luck.chance(0.5) ? true : "before" };
  if (!luck.chance(setup.failures)) return {};
  const kind = luck.weighted({ rate: 3, busy: 2, fatal: 1, overflow: 0.5, part: 2, cut: 3 });
  const errorAfter = luck.int(5);
  switch (kind) {
    case "rate":
      return { error: refusal(429, "Rate limit reached.", luck.chance(0.7) ? String(luck.int(1500)) : undefined) };
    case "busy":
      return { error: refusal(503, "Overloaded.") };
    case "fatal":
      return { error: refusal(401, "Invalid API key.") };
    case "overflow":
      return { error: refusal(400, "This model's maximum context length is 10 tokens.") };
    case "part":
      return { error: { type: "server_error", message: "The server had an error." }, errorAfter };
    case "cut":
      return { error: new TypeError("terminated"), errorAfter, errorAs: "cut" };
  }
}

function refusal(statusCode: number, message: string, retryAfterMs?: string): APICallError {
  const responseHeaders: Record<string, string> = retryAfterMs === undefined ? {} : { "retry-after-ms": retryAfterMs };
  return new APICallError({ message, url: "https://model.test", requestBodyValues: {}, statusCode, responseHeaders });
}

/** As a provider counts: by the text that is in it, and a little for each message and tool. */
function inputTokens(prompt: readonly string[], call: ScriptedCall): number {
  let chars = 0;
  for (const tool of call.tools)
    chars += tool.type === "function" ? JSON.stringify([tool.name, tool.description, tool.inputSchema]).length : 0;
  for (const message of call.prompt) {
    if (typeof message.content === "string") chars += message.content.length;
    else
      for (const part of message.content)
        chars += part.type === "text" ? part.text.length : JSON.stringify(part).length;
  }
  return Math.ceil(chars / CHARS_PER_TOKEN) + MESSAGE_TOKENS * (prompt.length + call.tools.length);
}

function outputTokens({ text = [], reasoning = [], toolCalls = [] }: ScriptedReply): number {
  return (text.length + reasoning.length) * TOKENS_PER_PIECE + toolCalls.length * TOKENS_PER_CALL;
}
