import { jsonSchema, tool, type ToolSet, type UIMessage } from "ai";
import { action, type AgentHost, durableTool, type StreamCallback, Think, type TurnConfig } from "perdure";
import { createWorkspaceTools } from "perdure/tools";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { toolOptionsOf } from "../../src/tool/define.ts";
import { toolParts } from "../../src/message/types.ts";
import { startMcp } from "../mcp/mcp-servers.ts";
import { openThink } from "./harness.ts";

const quiet: StreamCallback = { onEvent() {}, onDone() {} };

/** The child calls the tool that the message names, with the input behind it. */
const model = scriptedModel(({ userText, step }) => {
  const [toolName = "", input = "{}"] = userText.split(/ (.*)/s);
  return step === 0 ? { toolCalls: [{ toolName, input: JSON.parse(input) as object }] } : "done";
});

class Helper extends Think {
  override workspaceTools = false as const;
  seen: ToolSet = {};
  override getModel() {
    return model;
  }
  override beforeTurn({ tools, body }: Parameters<Think["beforeTurn"]>[0]): TurnConfig | undefined {
    this.seen = tools;
    return body as TurnConfig | undefined;
  }
  /** How the tool of the last turn may be used. */
  optionsOf(name: string) {
    return toolOptionsOf(this.seen[name]);
  }
  answer(): UIMessage | undefined {
    return this.messages.at(-1);
  }
  override authorizeTurn() {
    return this.name === "strict" ? { allowed: true, grantedPermissions: [] } : true;
  }
}

/** A Think with a helper below it. */
async function opened(parent: Partial<Think> = {}) {
  const kit = await openThink(
    (Base) => {
      class Talk extends Base {
        override getModel() {
          return model;
        }
      }
      Object.assign(Talk.prototype, parent);
      return Talk;
    },
    { children: { Helper: Helper as new (host: AgentHost) => Think } },
  );
  const agent = await kit.agent();
  const helper = (name = "helper") => agent.subAgent(Helper, name);
  /** Has a helper call a tool that the parent lends it. */
  const lend = async (tools: ToolSet, call: string, name?: string): Promise<unknown> => {
    const stub = await helper(name);
    await stub.chat(call, quiet, { tools });
    const message = await stub.answer();
    const [part] = message === undefined ? [] : toolParts(message);
    return part?.state === "output-available" ? part.output : part?.errorText;
  };
  return { kit, agent, helper, lend };
}

const inputSchema = jsonSchema<{ n: number }>({ type: "object", properties: { n: { type: "number" } } });

test("a tool with jsonSchema() works across a stub, from a parent and from server code", async () => {
  const { kit, lend } = await opened();
  const double = tool({ inputSchema, execute: ({ n }) => n * 2 });
  expect(await lend({ double }, 'double {"n":4}')).toBe(8);
  const stub = kit.host.getAgentByName(Helper, "elsewhere");
  await stub.runTurn({ input: 'double {"n":5}', tools: { double } });
  expect(toolParts((await stub.answer()) as UIMessage)).toMatchObject([{ output: 10 }]);
  // What config brings goes the same way.
  await stub.runTurn({ input: 'twice {"n":6}', config: { tools: { twice: double } } });
  expect(toolParts((await stub.answer()) as UIMessage)).toMatchObject([{ output: 12 }]);
});

test("a zod tool works across a stub, with its transforms and its refusals", async () => {
  const { lend } = await opened();
  const schema = z.object({ n: z.string().transform(Number) });
  const double = tool({ inputSchema: schema, execute: ({ n }) => n * 2 });
  expect(await lend({ double }, 'double {"n":"4"}')).toBe(8);
  expect(await lend({ double }, 'double {"n":[]}')).toContain("expected string");
});

test("the workspace tools of a parent work in a child, on the parent's files", async () => {
  const { agent, lend } = await opened();
  const tools = createWorkspaceTools(agent.workspace, { bash: false });
  await lend(tools, 'write {"path":"/a.txt","content":"hello"}');
  expect(await agent.workspace.readFile("/a.txt")).toBe("hello");
  expect(JSON.stringify(await lend(tools, 'read {"path":"/a.txt"}'))).toContain("hello");
});

test("the tools of a parent's MCP servers work in a child", async () => {
  const server = await startMcp("modern", (mcp) => {
    mcp.registerTool("greet", { inputSchema: z.object({ who: z.string() }) }, ({ who }) => ({
      content: [{ type: "text", text: `Hello ${who}` }],
    }));
  });
  const { agent, lend } = await opened();
  await agent.addMcpServer("greeter", server.url);
  const tools = agent.mcp.getAITools();
  const [name = ""] = Object.keys(tools);
  expect(JSON.stringify(await lend(tools, `${name} {"who":"Ann"}`))).toContain("Hello Ann");
});

test("what durableTool says of a tool holds across a stub", async () => {
  const { lend, helper } = await opened();
  const options = { replay: "safe", timeoutMs: 5_000, maxOutputChars: 1_000 } as const;
  const long = durableTool(tool({ inputSchema, execute: () => "x".repeat(5_000) }), options);
  expect(String(await lend({ long }, "long")).length).toBeLessThan(2_000);
  expect(await (await helper()).optionsOf("long")).toMatchObject(options);
});

function refund(runs: unknown[], more: object = {}) {
  return action({
    description: "Refunds an order.",
    inputSchema: jsonSchema<{ order: string }>({ type: "object" }),
    idempotencyKey: ({ order }) => order,
    execute: ({ order }) => {
      runs.push(order);
      return { refunded: order };
    },
    ...more,
  });
}

test("an action that an agent lends is in its ledger: two children do it once between them", async () => {
  const runs: unknown[] = [];
  const { agent, lend, helper } = await opened();
  const tools = { refund: refund(runs) };
  expect(await lend(tools, 'refund {"order":"o1"}', "a")).toEqual({ refunded: "o1" });
  expect(await lend(tools, 'refund {"order":"o1"}', "b")).toEqual({ refunded: "o1" });
  expect(runs).toEqual(["o1"]);
  expect(agent.listActions()).toMatchObject([{ key: "action:refund:o1" }]);
  expect(await (await helper("a")).listActions()).toEqual([]);
});

test("an action from server code is in the ledger of the agent whose turn it is", async () => {
  const runs: unknown[] = [];
  const { kit } = await opened();
  const stub = kit.host.getAgentByName(Helper, "own");
  await stub.runTurn({ input: 'refund {"order":"o2"}', tools: { refund: refund(runs) } });
  expect(runs).toEqual(["o2"]);
  expect(await stub.listActions()).toMatchObject([{ key: "action:refund:o2" }]);
});

test("an action on loan needs the yes of the turn that runs it, and of the agent that lends it", async () => {
  const runs: unknown[] = [];
  const { lend } = await opened({
    authorizeAction: ({ input }) =>
      (input as { order: string }).order !== "vip" || { allowed: false, reason: "Not that." },
  });
  const tools = { refund: refund(runs, { permissions: ["billing"] }) };
  const denied = { error: { name: "ActionAuthorizationError" } };
  expect(await lend(tools, 'refund {"order":"o3"}', "strict")).toMatchObject(denied);
  expect(await lend(tools, 'refund {"order":"vip"}', "free")).toMatchObject(denied);
  expect(runs).toEqual([]);
  expect(await lend(tools, 'refund {"order":"o3"}', "free")).toEqual({ refunded: "o3" });
});
