import { request as ask } from "node:http";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Agent } from "perdure";
import { expect, test } from "vitest";
import { adminSocketOf } from "../../src/host/node/admin-place.ts";
import { eventually, openHost, tempDir } from "../host/open-host.ts";
import { bySocket, deskOf, paid, SECRET_KEY, V1 } from "./desk.ts";

const PIECE = 64 * 1024;

type Item = Record<string, unknown>;
const itemsOf = (body: Record<string, unknown>) => body["items"] as Item[];

test("the socket is for its user alone, and gone when the host has stopped", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Note: class Note extends Agent {} }, dir });
  expect(statSync(join(dir, "admin.sock")).mode & 0o777).toBe(0o600);
  expect(existsSync(join(dir, ".admin"))).toBe(false);
  const { status, body } = await bySocket(dir, "GET", "host");
  expect(status).toBe(200);
  expect(body).toMatchObject({ running: true, ok: true, live: 0, classes: ["Note"], pid: process.pid });
  await host.stop();
  expect(existsSync(join(dir, "admin.sock"))).toBe(false);
});

test("what a killed host left at the socket's place is no hindrance, nor is a long name of the directory", async () => {
  const dir = join(tempDir(), "x".repeat(120));
  mkdirSync(dir);
  const { Desk } = deskOf([]);
  const first = await openHost({ agents: { Desk }, dir });
  const socket = adminSocketOf(dir) ?? "";
  expect(socket.startsWith(dir)).toBe(false);
  expect(statSync(join(socket, "..")).mode & 0o777).toBe(0o700);
  await first.stop();

  const short = tempDir();
  mkdirSync(join(short, ".admin"));
  await openHost({ agents: { Desk }, dir: short });
  expect((await bySocket(short, "GET", "host")).status).toBe(200);
});

test("agents are listed, and one is shown with what was said, while nobody wakes", async () => {
  const dir = tempDir();
  const { Desk } = deskOf(["Good day."]);
  const first = await openHost({ agents: { Desk }, dir });
  await first.getAgentByName(Desk, "anna").runTurn({ input: "Hello, my key is " + SECRET_KEY });
  await first.stop();

  const host = await openHost({ agents: { Desk }, dir });
  const agents = await bySocket(dir, "GET", "agents");
  expect(itemsOf(agents.body)).toMatchObject([
    { id: "Desk/anna", awake: false, running: 0, waiting: 0, questions: 0, last: "completed", calls: 1 },
  ]);
  const one = await bySocket(dir, "GET", `agents/${encodeURIComponent("Desk/anna")}`);
  expect(one.body).toMatchObject({ sessions: [{ id: "main", current: true }], turns: [{ status: "completed" }] });
  const said = await bySocket(dir, "GET", `agents/${encodeURIComponent("Desk/anna")}/messages`);
  expect(JSON.stringify(said.body)).toContain("Good day.");
  expect(JSON.stringify(said.body)).toContain("my key is •••");
  expect(itemsOf((await bySocket(dir, "GET", "cost?by=purpose")).body)).toMatchObject([{ key: "turn", calls: 1 }]);
  expect(itemsOf((await bySocket(dir, "GET", "check")).body)).toEqual([
    { id: "Desk/anna", ok: true, schema: expect.any(Number) },
  ]);
  expect(host.status()).toMatchObject({ live: 0, kept: 0 });
});

test("of large messages so many are shown as may be read in one go, the last ones", async () => {
  const dir = tempDir();
  const { Desk } = deskOf(() => "Good day.");
  const host = await openHost({ agents: { Desk }, dir });
  const parts = [{ type: "text" as const, text: "x".repeat(1_200_000) }];
  const said = ["a", "b", "c"].map((id) => ({ id, role: "user" as const, parts }));
  await host.getAgentByName(Desk, "anna").persistMessages(said);
  const idsOf = async (limit: number) => {
    const { body } = await bySocket(dir, "GET", `agents/Desk%2Fanna/messages?limit=${limit}`);
    return [(body["messages"] as { id: string }[]).map(({ id }) => id), body["more"]];
  };
  expect(await idsOf(99)).toEqual([["c"], true]);
  expect(await idsOf(1)).toEqual([["c"], undefined]);
});

test("a question is answered once, by name, and both tries are in the audit", async () => {
  paid.length = 0;
  const dir = tempDir();
  const { Desk } = deskOf([
    { toolCalls: [{ toolCallId: "c1", toolName: "pay", input: { amount: 7, apiKey: SECRET_KEY } }] },
    "Done.",
  ]);
  const host = await openHost({ agents: { Desk }, dir });
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Pay 7." });
  const asked = itemsOf((await bySocket(dir, "GET", "approvals")).body);
  expect(asked).toMatchObject([{ agent: "Desk/anna", call: "c1", tool: "pay", input: { amount: 7, apiKey: "•••" } }]);

  const place = `agents/${encodeURIComponent("Desk/anna")}/approvals/c1`;
  expect(await bySocket(dir, "POST", place, { approved: true })).toEqual({ status: 200, body: { changed: true } });
  await eventually(() => paid.length > 0, "what was approved");
  const again = await bySocket(dir, "POST", place, { approved: false });
  expect(again).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  expect(paid).toEqual([7]);
  expect(itemsOf((await bySocket(dir, "GET", "audit")).body)).toMatchObject([
    { act: "admin.answer", via: "socket", agent: "Desk/anna", detail: "c1 denied", outcome: "conflict" },
    { act: "admin.answer", via: "socket", agent: "Desk/anna", detail: "c1 approved", outcome: "ok" },
  ]);
  const approval = await host.getAgentByName(Desk, "anna").getToolApproval("c1");
  expect(approval).toMatchObject({ by: "operator" });
});

test("an agent is deleted with all that it has, awake or asleep, and its name is free again", async () => {
  const dir = tempDir();
  const { Desk } = deskOf(["One.", "Two."]);
  const host = await openHost({ agents: { Desk }, dir });
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Hello" });
  const place = `agents/${encodeURIComponent("Desk/anna")}`;
  expect((await bySocket(dir, "DELETE", place)).body).toEqual({ changed: true });
  expect(host.listAgents()).toEqual([]);
  expect((await bySocket(dir, "GET", place)).status).toBe(404);
  await host.getAgentByName(Desk, "anna").runTurn({ input: "Again" });
  expect(itemsOf((await bySocket(dir, "GET", "agents")).body)).toMatchObject([{ id: "Desk/anna", calls: 1 }]);
});

test("a conversation is had by the socket, and the agent's own rule is asked", async () => {
  const dir = tempDir();
  const { Desk } = deskOf(["Good day."]);
  class Shut extends Desk {
    override authorize() {
      return false;
    }
  }
  await openHost({ agents: { Desk, Shut }, dir });
  const said = await bySocket(dir, "POST", `agents/${encodeURIComponent("Desk/new")}/chat`, { message: "Hello" });
  expect(String(said.body["text"])).toContain("Good day.");
  const shut = await bySocket(dir, "POST", `agents/${encodeURIComponent("Shut/new")}/chat`, { message: "Hello" });
  expect(shut).toMatchObject({ status: 403, body: { error: { code: "not_allowed" } } });
  const empty = await bySocket(dir, "POST", `agents/${encodeURIComponent("Desk/new")}/chat`, {});
  expect(empty).toMatchObject({ status: 400, body: { error: { code: "bad_input" } } });
});

test("a body that never ends and does not say how long it is is refused while it comes", async () => {
  const dir = tempDir();
  const { Desk } = deskOf([]);
  await openHost({ agents: { Desk }, dir });
  const path = `${V1}/agents/${encodeURIComponent("Desk/new")}/chat`;
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const asked = ask({ socketPath: join(dir, "admin.sock"), method: "POST", path, headers: { host: "localhost" } });
    const piece = "x".repeat(PIECE);
    const send = () => {
      // A host that read on would be told more and more.
      if (!asked.destroyed) asked.write(piece, () => setImmediate(send));
    };
    asked.on("response", (response) => {
      asked.destroy();
      resolve(response.statusCode);
    });
    asked.on("error", reject);
    send();
  });
  expect(status).toBe(413);
});
