import { type Caller, Connection } from "perdure";
import type { SessionOp } from "perdure/chat";
import { expect, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import { openVault, type Vault } from "./vault.ts";

const IN_OTHER = "&_session=other";

/** Nobody but the operator may be in `other`. */
const mayAttach = (_caller: Caller, op: SessionOp) => op.op !== "attach" || op.session !== "other";

const json = async (response: Response) => (await response.json()) as Record<string, unknown>;
const look = async (vault: Vault, path: string, query?: string) =>
  json(await vault.fetch("editor", "GET", path, undefined, query));

test("over HTTP `_session` chooses the conversation: its messages, turns and inbox, and nothing of others", async () => {
  const vault = await openVault();
  expect(JSON.stringify(await look(vault, "get-messages", IN_OTHER))).toContain("secret-other");
  expect(JSON.stringify(await look(vault, "get-messages"))).not.toContain("-other");
  // Turns of one agent run one at a time: that of the other session waits.
  expect(await look(vault, "chat")).toEqual({ running: "running", waiting: ["waiting"] });
  expect(await look(vault, "chat", IN_OTHER)).toEqual({ running: null, waiting: ["running-other", "waiting-other"] });
  const items = (list: Record<string, unknown>) =>
    (list.items as { requestId: string; position: number }[]).map(({ requestId, position }) => [requestId, position]);
  expect(items(await look(vault, "chat/inbox"))).toEqual([["waiting", 0]]);
  expect(items(await look(vault, "chat/inbox", IN_OTHER))).toEqual([
    ["running-other", 0],
    ["waiting-other", 1],
  ]);
});

const REQUESTS = [
  { name: "a cancel", method: "POST", path: "chat/waiting-other/cancel" },
  { name: "an approval", method: "POST", path: "chat/tools/yes-other", body: { approved: true } },
  { name: "a tool's output", method: "POST", path: "chat/tools/run-other", body: { output: "forged" } },
  { name: "a look at what waits", method: "GET", path: "chat/inbox/waiting-other" },
  { name: "an edit", method: "PATCH", path: "chat/inbox/waiting-other", body: { text: "forged" } },
  { name: "a move", method: "PATCH", path: "chat/inbox/waiting", body: { before: "waiting-other" } },
  { name: "a withdrawal", method: "DELETE", path: "chat/inbox/waiting-other" },
] as const;

test.each(REQUESTS)("over HTTP $name with an id of another session does nothing there", async (one) => {
  const vault = await openVault();
  const before = await vault.dump();
  const body = "body" in one ? one.body : undefined;
  const response = await vault.fetch("editor", one.method, one.path, body);
  const told = await response.text();
  expect(await vault.dump()).toEqual(before);
  expect(told).not.toContain("secret");
  // As if it were not there.
  const unknown = await vault.fetch("editor", one.method, one.path.replace("-other", "-none"), replaced(body));
  expect([response.status, told.replaceAll("-other", "-none")]).toEqual([unknown.status, await unknown.text()]);
});

test("over HTTP a request under the id of another session's request is refused, and tells nothing of it", async () => {
  const vault = await openVault();
  const before = await vault.dump();
  const response = await vault.fetch("editor", "POST", "chat", { requestId: "waiting-other", message: "x" });
  expect([response.status, await json(response)]).toMatchObject([409, { error: { code: "conflict" } }]);
  expect(await vault.dump()).toEqual(before);
});

function replaced(body: object | undefined): unknown {
  return body === undefined ? undefined : JSON.parse(JSON.stringify(body).replace("-other", "-none"));
}

test("over HTTP the stream of a turn of another session is that of no turn", async () => {
  const vault = await openVault();
  await vault.fetch("editor", "POST", "chat/running/cancel");
  await vault.fetch("editor", "POST", "chat/waiting/cancel");
  await expect.poll(() => look(vault, "chat", IN_OTHER)).toMatchObject({ running: "running-other" });
  expect((await vault.fetch("editor", "GET", "chat/running-other/stream")).status).toBe(204);
  const own = await vault.fetch("editor", "GET", "chat/running-other/stream", undefined, IN_OTHER);
  expect(own.status).toBe(200);
  await own.body?.cancel();
});

test("over HTTP a clear forgets the caller's conversation, whatever runs", async () => {
  const vault = await openVault();
  expect(await json(await vault.fetch("editor", "DELETE", "chat", undefined, IN_OTHER))).toEqual({ cleared: true });
  expect(await look(vault, "get-messages", IN_OTHER)).toEqual([]);
  expect(JSON.stringify(await look(vault, "get-messages"))).toContain("secret");
});

const WAYS_IN = [
  ["GET", "get-messages"],
  ["GET", "chat"],
  ["POST", "chat", { message: "forged", requestId: "r9" }],
  ["DELETE", "chat"],
  ["GET", "chat/running-other/stream"],
  ["POST", "chat/running-other/cancel"],
  ["POST", "chat/tools/yes-other", { approved: true }],
  ["GET", "chat/inbox"],
  ["PATCH", "chat/inbox/waiting-other", { text: "forged" }],
  ["DELETE", "chat/inbox/waiting-other"],
  ["GET", `files/${"a".repeat(64)}`],
] as const;

test.each(WAYS_IN)(
  "over HTTP who may not be in a session is not let in: %s %s",
  async (method, path, body?: object) => {
    const asked: Caller[] = [];
    const vault = await openVault({
      allowSessionOp: (caller, op) => {
        asked.push(caller);
        return mayAttach(caller, op) || caller.identity?.id === "editor";
      },
    });
    asked.length = 0;
    const before = await vault.dump();
    const response = await vault.fetch("guest", method, path, body, IN_OTHER);
    expect(response.status).toBe(403);
    expect(await vault.dump()).toEqual(before);
    // The hook sees who asks, whether there is a connection or not.
    expect([asked[0]?.identity?.id, asked[0] instanceof Connection]).toEqual(["guest", false]);
    const unknown = await vault.fetch("editor", "GET", "chat", undefined, "&_session=none");
    expect([unknown.status, await json(unknown)]).toMatchObject([404, { error: { code: "not_found" } }]);
  },
);

test("a socket's cancel reaches the turns of its own session alone", async () => {
  const vault = await openVault();
  const client = await vault.connect("editor");
  const before = await vault.dump();
  client.send(JSON.stringify({ type: "cf_agent_chat_request_cancel", id: "running-other" }));
  await client.call("look");
  expect(await vault.dump()).toEqual(before);
  const inside = await vault.connect("editor", IN_OTHER);
  inside.send(JSON.stringify({ type: "cf_agent_chat_request_cancel", id: "running-other" }));
  await expect.poll(() => look(vault, "chat", IN_OTHER)).toEqual({ running: null, waiting: ["waiting-other"] });
});

test("a socket's request under the id of another session's request is refused, and tells nothing of it", async () => {
  const vault = await openVault();
  const client = await vault.connect("editor");
  const text = { id: "u9", role: "user", parts: [{ type: "text", text: "mine" }] };
  const body = JSON.stringify({ messages: [text], trigger: "submit-message" });
  const before = await vault.dump();
  client.send(
    JSON.stringify({ type: "cf_agent_use_chat_request", id: "waiting-other", init: { method: "POST", body } }),
  );
  const end = await client.frame(({ id }) => id === "waiting-other");
  expect(end).toMatchObject({ done: true, error: true });
  expect(await vault.dump()).toEqual(before);
  expect(vault.takeErrors()).toEqual([]);
});

test("the end of a turn is told to who missed it, and not to somebody in another session who comes under the same id", async () => {
  const vault = await openVault();
  for (const id of ["x", "y"]) {
    const client = await vault.connect("editor", `&_pk=${id}`);
    client.ws.terminate();
  }
  const agent = await vault.agent();
  await eventually(() => [...agent.getConnections()].length === 0, "both to be gone");
  await vault.fetch("editor", "POST", "chat/running/cancel");
  const told = (frames: readonly Record<string, unknown>[]) =>
    frames.some(({ type, id }) => type === "cf_agent_use_chat_response" && id === "running");
  const other = await vault.connect("editor", `&_pk=x${IN_OTHER}`);
  expect(await other.call("look")).toBe("seen");
  expect(told(other.frames)).toBe(false);
  const back = await vault.connect("editor", "&_pk=y");
  expect(await back.call("look")).toBe("seen");
  expect(told(back.frames)).toBe(true);
});
