import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool, type UIMessage } from "ai";
import { type AgentHost, AIChatAgent, type ChatTurnOptions, Think } from "perdure";
import { insertMessage } from "../../src/store/message.ts";
import { MAIN_SESSION, setCurrent, setLeaf } from "../../src/store/session.ts";
import { mockModel } from "../chat/mock-model.ts";

/** Messages in one commit. */
const BATCH = 5_000;
const WORDS = "the quick brown fox jumps over a lazy dog while nobody looks at it from the other side of the road";
const ANSWER_WORDS = 90;

/** A question of some 60 characters, an answer of some 500: with its JSON a message has 350 bytes on average. */
function messageAt(at: number): UIMessage {
  const words = WORDS.split(" ");
  const say = (count: number) =>
    Array.from({ length: count }, (_, i) => words[(at * 7 + i * i) % words.length]).join(" ");
  if (at % 2 === 0)
    return { id: `m${at}`, role: "user", parts: [{ type: "text", text: `Question ${at}: ${say(9)}?` }] };
  const text = `Answer ${at}: ${say(ANSWER_WORDS)}.`;
  return { id: `m${at}`, role: "assistant", parts: [{ type: "step-start" }, { type: "text", text, state: "done" }] };
}

/** Writes a conversation as if it had been held: the rows of the tree, none of the turns. */
export function seedMessages(host: AgentHost, count: number): void {
  const now = host.clock.now();
  let parent: number | null = null;
  for (let from = 0; from < count; from += BATCH) {
    host.tx(() => {
      for (let at = from; at < Math.min(from + BATCH, count); at++) {
        const { id, role, ...rest } = messageAt(at);
        const body = JSON.stringify({ id, role, ...rest });
        parent = insertMessage(host, { id, session: MAIN_SESSION, parent, role, body, createdAt: now - count + at });
      }
      setLeaf(host, MAIN_SESSION, parent, now);
      setCurrent(host, MAIN_SESSION);
    });
  }
}

const MAX_STEPS = 10;
const tools = {
  echo: tool({
    description: "Gives back what it is given.",
    inputSchema: jsonSchema<{ tag: string; k: number }>({ type: "object" }),
    execute: ({ tag, k }) => ({ ok: true, tag, k }),
  }),
};

/** Steps run by the engine, all settings as they come. */
export class LongThink extends Think {
  readonly #host: AgentHost;
  constructor(host: AgentHost) {
    super(host);
    this.#host = host;
  }
  seed(count: number): void {
    seedMessages(this.#host, count);
  }
  override getModel() {
    return mockModel();
  }
  override getTools() {
    return tools;
  }
}

/** How much of the conversation the app gives to its model. */
const NEWEST = 20;

/** The app's own `streamText`, which is given the newest messages. */
export class LongChat extends AIChatAgent {
  readonly #host: AgentHost;
  constructor(host: AgentHost) {
    super(host);
    this.#host = host;
  }
  seed(count: number): void {
    seedMessages(this.#host, count);
  }
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const messages = await convertToModelMessages(this.getHistory(null, { limit: NEWEST }));
    const stopWhen = isStepCount(MAX_STEPS);
    return streamText({ model: mockModel(), messages, tools, stopWhen, abortSignal }).toUIMessageStream();
  }
}
