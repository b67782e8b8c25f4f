import { convertToModelMessages, isStepCount, streamText, toUIMessageStream, type UIMessageChunk } from "ai";
import { AIChatAgent, type ChatAnswer, type ChatTurnOptions, PerdureError } from "perdure";
import type { AgentStub } from "perdure/node";
import { UNTITLED } from "./contract.ts";
import { Conversations } from "./conversations.ts";
import { toModelInput } from "./model-input.ts";
import { chooseModel, type ModelChoice } from "./model/choose.ts";
import { explainFailure } from "./model/failure.ts";
import { guidePace } from "./model/guide.ts";
import { assistantTools } from "./tools.ts";

const INSTRUCTIONS = `You are the assistant of a demonstration of Perdure, a framework for durable agents. Answer briefly, in
markdown. Use the tool weather for questions about the weather, timeZone for the user's time zone or local time, and
deleteFiles when you are asked to delete files or to show an approval; it only pretends, so make up file names.`;

const MAX_STEPS = 8;
/** One more try for what may pass, like a rate limit; the user should not wait long to be told. */
const MAX_RETRIES = 1;

/** One conversation: a child of {@link Conversations}. */
export class Assistant extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions): Promise<ChatAnswer> {
    await this.#tell((list) => list.heard(this.name, this.#title()));
    const choice = chooseModel(process.env);
    const tools = assistantTools(guidePace(process.env));
    const input = toModelInput(this.messages, { readsText: !choice.builtIn });
    const { stream } = streamText({
      model: choice.model,
      instructions: INSTRUCTIONS,
      messages: await convertToModelMessages(input, { tools }),
      tools,
      stopWhen: isStepCount(MAX_STEPS),
      maxRetries: MAX_RETRIES,
      abortSignal,
      // Said below, in words; by default it is printed with its stack.
      onError: () => {},
    });
    const onError = (error: unknown): string => this.#failed(error, choice);
    return toldToTheEnd(toUIMessageStream({ stream, tools, onError }), onError, abortSignal);
  }

  override async onChatResponse(): Promise<void> {
    await this.#tell((list) => list.touched(this.name));
  }

  /** The list may refuse, but that it cannot be reached, in a host that stops for example, is not worth a turn. */
  async #tell(news: (list: AgentStub<Conversations>) => Promise<void>): Promise<void> {
    try {
      await news(this.parentAgent(Conversations));
    } catch (error) {
      if (!PerdureError.is(error)) throw error;
    }
  }

  /** One line is enough: what is thrown here has a message that was written for people. */
  override onError(error: unknown): void {
    this.#log(error instanceof Error ? error.message : String(error));
  }

  #failed(error: unknown, choice: ModelChoice): string {
    const text = explainFailure(error, choice);
    this.#log(text);
    return text;
  }

  #log(text: string): void {
    console.error(`[conversation ${this.name}] ${text}`);
  }

  #title(): string {
    const first = this.messages.find(({ role }) => role === "user");
    const words = first?.parts.map((part) => (part.type === "text" ? part.text : "")).join(" ") ?? "";
    const file = first?.parts.find((part) => part.type === "file");
    return [words.trim(), file?.filename?.trim(), UNTITLED].find((text) => text !== undefined && text !== "") ?? "";
  }
}

/** A connection that breaks off makes the stream itself fail, and `onError` does not hear of it: it is told here. */
async function* toldToTheEnd(
  chunks: AsyncIterable<UIMessageChunk>,
  onError: (error: unknown) => string,
  signal: AbortSignal,
): AsyncGenerator<UIMessageChunk> {
  try {
    yield* chunks;
  } catch (error) {
    if (!signal.aborted) yield { type: "error", errorText: onError(error) };
  }
}
