// Tools of servers as a model has them.
import { asSchema, type Tool } from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { toolOptionsOf } from "../../src/tool/define.ts";
import { openMcp } from "./agent.ts";
import { startMcp } from "./mcp-servers.ts";

const options = { toolCallId: "c1", messages: [], context: undefined };

async function tools() {
  const server = await startMcp("modern", (mcp) => {
    const inputSchema = z.object({ word: z.string(), times: z.number().int().optional() });
    mcp.registerTool(
      "say",
      { description: "Says it.", inputSchema, annotations: { idempotentHint: true } },
      (input) => ({
        content: [
          { type: "text", text: input.word },
          { type: "image", data: "AAAA", mimeType: "image/png" },
          { type: "audio", data: "AAAA", mimeType: "audio/wav" },
          { type: "resource_link", uri: "file:///a.txt", name: "a.txt" },
          { type: "resource", resource: { uri: "file:///b.txt", text: "inside" } },
        ],
      }),
    );
    mcp.registerTool("fail", {}, () => ({ content: [{ type: "text", text: "no such word" }], isError: true }));
    mcp.registerTool("count", { outputSchema: z.object({ n: z.number() }) }, () => ({
      content: [{ type: "text", text: '{"n":1}' }],
      structuredContent: { n: 1 },
    }));
  });
  const mcp = await (await openMcp()).mcp();
  await mcp.addServer("words", server.url, { id: "w" });
  return { mcp, made: mcp.getAITools() };
}

const run = (tool: Tool | undefined, input: unknown) => tool?.execute?.(input as never, options as never) as unknown;

test("a model gets texts and pictures; what it cannot read is named", async () => {
  const { made } = await tools();
  const say = made.tool_w_say;
  const output = await run(say, { word: "hello" });
  expect(await say?.toModelOutput?.({ toolCallId: "c1", input: {}, output })).toEqual({
    type: "content",
    value: [
      { type: "text", text: "hello" },
      { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
      { type: "text", text: "[audio, audio/wav]" },
      { type: "text", text: "[resource_link, a.txt, file:///a.txt]" },
      { type: "text", text: "file:///b.txt:\ninside" },
    ],
  });
  const count = await run(made.tool_w_count, {});
  expect(count).toMatchObject({ structuredContent: { n: 1 } });
  expect(await made.tool_w_count?.toModelOutput?.({ toolCallId: "c", input: {}, output: count })).toEqual({
    type: "text",
    value: '{"n":1}',
  });
});

test("tools are in the same order after a restart, whichever server was added first", async () => {
  const server = await startMcp("modern", (mcp) => {
    for (const name of ["two", "one"]) mcp.registerTool(name, {}, () => ({ content: [] }));
  });
  const agent = await openMcp();
  for (const id of ["z", "a"]) await (await agent.mcp()).addServer(`server ${id}`, server.url, { id });
  const names = async () => Object.keys((await agent.mcp()).getAITools());
  const before = await names();
  expect(before).toHaveLength(4);
  expect(before).toEqual(before.toSorted());
  await agent.restart();
  await expect.poll(names).toEqual(before);
});

test("what the tool says of its failure is the error of the call", async () => {
  const { made } = await tools();
  await expect(run(made.tool_w_fail, {})).rejects.toThrow("no such word");
});

test("wrong input is answered with what is wrong, before anything is sent", async () => {
  const { made } = await tools();
  const schema = asSchema(made.tool_w_say?.inputSchema);
  expect(await schema.validate?.({ word: "a" })).toEqual({ success: true, value: { word: "a" } });
  expect(await schema.validate?.({ word: 1 })).toMatchObject({
    success: false,
    error: { message: "word must be a string, not a number. Correct it and call the tool again." },
  });
});

test("only what servers call harmless is done twice, and schemas are converted once", async () => {
  const { mcp, made } = await tools();
  expect(toolOptionsOf(made.tool_w_say).replay).toBe("safe");
  expect(toolOptionsOf(made.tool_w_fail).replay).toBe("never");
  const again = mcp.getAITools();
  expect(again.tool_w_say).not.toBe(made.tool_w_say);
  expect(again.tool_w_say?.inputSchema).toBe(made.tool_w_say?.inputSchema);
  expect(mcp.getAITools({ serverId: "other" })).toEqual({});
});

test("a server asks a person in the middle of a call, in the ways that were offered alone", async () => {
  const seen: unknown[] = [];
  const server = await startMcp("sessions", (mcp) => {
    mcp.registerTool("ask", {}, async ({ mcpReq }) => {
      const requestedSchema = { type: "object" as const, properties: { name: { type: "string" as const } } };
      const { action, content } = await mcpReq.elicitInput({ mode: "form", message: "Your name?", requestedSchema });
      seen.push(mcp.server.getClientCapabilities());
      return { content: [{ type: "text", text: `${action} ${JSON.stringify(content)}` }] };
    });
  });
  const mcp = await (await openMcp()).mcp();
  mcp.configureElicitationHandlers({
    form: ({ message }, serverId) => ({ action: "accept", content: { name: `${message} ${serverId}` } }),
  });
  await mcp.addServer("asks", server.url, { id: "a" });
  expect(await mcp.callTool({ serverId: "a", name: "ask" })).toMatchObject({
    content: [{ text: 'accept {"name":"Your name? a"}' }],
  });
  expect(seen[0]).not.toHaveProperty("sampling");
  expect(seen[0]).not.toHaveProperty("elicitation.url");
});
