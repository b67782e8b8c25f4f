import type { LanguageModel, Tool, ToolSet } from "ai";
import { PerdureError } from "../../base/error.ts";
import { capabilityBlock, DEFAULT_SYSTEM_PROMPT } from "../../context/capabilities.ts";
import type { ContextBlocks } from "../../memory/context-blocks.ts";
import { saysWhoItIs } from "../../memory/render.ts";
import { BUDGET_TOOL } from "../../message/told-line.ts";
import type { UIMessage } from "../../message/types.ts";
import { SESSION_SEARCH_TOOL } from "../../search/search-text.ts";
import { compactedMessages } from "../../store/compaction.ts";
import { isOnPath } from "../../store/search.ts";
import { readSession } from "../../store/session.ts";
import type { ActionAuthorization } from "../../tool/action-authorize.ts";
import { bindAction, bindActions } from "../../tool/action-bind.ts";
import type { ActionBinding } from "../../tool/action-run.ts";
import { isAction } from "../../tool/action.ts";
import { createToolsFromClientSchemas } from "../../tool/client-tools.ts";
import { durableTool, type DurableToolOptions } from "../../tool/define.ts";
import { sessionSearchTool } from "../../tool/session-search.ts";
import type { ClientTool } from "../../wire/frames.ts";
import { isAsked } from "../policy.ts";
import { policyOfTurn } from "./channels.ts";
import type { ChatTurnOptions, TurnConfig, TurnContext } from "./config.ts";
import { assemble, type BroughtAlong, type PreparedTurn, type StepParts } from "./parts.ts";

/* A turn's models, instructions and tools: the class says them; `beforeTurn` and server code change them for one turn. */

/** Prepares an attempt, as the agent in its turn. @param shown the conversation @throws what the class throws; `bad_config` */
export async function prepareTurn(
  parts: StepParts,
  turn: ChatTurnOptions & { readonly recovering: boolean },
  shown: () => readonly UIMessage[],
): Promise<PreparedTurn> {
  const { policy, kit } = parts;
  const { requestId, sessionId, identity, continuation, recovering, body, clientTools, abortSignal } = turn;
  const brought = parts.brought.get(requestId) ?? {};
  let grants: ActionAuthorization = true;
  const actions = parts.actionBinding({ id: requestId, grants: () => grants });
  const resumes = recovering || continuation;
  const equipment = await equip(parts, sessionId, { actions, clientTools, resumes, tools: brought.tools });
  const channel = await policyOfTurn(parts, requestId);
  const tools = channel.tools(equipment.tools());
  const prompt = channel.prompt(equipment.prompt);
  let config: TurnConfig = brought.config ?? {};
  const models = config.model === undefined ? asList(await policy.getModel()) : [];
  const watchers = kit.watchers?.listens("beforeTurn") === true ? kit.watchers : undefined;
  const authorizes = isAsked(parts, "authorizeTurn");
  if (authorizes || watchers !== undefined || isAsked(parts, "beforeTurn")) {
    const [model] = models.length > 0 ? models : asList(config.model ?? []);
    const messages = await assemble(parts, shown(), tools);
    const context: TurnContext = {
      ...{ requestId, sessionId, identity, system: prompt + capabilityBlock(tools), messages, tools },
      ...{ continuation, recovering, body, clientTools, abortSignal, model: model as LanguageModel },
    };
    if (authorizes) grants = await policy.authorizeTurn(context);
    const own = await policy.beforeTurn(context);
    // The class has the last word on what it sets; what the turn was given is the app's too.
    config = { ...withinSteps(await watchers?.beforeTurn(context), () => policy.getMaxSteps()), ...config, ...own };
  }
  const given = bindActions(config.tools ?? {}, actions);
  const all = { ...tools, ...given };
  if (Object.hasOwn(all, BUDGET_TOOL))
    throw new PerdureError(
      "bad_config",
      `"${BUDGET_TOOL}" is Perdure's own question about a budget. Give your tool another name.`,
    );
  // By the turn's own list alone: a prompt that changed from step to step would be read anew each time.
  const onTools = (some: ToolSet) => capabilityBlock(offered(some, config.activeTools));
  const instructions = config.instructions ?? config.system;
  return {
    models: config.model === undefined ? models : asList(config.model),
    instructions: instructions ?? prompt + onTools(all),
    renew: async () => {
      const renewed = channel.prompt(await equipment.renew());
      // What was summarised can be searched from now on, not only from the next turn: that would change the request again.
      const now = { ...channel.tools(equipment.tools()), ...given };
      return { tools: now, instructions: instructions ?? renewed + onTools(now) };
    },
    tools: all,
    messages: config.messages,
    maxSteps: checkMaxSteps(config.maxSteps ?? channel.maxTurns ?? policy.getMaxSteps()),
    stopWhen: config.stopWhen === undefined ? [] : asList(config.stopWhen),
    sendReasoning: config.sendReasoning ?? policy.sendReasoning,
    config,
    bind: (name, tool) => (isAction(tool) ? bindAction(name, tool, actions) : tool),
  };
}

/** A request as it would be made now, without what a client or `beforeTurn` would change. @throws PerdureError `bad_config` */
export async function nextRequest(parts: StepParts, session: string) {
  const equipment = await equip(parts, session);
  const tools = equipment.tools();
  const [model] = asList(await parts.policy.getModel());
  if (!model) throw new PerdureError("bad_config", "There is no model: getModel() returned nothing.");
  return { model, instructions: equipment.prompt + capabilityBlock(tools), tools };
}

function offered(tools: ToolSet, active: readonly string[] | undefined): ToolSet {
  if (active === undefined) return tools;
  return Object.fromEntries(Object.entries(tools).filter(([name]) => active.includes(name)));
}

function asList<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}

/** What extensions say of a turn. Of steps they may ask for fewer than the agent allows, and not for more. */
function withinSteps<C extends { readonly maxSteps?: number }>(said: C | undefined, most: () => number): C | undefined {
  return said?.maxSteps === undefined ? said : { ...said, maxSteps: Math.min(said.maxSteps, checkMaxSteps(most())) };
}

/** @throws PerdureError `bad_config` for what is no number of steps */
function checkMaxSteps(maxSteps: number): number {
  if (typeof maxSteps === "number" && !Number.isNaN(maxSteps)) return maxSteps;
  throw new PerdureError("bad_config", `maxSteps must be a number of model calls, not ${String(maxSteps)}.`);
}

/** What only one turn has. */
interface OfOneTurn extends Pick<BroughtAlong, "tools"> {
  readonly actions?: ActionBinding;
  readonly clientTools?: readonly ClientTool[] | undefined;
  /** It goes on with calls of earlier: it was cut off, or somebody has answered them. */
  readonly resumes?: boolean;
}

/** What a turn has to work with. */
interface Equipment {
  /** The system prompt, without the lines on the tools. */
  readonly prompt: string;
  /** Those of this moment: a conversation that was compacted can be searched. */
  tools(): ToolSet;
  /** Makes the text of the context blocks anew, and the prompt with it: after a compaction, when all is read anew anyway. */
  renew(): Promise<string>;
}

/**
 * Gathers the tools and prompt of a turn, or of a session outside its turns. Of equal names the later wins: the client's tools,
 * built-in ones, those of others (skills, extensions, MCP servers), the class's own.
 */
export async function equip(parts: StepParts, session: string, only: OfOneTurn = {}): Promise<Equipment> {
  const { policy, sessions, kit } = parts;
  const { actions = parts.actionBinding(), clientTools, tools = {}, resumes = false } = only;
  const own = bindActions({ ...(await policy.getTools()), ...(await policy.getActions()) }, actions);
  const { blocks } = await sessions.ready(session);
  const builtIn = await kit.ofTurn(Object.keys({ ...own, ...tools }), blocks, resumes);
  const base = await policy.getSystemPrompt();
  const promptOf = (text: string) => [joined(base, text), builtIn.prompt].filter((one) => one !== "").join("\n\n");
  const prompt = promptOf(await blocks.systemPrompt());
  const blockTools = durableTools(blocks);
  return {
    prompt,
    tools: () => ({
      ...createToolsFromClientSchemas(clientTools?.filter(({ name }) => name !== BUDGET_TOOL)),
      ...builtIn.tools,
      ...searchTools(parts, session),
      ...blockTools,
      ...own,
      ...bindActions(tools, actions),
    }),
    renew: async () => promptOf(await blocks.refreshSystemPrompt()),
  };
}

/** The prompt: what the class says, else the default unless a read-only block says who the agent is; then context blocks. */
function joined(base: string, text: string): string {
  if (text === "") return base;
  return base === "" || (base === DEFAULT_SYSTEM_PROMPT && saysWhoItIs(text)) ? text : `${base}\n\n${text}`;
}

/** How long a call of a context tool may take: a provider has its own, shorter bounds. */
const TOOL_TIMEOUT_MS = 90_000;

function durableTools(blocks: ContextBlocks): ToolSet {
  const tools: ToolSet = {};
  for (const [name, tool] of Object.entries(blocks.tools())) {
    // Texts that the agent stores itself know which calls have written to them. Nobody knows that of a provider.
    const replay = name === "set_context" && blocks.writesElsewhere ? "never" : "safe";
    const options: DurableToolOptions = { replay, timeoutMs: TOOL_TIMEOUT_MS };
    tools[name] = durableTool<Tool>(tool, options);
  }
  return tools;
}

/** How far back a summary is looked for. A conversation that is longer than this without one needs no tool for it. */
const MAX_STEPS = 5_000;

/** The tool to look up earlier messages: if the app asked for it, or a compaction leaves some of them out. */
function searchTools({ host, search, sessions }: StepParts, session: string): ToolSet {
  const asked = sessions.of(session).settings.searchScope;
  if (asked === undefined && !isCompacted(host, session)) return {};
  const scope = asked ?? "session";
  return { [SESSION_SEARCH_TOOL]: sessionSearchTool({ search, session: () => session, scope }) };
}

function isCompacted(db: StepParts["host"], session: string): boolean {
  const compacted = compactedMessages(db);
  if (compacted.length === 0) return false;
  const leaf = readSession(db, session)?.leaf ?? null;
  return leaf !== null && isOnPath(db, leaf, compacted, MAX_STEPS);
}
