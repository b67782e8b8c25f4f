import { fileURLToPath } from "node:url";
import { execFile } from "node:child_process";
import { Think } from "perdure";
import { type ScriptedModel, scriptedModel } from "perdure/testing";
import { tool } from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { databaseFile, withDatabase } from "../host/agent-files.ts";
import { openHost, tempDir } from "../host/open-host.ts";
import { bySocket } from "./desk.ts";

const program = fileURLToPath(new URL("../../src/cli/perdure.ts", import.meta.url));
const TOKEN = "t".repeat(32);

/** Runs the command as a process of its own. */
function perdure(args: readonly string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    const all = ["--conditions=perdure-source", "--disable-warning=ExperimentalWarning", program, ...args];
    const child = execFile(process.execPath, all, { env: { PATH: "", ...env } }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

function shopOf(model: ScriptedModel, prompt: string, description = "Looks up an order.") {
  return class Shop extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return model;
    }
    override getSystemPrompt() {
      return prompt;
    }
    override getTools() {
      const inputSchema = z.object({ order: z.string() });
      return { find: tool({ description, inputSchema, execute: ({ order }) => ({ order, at: "the harbour" }) }) };
    }
  };
}

const find = { toolCallId: "c1", toolName: "find", input: { order: "A-1" } };
const SHOP = "Shop/anna";
const at = (rest: string) => `agents/${encodeURIComponent(SHOP)}/${rest}`;

/** One turn of two steps, and one more, in a directory. */
async function talked(dir: string) {
  const model = scriptedModel([{ toolCalls: [find] }, "It is at the harbour.", "You are welcome."]);
  const Shop = shopOf(model, "You help with orders.");
  const host = await openHost({ agents: { Shop }, dir, admin: { token: TOKEN } });
  const shop = host.getAgentByName(Shop, "anna");
  const { requestId } = await shop.runTurn({ input: "Where is A-1?" });
  const { requestId: second } = await shop.runTurn({ input: "Thanks." });
  return { host, model, first: requestId, second };
}

test("the request of a past step is shown with proof, and so is what has changed since", async () => {
  const dir = tempDir();
  const { host, first, second } = await talked(dir);
  const turns = (await bySocket(dir, "GET", at("turns"))).body["items"];
  expect(turns).toMatchObject([
    { id: second, status: "completed" },
    { id: first, status: "completed" },
  ]);
  const turn = await bySocket(dir, "GET", at(`turns/${first}`));
  expect(turn.body).toMatchObject({
    id: first,
    calls: [
      { step: 0, status: "ok" },
      { step: 1, status: "ok" },
    ],
    tools: [{ call: "c1", tool: "find", status: "settled", attempts: 1 }],
  });
  const [, call] = turn.body["calls"] as { id: string }[];
  const place = at(`calls/${call?.id ?? ""}/request`);
  const shown = (await bySocket(dir, "GET", place)).body;
  expect(shown).toMatchObject({
    proof: "exact",
    changed: [],
    step: 1,
    instructions: expect.stringContaining("orders"),
  });
  expect(shown["tools"]).toMatchObject({ find: { description: "Looks up an order." } });
  expect(shown["messages"]).toMatchObject([{ role: "user" }, { role: "assistant" }, { role: "tool" }]);
  expect((await bySocket(dir, "GET", `${place}/now`)).body).toMatchObject({ proof: "exact" });
  expect(await bySocket(dir, "GET", at("turns/nope"))).toMatchObject({ status: 404 });
  expect(await bySocket(dir, "GET", at("calls/nope/request"))).toMatchObject({ status: 404 });
  await host.stop();

  // Another prompt and another description: what was sent is known all the same, and that the code says something else now.
  const Shop = shopOf(scriptedModel([]), "You sell boats.", "Finds.");
  const next = await openHost({ agents: { Shop }, dir });
  expect((await bySocket(dir, "GET", place)).body).toMatchObject({
    proof: "exact",
    instructions: expect.stringContaining("orders"),
  });
  const now = (await bySocket(dir, "GET", `${place}/now`)).body;
  expect(now).toMatchObject({ proof: "code-changed", instructions: expect.stringContaining("orders") });
  expect(now["changed"]).toEqual(["instructions", "tools.find.description"]);
  await next.stop();

  const file = databaseFile(dir, "anna");
  const proofs = async () => {
    const reader = await openHost({ agents: { Shop }, dir });
    const { body } = await bySocket(dir, "GET", place);
    await reader.stop();
    return [body["proof"], body["changed"]];
  };
  // What a tool returned is another thing now.
  withDatabase(file, (db) => db.exec("UPDATE perdure_message SET body = replace(body, 'harbour', 'airport')"));
  const [, changed] = await proofs();
  expect(await proofs()).toEqual(["edited", changed]);
  expect(changed).toEqual([expect.stringMatching(/^\w/)]);
  withDatabase(file, (db) => db.exec("UPDATE perdure_message SET body = replace(body, 'airport', 'harbour')"));
  expect(await proofs()).toEqual(["exact", []]);
  // The same rows, made into messages in another way: the digest and the second fingerprint of a place say so.
  withDatabase(file, (db) => {
    const change = db.prepare("UPDATE perdure_usage SET request_digest = 'x', request = ? WHERE id = ?");
    const read = db.prepare("SELECT request FROM perdure_usage WHERE id = ?").pluck();
    const request = read.get(call?.id) as string;
    change.run(request.replace(/(>0-\d+\.\w{4})\w{4}/, "$1zzzz"), call?.id);
  });
  expect(await proofs()).toEqual(["code-changed", changed]);
  withDatabase(file, (db) => db.exec("DELETE FROM perdure_frame WHERE kind = 'tools'"));
  expect(await proofs()).toEqual(["opaque", [expect.stringContaining("not stored any more")]]);
});

test("the command shows a request, and the difference to the call before, live, by URL and at rest", async () => {
  const dir = tempDir();
  const { host, first, second } = await talked(dir);
  const live = await perdure(["request", SHOP, first, "1", "--json", "--dir", dir]);
  expect(live).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(live.out)).toMatchObject({ proof: "exact", step: 1 });
  const far = await perdure(["request", SHOP, first, "1", "--json", "--url", host.url], { PERDURE_TOKEN: TOKEN });
  expect(far).toEqual(live);
  const diff = await perdure(["request", SHOP, second, "--diff", "--json", "--dir", dir]);
  expect(JSON.parse(diff.out)).toMatchObject({ common: 3, removed: 0, added: 2, differences: [], extends: true });
  const code = await perdure(["request", SHOP, first, "--now", "--dir", dir]);
  expect(code).toMatchObject({ code: 0, out: expect.stringMatching(/proof +exact/) });
  await host.stop();
  expect(await perdure(["request", SHOP, first, "1", "--json", "--dir", dir])).toEqual(live);
  expect(await perdure(["request", SHOP, first, "--now", "--dir", dir])).toMatchObject({ code: 3, out: "" });
  const page = await perdure(["request", SHOP, first, "0", "--dir", dir]);
  expect(page.out).toContain("You help with orders.");
  expect(page.out).toContain("Where is A-1?");
  const none = await perdure(["request", SHOP, first, "7", "--dir", dir]);
  expect(none).toMatchObject({ code: 1, err: expect.stringContaining("the steps 0, 1") });
  const alone = await perdure(["request", SHOP, first, "0", "--diff", "--dir", dir]);
  expect(alone).toMatchObject({ code: 1, err: expect.stringContaining("first call") });
  expect(await perdure(["request", SHOP])).toMatchObject({
    code: 2,
    err: expect.stringContaining("request <agent> <turn>"),
  });
});
