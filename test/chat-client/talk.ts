import { convertToModelMessages, isStepCount, streamText, type ToolSet } from "ai";
import { AIChatAgent, type AgentHost, type ChatAnswer, type ChatResponseResult, type ChatTurnOptions } from "perdure";
import { manualClock, type Script, scriptedModel } from "perdure/testing";
import { expect } from "vitest";
import { eventually, startHost } from "../clients/harness.ts";

type Settings =
  | "messageConcurrency"
  | "chatRecovery"
  | "chatStreamStallTimeoutMs"
  | "maxPersistedMessages"
  | "approvalTimeoutMs";

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

  class Talk extends AIChatAgent {
    readonly errors: unknown[] = [];

    constructor(host: AgentHost) {
      super(host);
      Object.assign(this, options.settings);
    }

    override async onChatMessage(_onFinish: unknown, turn: ChatTurnOptions): Promise<ChatAnswer> {
      turns.push(turn);
      const instead = await options.answer?.(turn);
      if (instead !== undefined) return instead;
      const tools = typeof options.tools === "function" ? options.tools(turn) : options.tools;
      const result = streamText({
        model,
        messages: await convertToModelMessages(this.messages),
        ...(tools !== undefined && { tools }),
        stopWhen: isStepCount(5),
        maxRetries: 0,
        abortSignal: turn.abortSignal,
        onError: () => {},
      });
      return result.toUIMessageStreamResponse({
        sendSources: true,
        onError: (error) => (error instanceof Error ? error.message : String(error)),
      });
    }

    override onChatResponse(result: ChatResponseResult): void {
      ends.push(result);
    }

    override onRequest(request: Request): Response | Promise<Response> {
      return options.onRequest?.(request) ?? super.onRequest(request);
    }

    override onError(error: unknown): void {
      this.errors.push(error);
    }

    /** A turn that nobody's tab asked for. */
    async note(text: string): Promise<string> {
      const message = { id: `note-${text}`, role: "user" as const, parts: [{ type: "text" as const, text }] };
      return (await this.saveMessages([message])).status;
    }

    stored(): AIChatAgent["messages"] {
      return this.messages;
    }
  }

  /** Lets the model say `pieces` more. */
  async function say(pieces = 1): Promise<void> {
    for (let i = 0; i < pieces; i++) {
      await eventually(() => expect(clock.pending(), "replies that are under way").toBeGreaterThan(0));
      await clock.advance(1);
    }
  }
  return { Talk, model, clock, turns, ends, say };
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
