// Connections that break, catalogues that change, calls that are stopped.
import type { McpServer } from "@modelcontextprotocol/server";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { openMcp } from "./agent.ts";
import { startMcp } from "./mcp-servers.ts";
import { PATIENCE_MS } from "../support/until.ts";

test("a server that has forgotten its sessions is connected again, and the call is made", async () => {
  const server = await startMcp("sessions", (mcp) => {
    mcp.registerTool("write", {}, () => ({ content: [{ type: "text", text: "written" }] }));
  });
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const { id: serverId } = await mcp.addServer("one", server.url);
  await server.restart();
  const calls = Array.from({ length: 3 }, () => mcp.callTool({ serverId, name: "write" }));
  expect(await Promise.all(calls)).toMatchObject(Array.from({ length: 3 }, () => ({ content: [{ text: "written" }] })));
  expect(mcp.listServers()).toMatchObject([{ state: "ready" }]);
});

test("a call that was under way is made again only if the server says that this does no harm", async () => {
  const runs = { look: 0, write: 0 };
  const cut = { now: () => {} };
  const build = (mcp: McpServer) => {
    for (const name of ["look", "write"] as const) {
      mcp.registerTool(name, { annotations: { readOnlyHint: name === "look" } }, async () => {
        runs[name]++;
        if (runs[name] === 1) {
          cut.now();
          await new Promise(() => {});
        }
        return { content: [{ type: "text", text: name }] };
      });
    }
  };
  const server = await startMcp("sessions", build);
  cut.now = () => void server.restart();
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const { id: serverId } = await mcp.addServer("one", server.url);
  expect(await mcp.callTool({ serverId, name: "look" })).toMatchObject({ content: [{ text: "look" }] });
  expect(runs.look).toBe(2);
  await expect(mcp.callTool({ serverId, name: "write" })).rejects.toMatchObject({
    code: "disconnected",
    message: expect.stringContaining("The call may have taken effect"),
  });
  expect(runs.write).toBe(1);
  expect(await mcp.callTool({ serverId, name: "write" })).toMatchObject({ content: [{ text: "write" }] });
});

test.each(["modern", "sessions", "sse"] as const)(
  "a stopped call is cancelled at the server (%s)",
  async (generation) => {
    const cancelled = Promise.withResolvers<string>();
    const server = await startMcp(generation, (mcp) => {
      mcp.registerTool("wait", {}, async ({ mcpReq }) => {
        mcpReq.signal.addEventListener("abort", () => cancelled.resolve("cancelled"));
        stop.abort(new Error("Stopped by a person."));
        return new Promise(() => {});
      });
    });
    const stop = new AbortController();
    const agent = await openMcp();
    const mcp = await agent.mcp();
    const { id: serverId } = await mcp.addServer("one", server.url);
    const call = mcp.callTool({ serverId, name: "wait" }, { signal: stop.signal });
    await expect(call).rejects.toThrow("Stopped by a person.");
    expect(await cancelled.promise).toBe("cancelled");
    expect(mcp.listServers()).toMatchObject([{ state: "ready" }]);
  },
);

test("a call that takes too long fails, and the connection stays", async () => {
  const server = await startMcp("sessions", (mcp) => {
    mcp.registerTool("wait", {}, () => new Promise(() => {}));
    mcp.registerTool("go", {}, () => ({ content: [] }));
  });
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const { id: serverId } = await mcp.addServer("one", server.url, { callTimeoutMs: 50 });
  await expect(mcp.callTool({ serverId, name: "wait" })).rejects.toThrow(/timed out/);
  expect(await mcp.callTool({ serverId, name: "go" }, { timeoutMs: 5_000 })).toEqual({ content: [] });
});

test.each(["sessions", "sse"] as const)("a catalogue that changes is read again (%s)", async (generation) => {
  const server = await startMcp(generation, (mcp) => {
    mcp.registerTool("first", {}, () => ({ content: [] }));
  });
  const agent = await openMcp();
  const mcp = await agent.mcp();
  await mcp.addServer("one", server.url, { id: "one" });
  const before = agent.told();
  const schema = z.object({ a: z.string() });
  server.live.at(-1)?.registerTool("second", { inputSchema: schema }, () => ({ content: [] }));
  await vi.waitFor(
    () => expect(Object.keys(mcp.getAITools())).toEqual(["tool_one_first", "tool_one_second"]),
    PATIENCE_MS,
  );
  expect(agent.told()).toBeGreaterThan(before);
});

test("a catalogue of the newest generation that changes is read again", async () => {
  const names = ["first"];
  const server = await startMcp("modern", (mcp) => {
    for (const name of names) mcp.registerTool(name, {}, () => ({ content: [] }));
  });
  const mcp = await (await openMcp()).mcp();
  await mcp.addServer("one", server.url);
  names.push("second");
  server.changed();
  await vi.waitFor(() => expect(mcp.listTools().map(({ name }) => name)).toEqual(names), PATIENCE_MS);
});
