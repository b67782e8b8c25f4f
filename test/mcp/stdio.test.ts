// Programs as MCP servers: real child processes.
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openMcp } from "./agent.ts";
import { PATIENCE_MS } from "../support/until.ts";

const program = join(import.meta.dirname, "stdio-program.ts");
const once = { retry: { maxAttempts: 1 }, protocol: "legacy" } as const;

test("a program is started, used, started again when it died, and ended with its agent", async () => {
  vi.stubEnv("SECRET_OF_THE_HOST", "must not be seen");
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const server = { command: process.execPath, args: [program], env: { GIVEN: "yes" } };
  const { id: serverId } = await mcp.addStdioServer("tool", server, once);
  const read = async (name: string, given = {}) => {
    const { content } = await mcp.callTool({ serverId, name, arguments: given });
    return content[0]?.text;
  };
  expect(mcp.listServers()).toMatchObject([{ url: "stdio:node", state: "ready" }]);
  expect(await read("env", { name: "GIVEN" })).toBe("yes");
  expect(await read("env", { name: "SECRET_OF_THE_HOST" })).toBe("(none)");
  const first = Number(await read("pid"));
  await expect(mcp.callTool({ serverId, name: "die" })).rejects.toMatchObject({ code: "disconnected" });
  const second = Number(await read("pid"));
  expect(second).not.toBe(first);
  await agent.restart();
  await vi.waitFor(() => expect(() => process.kill(second, 0)).toThrow("ESRCH"), PATIENCE_MS);
  const next = await agent.mcp();
  await next.waitForConnections();
  expect(next.listServers()).toMatchObject([{ id: serverId, state: "ready" }]);
  expect(await next.addStdioServer("tool", server, once)).toEqual({ id: serverId, state: "ready" });
});

test("the last words of a program that cannot start are told", async () => {
  const mcp = await (await openMcp()).mcp();
  const broken = { command: process.execPath, args: [program, "broken"] };
  await expect(mcp.addStdioServer("broken", broken, once)).rejects.toThrow(/no licence file/);
  await expect(mcp.addStdioServer("absent", { command: "no-such-program-at-all" }, once)).rejects.toMatchObject({
    code: "disconnected",
  });
});

test("what a user sends as a URL never starts a program", async () => {
  const mcp = await (await openMcp()).mcp();
  const sent: unknown = { command: "touch", args: ["/tmp/x"] };
  await expect(mcp.addServer("bad", sent as string)).rejects.toMatchObject({ code: "bad_input" });
  expect(mcp.listServers()).toEqual([]);
});
