import { convertToModelMessages, isStepCount, type LanguageModel, streamText, type ToolSet, type UIMessage } from "ai";
import {
  AIChatAgent,
  type AgentHost,
  type ChatAnswer,
  type ChatResponseResult,
  type ChatTurnOptions,
  Think,
  type TurnConfig,
  type TurnContext,
} from "perdure";
import { manualClock, type Script, scriptedModel } from "perdure/testing";
import { expect } from "vitest";
import { eventually, startHost } from "../clients/harness.ts";

const MAX_STEPS = 5;

type Settings =
  | "messageConcurrency"
  | "chatRecovery"
  | "chatStreamStallTimeoutMs"
  | "maxPersistedMessages"
  | "approvalTimeoutMs"
  | "authorizeApproval";

/** How an agent of these tests answers. */
export interface TalkOptions {
  readonly script: Script;
  readonly tools?: ToolSet | ((turn: ChatTurnOptions) => ToolSet);
  /** Instead of the model. Undefined: the model answers after all. */
  readonly answer?: (turn: ChatTurnOptions) => ChatAnswer | undefined | Promise<ChatAnswer | undefined>;
  readonly settings?: Partial<Pick<AIChatAgent, Settings>>;
  readonly onRequest?: (request: Request) => Response;
}

/** Makes an agent class that answers with `streamText` and a scripted model, and notes what it is asked. */
export function talk(options: TalkOptions) {
  /** Replies with a `delayMs` of 1 say one piece per millisecond of this clock. */
  const clock = manualClock();
  const model = scriptedModel(options.script, { clock });
  /** The options of every turn. */
  const turns: ChatTurnOptions[] = [];
  /** How every turn ended. */
  const ends: ChatResponseResult[] = [];

  const noted = {
    turns,
    ends,
    async answer(agent: { readonly messages: UIMessage[] }, turn: ChatTurnOptions): Promise<ChatAnswer> {
      turns.push(turn);
      const instead = await options.answer?.(turn);
      return instead ?? streamed(agent.messages, model, toolsOf(options, turn), turn.abortSignal);
    },
  };
  const Talk =
    process.env.PERDURE_TALK === "think" ? talkingThink(options, model, noted) : talkingAgent(options, noted);

  /** Lets the model say `pieces` more. */
  async function say(pieces = 1): Promise<void> {
    for (let i = 0; i < pieces; i++) {
      await eventually(() => expect(clock.pending(), "replies that are under way").toBeGreaterThan(0));
      await clock.advance(1);
    }
  }
  return { Talk, model, clock, turns, ends, say };
}

interface Noted {
  readonly turns: ChatTurnOptions[];
  readonly ends: ChatResponseResult[];
  answer(agent: { readonly messages: UIMessage[] }, turn: ChatTurnOptions): Promise<ChatAnswer>;
}

function toolsOf({ tools }: TalkOptions, turn: ChatTurnOptions): ToolSet | undefined {
  return typeof tools === "function" ? tools(turn) : tools;
}

async function streamed(
  messages: UIMessage[],
  model: LanguageModel,
  tools: ToolSet | undefined,
  abortSignal: AbortSignal,
): Promise<ChatAnswer> {
  const result = streamText({
    model,
    messages: await convertToModelMessages(messages),
    ...(tools !== undefined && { tools }),
    stopWhen: isStepCount(MAX_STEPS),
    maxRetries: 0,
    abortSignal,
    onError: () => {},
  });
  return result.toUIMessageStreamResponse({ sendSources: true, onError: errorText });
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The agent's class: `streamText` of the app. */
function talkingAgent(options: TalkOptions, noted: Noted) {
  return class Talk extends AIChatAgent {
    readonly errors: unknown[] = [];

    constructor(host: AgentHost) {
      super(host);
      Object.assign(this, options.settings);
    }
    override onChatMessage(_onFinish: unknown, turn: ChatTurnOptions): Promise<ChatAnswer> {
      return noted.answer(this, turn);
    }
    override onChatResponse(result: ChatResponseResult): void {
      noted.ends.push(result);
    }
    override onRequest(request: Request): Response | Promise<Response> {
      return options.onRequest?.(request) ?? super.onRequest(request);
    }
    override onError(error: unknown): void {
      this.errors.push(error);
    }
    /** A turn that nobody's tab asked for. */
    async note(text: string): Promise<string> {
      return (await this.saveMessages([noteOf(text)])).status;
    }
    stored(): UIMessage[] {
      return this.messages;
    }
  };
}

/** The same with the engine's own steps: what clients see must not differ. */
function talkingThink(options: TalkOptions, model: LanguageModel, noted: Noted): ReturnType<typeof talkingAgent> {
  class Talk extends Think {
    override workspaceTools = false as const;
    readonly errors: unknown[] = [];
    override maxSteps = MAX_STEPS;

    constructor(host: AgentHost) {
      super(host);
      Object.assign(this, options.settings);
    }
    override getModel(): LanguageModel {
      return model;
    }
    override getSystemPrompt(): string {
      return "";
    }
    override beforeTurn(turn: TurnContext): TurnConfig {
      noted.turns.push(turn);
      const tools = toolsOf(options, turn);
      return { system: "", maxRetries: 0, ...(tools !== undefined && { tools }) };
    }
    override onChatError(error: unknown): unknown {
      return errorText(error);
    }
    override onChatResponse(result: ChatResponseResult): void {
      noted.ends.push(result);
    }
    override onRequest(request: Request): Response | Promise<Response> {
      return options.onRequest?.(request) ?? super.onRequest(request);
    }
    override onError(error: unknown): void {
      this.errors.push(error);
    }
    async note(text: string): Promise<string> {
      return (await this.saveMessages([noteOf(text)])).status;
    }
    stored(): UIMessage[] {
      return this.messages;
    }
  }
  class Answering extends Talk {
    override onChatMessage(turn: ChatTurnOptions): Promise<ChatAnswer> {
      return noted.answer(this, turn);
    }
  }
  Object.defineProperty(Answering, "name", { value: "Talk" });
  // As far as these tests look, the two classes are the same.
  return (options.answer === undefined ? Talk : Answering) as unknown as ReturnType<typeof talkingAgent>;
}

function noteOf(text: string): UIMessage {
  return { id: `note-${text}`, role: "user", parts: [{ type: "text", text }] };
}

/** A host with such an agent; `agent` is the one named `x`. */
export async function startTalk(options: TalkOptions) {
  const kit = talk(options);
  const host = await startHost({ agents: { Talk: kit.Talk } });
  return { ...kit, host, agent: host.getAgentByName(kit.Talk, "x") };
}

/** A promise and its end, for a script that waits for the test. */
export function latch(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
