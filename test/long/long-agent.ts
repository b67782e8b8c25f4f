// A real Think agent that a long conversation is held with: its models are scripts, and all that they are sent is kept.
import { APICallError, jsonSchema, type LanguageModel, tool, type ToolSet } from "ai";
import type { Think } from "perdure";
import type { ModelLimits } from "perdure/context";
import {
  type RecordedCall,
  type ScriptedCall,
  type ScriptedModel,
  scriptedModel,
  type ScriptedReply,
} from "perdure/testing";
import type { LiveState } from "../../src/context/carried.ts";
import type { ContextOverflow } from "../../src/context/overflow.ts";
import { unitsOfUIMessage } from "../../src/context/ui-units.ts";
import type { AgentOptions } from "../chat/open-agent.ts";
import { openThink, type TestThink } from "../think/harness.ts";
import { sayingsInPrompt } from "./facts.ts";
import { asksForSummary, decent, readAssignment, type Summarises } from "./summariser.ts";
import type { Conversation, Round } from "./talk.ts";

/** How a long conversation is held. */
export interface LongOptions extends AgentOptions {
  /** What fits into a request, in tokens. Default: less than any round is long. */
  readonly usable?: number;
  /** Default: a decent one. */
  readonly summarises?: Summarises;
  /** The model that answers also summarises. */
  readonly sameModel?: boolean;
  readonly live?: () => LiveState;
  readonly overflow?: ContextOverflow | false;
  /** A provider counts so many tokens for each that is estimated. */
  readonly rate?: number;
  /** The provider refuses requests that are longer than this. Default: any length is fine with it. */
  readonly refusesAbove?: number;
  readonly maxSteps?: number;
  /** What the model says instead; undefined: what the conversation says. */
  readonly says?: (call: ScriptedCall) => ScriptedReply | undefined;
  /** Besides those of the conversation. */
  readonly tools?: ToolSet;
}

/** An agent, and what its models were asked. */
export interface LongAgent extends TestThink<Think> {
  readonly usable: number;
  /** Calls that answer, oldest first. */
  answers(): RecordedCall[];
  /** Calls that summarise. */
  summaries(): RecordedCall[];
  /** Changes how it summarises from now on. */
  summariseAs(next: Summarises): void;
  /** Stores what is said in a round, pins what is to be pinned, and asks its question. */
  play(round: Round): ReturnType<TestThink<Think>["ask"]>;
}

/** Less than the shortest round: each one makes a compaction necessary. */
export function usableFor({ rounds }: Conversation): number {
  const sizes = rounds.map(({ messages }) => messages.reduce((sum, message) => sum + unitsOfUIMessage(message), 0));
  return Math.floor(0.85 * Math.min(...sizes));
}

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]/u;
const BEYOND_ASCII = /[^\0-\x7f]/gu;

/** About what tokenizers make of a text. Its own count: it knows nothing of what Perdure estimates. */
function countTokens(text: string): number {
  const others = text.match(BEYOND_ASCII) ?? [];
  let tokens = 0;
  let length = 0;
  for (const char of others) {
    length += char.length;
    tokens += char.length > 1 ? 2 : WIDE.test(char) ? 1 : 0.5;
  }
  return tokens + (text.length - length) / 4;
}

/** What a provider counts for a request. */
export function tokensOf({ prompt, tools }: Pick<RecordedCall, "prompt" | "tools">, rate = 1): number {
  const system = prompt.map((message) => (message.role === "system" ? message.content : "")).join("");
  const texts = [system, JSON.stringify(tools), ...sayingsInPrompt(prompt).map(({ text }) => text)];
  return Math.round(rate * texts.reduce((sum, text) => sum + countTokens(text) + 3, 0));
}

export async function openLong(conversation: Conversation, options: LongOptions = {}): Promise<LongAgent> {
  const { usable = usableFor(conversation), rate = 1, overflow = { background: false }, live = () => ({}) } = options;
  let { summarises = decent(conversation.facts) } = options;
  const calls = new Map(conversation.rounds.map((round) => [round.ask, round.calls]));
  const model = (modelId: string): ScriptedModel =>
    scriptedModel(
      async (call) => {
        const inputTokens = tokensOf(call, rate);
        if (asksForSummary(call)) return { usage: { inputTokens }, ...(await summarises(readAssignment(call), call)) };
        if (inputTokens > (options.refusesAbove ?? Number.POSITIVE_INFINITY)) throw tooLong(inputTokens);
        const said = options.says?.(call);
        if (said !== undefined) return { usage: { inputTokens, outputTokens: 20 }, ...said };
        const wanted = calls.get(call.userText)?.[call.step];
        const usage = { inputTokens, outputTokens: 20 };
        return wanted === undefined
          ? { usage, text: `Answered: ${call.userText.length}.` }
          : { usage, toolCalls: [wanted] };
      },
      { modelId },
    );
  const answering = model("answers");
  const summarising = model("summarises");
  const limits: Record<string, ModelLimits> = {
    "scripted/answers": { window: 4 * usable, input: usable },
    "scripted/summarises": { window: 400_000 },
  };
  const kit = await openThink(
    (Base) =>
      class Long extends Base {
        override modelLimits = limits;
        override contextOverflow = overflow;
        override maxSteps = options.maxSteps ?? 10;
        override titles = false;
        override getModel(): LanguageModel {
          return answering;
        }
        override getCompactionModel(): LanguageModel | undefined {
          return options.sameModel === true ? undefined : summarising;
        }
        override getSystemPrompt(): string {
          return conversation.system;
        }
        override getTools(): ToolSet {
          return { ...toTools(conversation), ...options.tools };
        }
        override getLiveState(): LiveState {
          return live();
        }
      },
    options,
  );
  const all = () => [...answering.calls, ...summarising.calls];
  const own: Omit<LongAgent, keyof TestThink<Think>> = {
    usable,
    answers: () => all().filter((call) => !asksForSummary(call)),
    summaries: () => all().filter((call) => asksForSummary(call)),
    summariseAs: (next) => void (summarises = next),
    async play(round) {
      const agent = await kit.agent();
      await agent.addMessages(round.messages);
      for (const { id } of round.messages) if (conversation.pins.includes(id)) agent.session.pin(id);
      return kit.ask(round.ask);
    },
  };
  return Object.assign(kit, own);
}

function toTools({ tools }: Conversation): ToolSet {
  const entries = Object.entries(tools).map(([name, execute]) => {
    const made = tool({ inputSchema: jsonSchema<Record<string, unknown>>({ type: "object" }), execute });
    return [name, made] as const;
  });
  return Object.fromEntries(entries) as ToolSet;
}

/** As a provider says it. */
export function tooLong(tokens: number): APICallError {
  return new APICallError({
    message: `This model's maximum context length was exceeded: your messages have ${tokens} tokens.`,
    url: "https://model.example",
    requestBodyValues: {},
    statusCode: 400,
    data: { error: { code: "context_length_exceeded" } },
  });
}
