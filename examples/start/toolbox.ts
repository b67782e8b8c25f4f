// What the assistant can do beside the tools that were written for it: run code, read pages, gain tools.
import { join } from "node:path";
import { tool, type Tool, type ToolSet } from "ai";
import { action, type Think } from "perdure";
import { createExtensionTools } from "perdure/extensions";
import {
  createBrowserTools,
  createEgress,
  createExecuteTool,
  createFetchTools,
  createProcessSandbox,
  createSandboxTools,
  createWorkspaceTools,
  probeBrowser,
} from "perdure/tools";
import { z } from "zod";

const MAX_NAME = 100;
const MOST_PEOPLE = 12;
/** The server's own MCP server, and the name that its tools begin with. */
const LIBRARY = "library";

/** Where the app is served. It is the only place that its tools can reach. */
let home: URL | undefined;

/** The app says where it is, once it is served. */
export function servedAt(url: string): void {
  home = new URL(url);
}

/** The folder with the skills. */
export function skillFolder(): string {
  return process.env.PERDURE_SKILLS ?? join(import.meta.dirname, "..", "skills");
}

const jail = createProcessSandbox();
let machine: { readonly runs: boolean; readonly browses: boolean } | undefined;
let looking: Promise<void> | undefined;

/** Finds out whether this machine has programs in a jail, and a browser. Takes a moment, and is done once. */
export function lookAround(): Promise<void> {
  return (looking ??= (async () => {
    const [runs, browses] = await Promise.all([jail.probe(), probeBrowser()]);
    machine = { runs: runs.ok, browses: browses.ok };
  })());
}

/** The tools. `own` are those that code may call, too. */
export async function makeToolbox(agent: Think, own: Readonly<Record<string, Tool>>): Promise<ToolSet> {
  // No turn waits for it: what the machine has is there from the next turn on.
  void lookAround();
  const { workspace } = agent;
  const here = home === undefined ? [] : [home.origin];
  const allowPrivate = home === undefined ? [] : [home.host];
  return {
    execute: createExecuteTool({ tools: { ...own, ...createWorkspaceTools(workspace, { bash: false }) } }),
    ...createFetchTools({ allow: here, allowPrivate }),
    ...createExtensionTools({ manager: agent.extensions }),
    connect_library: tool({
      description: "Connects to the library, an MCP server of this app. Its tools are there from the next turn on.",
      inputSchema: z.object({}),
      execute: async () => {
        if (home === undefined) return { error: "The app does not know its own address." };
        await agent.addMcpServer(LIBRARY, new URL("/agents/library/main", home).href, { id: LIBRARY });
        return { connected: LIBRARY, tools: agent.mcp.listTools({ serverId: LIBRARY }).map(({ name }) => name) };
      },
    }),
    ...(machine?.runs === true && createSandboxTools({ sandbox: jail, workspace })),
    ...(machine?.browses === true &&
      (await createBrowserTools({
        egress: createEgress({ allow: here, allowPrivate }),
        workspace,
      }))),
  };
}

/** What must not be done twice, whatever happens. */
export const actions = {
  book_table: action({
    description: "Books a table in a restaurant for the user, who is asked first. It only pretends.",
    inputSchema: z.object({
      restaurant: z.string().min(1).max(MAX_NAME),
      date: z.iso.date("Give the date as year, month and day, such as 2031-05-04."),
      people: z.number().int().min(1).max(MOST_PEOPLE),
    }),
    idempotencyKey: ({ restaurant, date }) => `${restaurant}, ${date}`,
    approval: ({ restaurant, date, people }) => ({
      summary: `Book a table for ${people} at ${restaurant} on ${date}`,
      risk: "low",
    }),
    execute: ({ restaurant, date, people }) => ({ booked: restaurant, date, people, table: 7 }),
  }),
};
