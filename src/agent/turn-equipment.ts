import type { ToolSet } from "ai";
import { BUDGET_TOOL } from "../message/told.ts";
import type { AgentHost } from "../port.ts";
import type { ContextBlocks } from "../memory/context-blocks.ts";
import type { SessionSearch } from "../search/search.ts";
import type { SessionSettings } from "../session/session-settings.ts";
import { bindActions } from "../tool/action-bind.ts";
import type { ActionBinding } from "../tool/action-run.ts";
import type { AnyAction } from "../tool/action.ts";
import { createToolsFromClientSchemas } from "../tool/client-tools.ts";
import type { ClientTool } from "../wire/frames.ts";
import { joinBlocks } from "./think-blocks.ts";
import { searchTools } from "./think-search.ts";
import type { ToolKit } from "./tool-kit.ts";

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
