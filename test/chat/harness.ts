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
import { memoryStorage, serve, subscribe } from "perdure/node";
import type { ServedHost, ServeOptions } from "perdure/node";
import { manualClock } from "perdure/testing";
import type { ManualClock } from "perdure/testing";
import { expect, onTestFinished } from "vitest";
import { eventually } from "../host/open-host.ts";
import { type ChatClient, connectTo } from "./client.ts";
import { createStage, type Respond, type Stage } from "./stage.ts";

type Settings = Pick<
  AIChatAgent,
  "maxPersistedMessages" | "messageConcurrency" | "chatRecovery" | "chatStreamStallTimeoutMs" | "approvalTimeoutMs"
>;

export interface ChatOptions extends Partial<Settings> {
  /** Instead of stages. */
  readonly respond?: Respond;
  readonly recover?: (context: ChatRecoveryContext) => ChatRecoveryOptions | void | Promise<ChatRecoveryOptions | void>;
  readonly responded?: (result: ChatResponseResult, agent: AIChatAgent) => void | Promise<void>;
  readonly repair?: (part: ToolPart) => ToolPart | undefined;
  readonly sanitize?: (message: UIMessage) => UIMessage;
  /** There is no stream before the test opens the stage. */
  readonly slow?: boolean;
  /** Time stands still unless the test moves it. */
  readonly manual?: boolean;
  readonly host?: Partial<ServeOptions>;
}

/** A chat under test. */
export interface TestChat {
  readonly host: ServedHost;
  /** Only with `manual`. */
  readonly clock: ManualClock;
  /** The next call of `onChatMessage` that no test has seen yet. */
  stage(): Promise<Stage>;
  /** Calls of `onChatMessage` so far. */
  readonly calls: number;
  /** What `onChatResponse` was told. */
  readonly responses: readonly ChatResponseResult[];
  /** The agent itself, as server code inside of it sees it. */
  agent(): Promise<AIChatAgent>;
  connect(): Promise<ChatClient>;
  /** What `get-messages` answers. */
  stored(): Promise<UIMessage[]>;
  /** Rows of the framework's tables. */
  rows<T>(query: string): Promise<T[]>;
  /** What `onError` was given since the last call. A test that expects errors must take them. */
  takeErrors(): string[];
  /** Ends the process's part of everything, at once, and starts again on the same rows. */
  restart(): Promise<void>;
  /** Waits until nothing runs or waits. */
  stable(): Promise<void>;
}

const PATH = "/agents/talk/one";

export async function openChat(options: ChatOptions = {}): Promise<TestChat> {
  const clock = manualClock();
  const storage = memoryStorage();
  const stages: Stage[] = [];
  const responses: ChatResponseResult[] = [];
  let seen = 0;
  let calls = 0;
  let errors: string[] = [];
  const lives: Talk[] = [];
  let port: AgentHost | undefined;

  class Talk extends AIChatAgent {
    constructor(host: AgentHost) {
      super(host);
      port = host;
      const { maxPersistedMessages, messageConcurrency, chatRecovery, chatStreamStallTimeoutMs, approvalTimeoutMs } =
        options;
      const given = {
        maxPersistedMessages,
        messageConcurrency,
        chatRecovery,
        chatStreamStallTimeoutMs,
        approvalTimeoutMs,
      };
      for (const [key, value] of Object.entries(given)) if (value !== undefined) Reflect.set(this, key, value);
      lives.push(this);
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
    override repairInterruptedToolPart(part: ToolPart) {
      return options.repair?.(part);
    }
    override sanitizeMessageForPersistence(message: UIMessage) {
      return options.sanitize?.(message) ?? message;
    }
    override onError(error: unknown) {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  }

  const open = () =>
    serve({
      agents: { Talk },
      storage,
      port: 0,
      signals: false,
      idleMs: 1e9,
      graceMs: 0,
      ...(options.manual === true && { clock }),
      ...options.host,
    });
  const forget = subscribe("agent:failed", ({ payload }) => {
    // Sockets are closed by the host as it stops, which is no failure of the agent.
    if (payload.stage !== "close") errors.push(`${payload.stage}: ${payload.error}`);
  });
  let host = await open();
  onTestFinished(async () => {
    await host.stop();
    forget();
    expect(errors, "errors of the agent that the test did not take").toEqual([]);
  });

  const chat: TestChat = {
    get host() {
      return host;
    },
    clock,
    stage: () => eventually(() => (stages.length > seen ? stages[seen++] : undefined), "a call of onChatMessage"),
    get calls() {
      return calls;
    },
    responses,
    async agent() {
      await host.getAgentByName(Talk, "one").hasPendingInteraction();
      const agent = lives.at(-1);
      if (agent === undefined) throw new Error("The agent was not made.");
      return agent;
    },
    connect: () => connectTo(host.url + PATH),
    stored: async () => (await (await fetch(`${host.url}${PATH}/get-messages`)).json()) as UIMessage[],
    async rows<T>(query: string) {
      await chat.agent();
      return port?.sql<T>(query) ?? [];
    },
    takeErrors() {
      const taken = errors;
      errors = [];
      return taken;
    },
    async restart() {
      await host.stop();
      host = await open();
    },
    async stable() {
      expect(await (await chat.agent()).waitUntilStable()).toBe(true);
    },
  };
  return chat;
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
