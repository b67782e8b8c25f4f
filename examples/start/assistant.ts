import type { InferUITools, ToolSet, UIMessage } from "ai";
import { callable, PerdureError, skills, Think, type TurnConfig } from "perdure";
import { defaultModelLimits } from "perdure/context";
import type { AgentStep } from "perdure/host";
import type { AgentStub } from "perdure/node";
import { type AssistantApi, type AssistantTools, type DeliveryItem, UNTITLED } from "./contract.ts";
import { Conversations } from "./conversations.ts";
import { toModelInput } from "./model-input.ts";
import { chooseModel } from "./model/choose.ts";
import { explainFailure } from "./model/failure.ts";
import { isAboutTools } from "./model/guide-tools.ts";
import { GUIDE_LIMITS, GuideError, guidePace, guideWithTools } from "./model/guide.ts";
import { helperTools } from "./helpers.ts";
import { actions, makeToolbox, skillFolder } from "./toolbox.ts";
import { assistantTools } from "./tools.ts";

const INSTRUCTIONS = `You are the assistant of a demonstration of Perdure, a framework for durable agents. Answer briefly, in
markdown. Use the tool weather for questions about the weather, timeZone for the user's time zone or local time, and
deleteFiles when you are asked to delete files or to show an approval; it only pretends, so make up file names. Helpers
are agents that work for you: research for questions about a topic, researchLater when the user does not want to wait,
tidyUp to tidy a folder. Call several at once when they are asked for together. You have files of your own (read, write,
edit and so on), execute for code, and can gain more tools: load_extension for those that you write yourself,
connect_library for those of the library.`;

/** One more try for what may pass, like a rate limit; the user should not wait long to be told. */
const MAX_RETRIES = 1;

/** The library is in this process: it is there soon, or not at all. */
const MCP_WAIT_MS = 2_000;

/** The page shows so many of what was brought to a messenger. */
const MAX_DELIVERIES = 50;

/** A tour of all tools takes more than one might think. */
const MAX_STEPS = 60;

/** One conversation: a child of {@link Conversations}. */
export class Assistant extends Think implements AssistantApi {
  static {
    callable(this, "stopRun");
    callable(this, "deliveries");
    callable(this, "retryDelivery");
    callable(this, "forgetDelivery");
  }
  override maxSteps = MAX_STEPS;
  override extensionLoader = true as const;
  override waitForMcpConnections = { timeout: MCP_WAIT_MS };
  override modelLimits = { ...defaultModelLimits, ...GUIDE_LIMITS };

  readonly #own = ownTools();

  override getModel() {
    const { builtIn, model } = chooseModel(process.env);
    return builtIn && this.#usesToolbox() ? guideWithTools(guidePace(process.env)) : model;
  }

  override getSystemPrompt(): string {
    return INSTRUCTIONS;
  }

  override async getTools(): Promise<ReturnType<typeof ownTools> & ToolSet> {
    if (!this.#usesToolbox()) return this.#own;
    const { weather, deleteFiles } = this.#own;
    return { ...this.#own, ...(await makeToolbox(this, { weather, deleteFiles })) };
  }

  override getActions() {
    return this.#usesToolbox() ? actions : {};
  }

  override getWorkspace() {
    return this.#usesToolbox() ? this.workspace : null;
  }

  override getSkills() {
    return this.#usesToolbox() ? [skills.fromDirectory(skillFolder())] : [];
  }

  override getSkillScriptRunner() {
    return skills.runner({ workspaceInstance: this.workspace });
  }

  /** A model has all there is. The guide reads little, so it has more tools only where it was asked about them. */
  #usesToolbox(): boolean {
    return !chooseModel(process.env).builtIn || this.messages.some(asksForTools);
  }

  async stopRun(runId: string): Promise<void> {
    await this.cancelAgentTool(String(runId), "You stopped it.");
  }

  async deliveries(): Promise<readonly DeliveryItem[]> {
    return this.listDeliveries({ limit: MAX_DELIVERIES }).map((delivery) => {
      const { id, kind, state, error, nextAt, maybeTwice, createdAt, parts } = delivery;
      return {
        ...{ id, kind, state, parts, maybeTwice, createdAt },
        ...(error !== undefined && { error }),
        ...(nextAt !== undefined && { nextAt }),
      };
    });
  }

  override retryDelivery(id: string): boolean {
    return super.retryDelivery(String(id));
  }

  override forgetDelivery(id: string): boolean {
    return super.forgetDelivery(String(id));
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
    const from = this.getMessengerContext() === undefined ? undefined : "Telegram";
    await this.#tell((list) => list.heard(this.name, this.#title(), from));
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
    console.error(`[conversation ${this.name}] ${text}`);
    return text;
  }

  /** The list may refuse, but that it cannot be reached, in a host that stops for example, is not worth a turn. */
  async #tell(news: (list: AgentStub<Conversations>) => Promise<void>): Promise<void> {
    try {
      await news(this.parentAgent(Conversations));
    } catch (error) {
      if (!PerdureError.is(error)) throw error;
    }
  }

  #title(): string {
    const first = this.messages.find(({ role }) => role === "user");
    const words = first?.parts.map((part) => (part.type === "text" ? part.text : "")).join(" ") ?? "";
    const file = first?.parts.find((part) => part.type === "file");
    return [words.trim(), file?.filename?.trim(), UNTITLED].find((text) => text !== undefined && text !== "") ?? "";
  }
}

function ownTools() {
  return { ...assistantTools(guidePace(process.env)), ...helperTools() };
}

function asksForTools({ role, parts }: UIMessage): boolean {
  return role === "user" && parts.some((part) => part.type === "text" && isAboutTools(part.text));
}

/** Fails to compile when the tools are not those that the page knows. */
export type ToolsAgree =
  InferUITools<Awaited<ReturnType<Assistant["getTools"]>>> extends { [Name in keyof AssistantTools]: unknown }
    ? true
    : never;
