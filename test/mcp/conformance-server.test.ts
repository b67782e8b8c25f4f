// The official conformance suite against a server behind our handler: every active scenario.
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createMcpHandler } from "../../src/toolbox/mcp/server/handler.ts";
import { everything } from "./conformance-everything.ts";
import { listen } from "./web-server.ts";

const cli = join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/conformance/dist/index.js");

test("an MCP server with sessions passes the conformance suite", { timeout: 120_000 }, async () => {
  const handler = createMcpHandler(everything, { sessions: { retryMs: 50 } });
  const web = await listen(handler);
  onTestFinished(async () => {
    await handler.close();
    await web.stop();
  });
  const output = await run(["server", "--url", `${web.origin}/mcp`, "--suite", "active"]);
  expect(output).not.toMatch(/✗|FAIL/);
  expect(output).toMatch(/Total: \d+ passed, 0 failed/);
});

function run(args: readonly string[]): Promise<string> {
  const cwd = mkdtempSync(join(tmpdir(), "mcp-conformance-"));
  return new Promise((resolve) => {
    execFile(process.execPath, [cli, ...args], { cwd, timeout: 110_000 }, (_error, stdout, stderr) => {
      resolve(`${stdout}${stderr}`);
    });
  });
}
