// The official conformance suite against our client.
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { drive, type Scenario } from "./conformance-driver.ts";
import { listen } from "./web-server.ts";

const cli = join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/conformance/dist/index.js");
const forward = join(import.meta.dirname, "conformance-forward.mjs");

/** What is not judged here, and why. */
const left = {
  "sse-retry": "it judges by the clock, which a busy machine fails",
  "auth/cross-app-access-complete-flow": "it is an extension for identity providers of companies, which is not offered",
};

/** Groups of the suite, and scenarios by themselves. */
const suites = ["metadata", "sep-835", "backcompat", "draft"];
const scenarios = [
  "initialize",
  "tools_call",
  "elicitation-sep1034-client-defaults",
  "auth/basic-cimd",
  "auth/token-endpoint-auth-basic",
  "auth/token-endpoint-auth-post",
  "auth/token-endpoint-auth-none",
  "auth/pre-registration",
  "auth/client-credentials-jwt",
  "auth/client-credentials-basic",
];

test("the client passes the conformance suite", { timeout: 120_000 }, async () => {
  const driven = new Set<string>();
  const web = await listen(async (request) => {
    const scenario = (await request.json()) as Scenario;
    driven.add(scenario.scenario);
    try {
      await drive(scenario);
      return new Response("done");
    } catch (thrown) {
      // The suite knows which scenarios have to fail.
      return new Response(String(thrown), { status: 500 });
    }
  });
  onTestFinished(() => web.stop());
  const command = `${process.execPath} ${forward} ${web.port}`;
  for (const suite of suites) {
    const output = await run(["client", "--command", command, "--suite", suite, "--verbose"]);
    expect(output).toMatch(/Total: \d+ passed, 0 failed, 0 warnings/);
  }
  for (const scenario of scenarios) {
    const output = await run(["client", "--command", command, "--scenario", scenario]);
    expect(output, scenario).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/);
  }
  const listed = await run(["list"]);
  const all = [...listed.slice(listed.indexOf("Client scenarios")).matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name);
  expect([...driven, ...Object.keys(left)].toSorted()).toEqual(all.toSorted());
});

function run(args: readonly string[]): Promise<string> {
  const cwd = mkdtempSync(join(tmpdir(), "mcp-conformance-"));
  return new Promise((resolve) => {
    const options = { cwd, timeout: 30_000, maxBuffer: 100_000_000 };
    execFile(process.execPath, [cli, ...args], options, (_error, stdout, stderr) => resolve(`${stderr}${stdout}`));
  });
}
