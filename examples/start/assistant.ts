import { type AgentStep, callable, defaultModelLimits, PerdureError, Think, type TurnConfig } from "perdure";
import type { InferUITools } from "ai";
import type { AgentStub } from "perdure/node";
import { type AssistantApi, type AssistantTools, UNTITLED } from "./contract.ts";
import { Conversations } from "./conversations.ts";
import { toModelInput } from "./model-input.ts";
import { chooseModel } from "./model/choose.ts";
import { explainFailure } from "./model/failure.ts";
import { GUIDE_LIMITS, GuideError, guidePace } from "./model/guide.ts";
import { helperTools } from "./helpers.ts";
import { assistantTools } from "./tools.ts";

const INSTRUCTIONS = `You are the assistant of a demonstration of Perdure, a framework for durable agents. Answer briefly, in
markdown. Use the tool weather for questions about the weather, timeZone for the user's time zone or local time, and
deleteFiles when you are asked to delete files or to show an approval; it only pretends, so make up file names. Helpers
are agents that work for you: research for questions about a topic, researchLater when the user does not want to wait,
tidyUp to tidy a folder. Call several at once when they are asked for together.`;

/** One more try for what may pass, like a rate limit; the user should not wait long to be told. */
const MAX_RETRIES = 1;

/** One conversation: a child of {@link Conversations}. */
export class Assistant extends Think implements AssistantApi {
  static {
    callable(this, "stopRun");
  }
  override maxSteps = 8;
  override modelLimits = { ...defaultModelLimits, ...GUIDE_LIMITS };

  override getModel() {
    return chooseModel(process.env).model;
  }

  override getSystemPrompt(): string {
    return INSTRUCTIONS;
  }

  override getTools() {
    return { ...assistantTools(guidePace(process.env)), ...helperTools() };
  }

  async stopRun(runId: string): Promise<void> {
    await this.cancelAgentTool(String(runId), "You stopped it.");
  }

  /** A helper can be looked at and talked to. There are no others than those that were asked for. */
  override onBeforeSubAgent(_request: Request, child: AgentStep): Response | undefined {
    if (this.hasAgentToolRun(child.className, child.name)) return undefined;
    return new Response("No such helper.", { status: 404 });
  }

  override assembleContext({ messages, tools }: Parameters<Think["assembleContext"]>[0]) {
    const { builtIn } = chooseModel(process.env);
    return super.assembleContext({ messages: toModelInput(messages, { readsText: !builtIn }), tools });
  }

  override async beforeTurn(): Promise<TurnConfig> {
    await this.#tell((list) => list.heard(this.name, this.#title()));
    return { maxRetries: MAX_RETRIES };
  }

  override async onChatResponse(): Promise<void> {
    await this.#tell((list) => list.touched(this.name));
  }

  override classifyChatError(error: unknown) {
    // The guide was asked to fail: it would fail again.
    return error instanceof GuideError ? ("fatal" as const) : undefined;
  }

  override onChatError(error: unknown): string {
    const text = explainFailure(error, chooseModel(process.env));
    this.#log(text);
    return text;
  }

  /** One line is enough: what is thrown here has a message that was written for people. */
  override onError(error: unknown): void {
    this.#log(error instanceof Error ? error.message : String(error));
  }

  /** The list may refuse, but that it cannot be reached, in a host that stops for example, is not worth a turn. */
  async #tell(news: (list: AgentStub<Conversations>) => Promise<void>): Promise<void> {
    try {
      await news(this.parentAgent(Conversations));
    } catch (error) {
      if (!PerdureError.is(error)) throw error;
    }
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

/** Fails to compile when the tools are not those that the page knows. */
export type ToolsAgree =
  InferUITools<ReturnType<Assistant["getTools"]>> extends { [Name in keyof AssistantTools]: unknown } ? true : never;
