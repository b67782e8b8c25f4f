// A real host with one chat agent whose model is the test.
import type { UIMessage } from "ai";
import { AIChatAgent } from "perdure";
import type {
  AgentHost,
  ChatRecoveryContext,
  ChatRecoveryOptions,
  ChatResponseResult,
  ChatTurnOptions,
  ToolPart,
} from "perdure";
import { eventually } from "../host/open-host.ts";
import type { ChatClient } from "./client.ts";
import { type AgentOptions, newNotes, noteError, openAgent, type TestAgent } from "./open-agent.ts";
import { createStage, type Respond, type Stage } from "./stage.ts";

const SETTINGS = [
  ...(["maxPersistedMessages", "messageConcurrency", "maxConcurrentTurns", "chatRecovery"] as const),
  ...(["chatStreamStallTimeoutMs", "approvalTimeoutMs"] as const),
] as const;
type Settings = Pick<AIChatAgent, (typeof SETTINGS)[number]>;

export interface ChatOptions extends Partial<Settings>, AgentOptions {
  /** Instead of stages. */
  readonly respond?: Respond;
  readonly recover?: (context: ChatRecoveryContext) => ChatRecoveryOptions | void | Promise<ChatRecoveryOptions | void>;
  readonly responded?: (result: ChatResponseResult, agent: AIChatAgent) => void | Promise<void>;
  readonly repair?: (part: ToolPart) => ToolPart | undefined;
  readonly sanitize?: (message: UIMessage) => UIMessage;
  /** There is no stream before the test opens the stage. */
  readonly slow?: boolean;
}

/** A chat under test. */
export interface TestChat extends TestAgent<AIChatAgent> {
  /** The next call of `onChatMessage` that no test has seen yet. */
  stage(): Promise<Stage>;
  /** Calls of `onChatMessage` so far. */
  readonly calls: number;
  /** What `onChatResponse` was told. */
  readonly responses: readonly ChatResponseResult[];
}

export async function openChat(options: ChatOptions = {}): Promise<TestChat> {
  const stages: Stage[] = [];
  const responses: ChatResponseResult[] = [];
  const notes = newNotes<AIChatAgent>();
  let seen = 0;
  let calls = 0;

  class Talk extends AIChatAgent {
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      for (const key of SETTINGS) if (options[key] !== undefined) Reflect.set(this, key, options[key]);
      notes.lives.push(this);
    }
    override onChatMessage(_onFinish: unknown, turn: ChatTurnOptions) {
      calls++;
      if (options.respond !== undefined) return options.respond(turn, this.messages);
      const stage = createStage(turn, this.messages);
      stages.push(stage);
      return options.slow === true ? stage.opened.then(() => stage.answer) : stage.answer;
    }
    override async onChatResponse(result: ChatResponseResult) {
      responses.push(result);
      await options.responded?.(result, this);
    }
    override onChatRecovery(context: ChatRecoveryContext) {
      return options.recover?.(context);
    }
    override repairInterruptedToolPart(part: UIMessage["parts"][number]) {
      const own = options.repair?.(part as ToolPart);
      return own === undefined ? super.repairInterruptedToolPart(part) : (own as typeof part);
    }
    override sanitizeMessageForPersistence(message: UIMessage) {
      return options.sanitize?.(message) ?? message;
    }
    override onError(error: unknown) {
      noteError(notes, error);
    }
  }

  const own: Omit<TestChat, keyof TestAgent<AIChatAgent>> = {
    stage: () => eventually(() => (stages.length > seen ? stages[seen++] : undefined), "a call of onChatMessage"),
    get calls() {
      return calls;
    },
    responses,
  };
  // Not Object.assign: it would read the getters now.
  return Object.defineProperties(
    await openAgent(Talk, notes, options),
    Object.getOwnPropertyDescriptors(own),
  ) as TestChat;
}

/** Runs a whole turn: one message in, one answer out. */
export async function exchange(
  chat: TestChat,
  client: ChatClient,
  n: number,
  before: readonly UIMessage[] = [],
): Promise<UIMessage[]> {
  const request = `r${n}`;
  client.request(request, [...before, { id: `u${n}`, role: "user", parts: [{ type: "text", text: `question ${n}` }] }]);
  (await chat.stage()).say(`answer ${n}`).end();
  await client.done(request);
  return chat.stored();
}
