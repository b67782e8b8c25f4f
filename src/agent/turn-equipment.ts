import type { ToolSet, Tool } from "ai";
import { BUDGET_TOOL } from "../message/told.ts";
import type { AgentHost, Sql } from "../port.ts";
import type { ContextBlocks } from "../memory/context-blocks.ts";
import type { SessionSearch } from "../search/search.ts";
import type { SessionSettings } from "../session/session-settings.ts";
import { bindActions } from "../tool/action-bind.ts";
import type { ActionBinding } from "../tool/action-run.ts";
import type { AnyAction } from "../tool/action.ts";
import { createToolsFromClientSchemas } from "../tool/client-tools.ts";
import type { ClientTool } from "../wire/frames.ts";
import type { ToolKit } from "./tool-kit.ts";
import { DEFAULT_SYSTEM_PROMPT } from "../context/capabilities.ts";
import { saysWhoItIs } from "../memory/render.ts";
import { durableTool, type DurableToolOptions } from "../tool/define.ts";
import { SESSION_SEARCH_TOOL } from "../search/search-text.ts";
import { compactedMessages } from "../store/compaction.ts";
import { isOnPath } from "../store/search.ts";
import { readSession } from "../store/session.ts";
import { sessionSearchTool, type SessionSearchToolOptions } from "../tool/session-search.ts";

/** What an agent's turns are equipped from: the part of a `Think` that users write. */
export interface EquippedAgent {
  getSystemPrompt(): string | Promise<string>;
  getTools(): ToolSet | Promise<ToolSet>;
  getActions(): Record<string, AnyAction> | Promise<Record<string, AnyAction>>;
}

/** What a turn has to work with. */
export interface Equipment {
  /** The system prompt, without the lines on the tools. */
  readonly prompt: string;
  /** Those of this moment: a conversation that was compacted can be searched. */
  tools(): ToolSet;
  /** Makes the text of the context blocks anew, and the prompt with it. */
  renew(): Promise<string>;
}

/** Where equipment comes from. */
export interface Equipper {
  readonly agent: EquippedAgent;
  readonly host: AgentHost;
  readonly search: SessionSearch;
  readonly actions: ActionBinding;
  /** What is built in. */
  readonly kit: ToolKit;
  blocks(session: string): Promise<ContextBlocks | undefined>;
  /** What the session was told about itself. It is configured by then. */
  settings(session: string): SessionSettings;
}

/** What only one turn has. */
export interface BroughtAlong {
  readonly clientTools?: readonly ClientTool[] | undefined;
  /** Tools that server code gave to the turn. */
  readonly tools?: ToolSet | undefined;
  /** It goes on with calls of earlier: it was cut off, or somebody has answered them. */
  readonly resumes?: boolean;
}

/**
 * Gathers the tools and the prompt of a turn. Of two tools of one name the later counts: those of the client, then what
 * is built in, then what others bring (skills, extensions, MCP servers), then what the class itself declares.
 */
export async function equip(from: Equipper, session: string, brought: BroughtAlong = {}): Promise<Equipment> {
  const { agent, host, search, actions } = from;
  const own = bindActions({ ...(await agent.getTools()), ...(await agent.getActions()) }, actions);
  const sessionBlocks = await from.blocks(session);
  const others = Object.keys({ ...own, ...brought.tools });
  const kit = await from.kit.ofTurn(others, sessionBlocks, brought.resumes);
  const blocks = await joinBlocks(sessionBlocks, await agent.getSystemPrompt());
  const withKit = (prompt: string) => [prompt, kit.prompt].filter((text) => text !== "").join("\n\n");
  return {
    prompt: withKit(blocks.prompt),
    tools: () => ({
      ...createToolsFromClientSchemas(brought.clientTools?.filter(({ name }) => name !== BUDGET_TOOL)),
      ...kit.tools,
      ...searchTools(host, search, session, from.settings(session).searchScope),
      ...blocks.tools,
      ...own,
      ...bindActions(brought.tools ?? {}, actions),
    }),
    renew: async () => withKit(await blocks.renew()),
  };
}

/** How long a call of a context tool may take: a provider has its own, shorter bounds. */
const TOOL_TIMEOUT_MS = 90_000;

/** What context blocks add to a turn. */
interface JoinedBlocks {
  /** The system prompt, without the lines on the tools. */
  readonly prompt: string;
  readonly tools: ToolSet;
  /** Makes the text of the blocks anew, and the prompt with it: after a compaction, when all is read anew anyway. */
  renew(): Promise<string>;
}

/**
 * The prompt of a turn: what the class says, then the blocks. A class that says nothing of its own leaves it to a
 * read-only block to say who the agent is; the default is only there when there is none.
 */
async function joinBlocks(blocks: ContextBlocks | undefined, base: string): Promise<JoinedBlocks> {
  if (blocks === undefined) return { prompt: base, tools: {}, renew: async () => base };
  return {
    prompt: joined(base, await blocks.systemPrompt()),
    tools: durableTools(blocks),
    renew: async () => joined(base, await blocks.refreshSystemPrompt()),
  };
}

function joined(base: string, text: string): string {
  if (text === "") return base;
  return base === "" || (base === DEFAULT_SYSTEM_PROMPT && saysWhoItIs(text)) ? text : `${base}\n\n${text}`;
}

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

/**
 * The tool by which the model looks up earlier messages: when the app asked for it, with what may be searched, or when a
 * compaction leaves out some of them, or outputs of tools.
 */
function searchTools(
  db: Sql,
  search: SessionSearch,
  session: string,
  asked: SessionSearchToolOptions["scope"],
): ToolSet {
  if (asked === undefined && !isCompacted(db, session)) return {};
  const scope = asked ?? "session";
  return { [SESSION_SEARCH_TOOL]: sessionSearchTool({ search, session: () => session, scope }) };
}

function isCompacted(db: Sql, session: string): boolean {
  const compacted = compactedMessages(db);
  if (compacted.length === 0) return false;
  const leaf = readSession(db, session)?.leaf ?? null;
  return leaf !== null && isOnPath(db, leaf, compacted, MAX_STEPS);
}
