import { expect, test } from "vitest";
import { RESPONSE, textIn, TRANSCRIPT, user } from "./client.ts";
import { openChat, type TestChat } from "./harness.ts";
import { readEvents } from "./events.ts";

function ask(chat: TestChat, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`${chat.host.url}/agents/talk/one/chat/inbox${path}`, {
    method,
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}
async function listed(chat: TestChat): Promise<[string, string][]> {
  const { items } = (await (await ask(chat, "GET", "")).json()) as {
    items: { requestId: string; messages: Parameters<typeof textIn>[0][] }[];
  };
  return items.map(({ requestId, messages }) => [requestId, messages.map(textIn).join(" ")]);
}

/** A turn that runs, two that wait, and two tabs. */
async function busy() {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = (await chat.stage()).say("one");
  await a.said("r1", "one");
  a.request("r2", [user("u2")]);
  a.request("r3", [user("u2"), user("u3")]);
  await a.flushed();
  return { chat, a, b, stage };
}

test("listed, edited, moved and withdrawn over HTTP; every tab shows the same", async () => {
  const { chat, a, b, stage } = await busy();
  expect(await listed(chat)).toEqual([
    ["r2", "u2"],
    ["r3", "u3"],
  ]);
  const edited = await ask(chat, "PATCH", "/r3", { text: "changed", before: "r2" });
  expect([edited.status, await listed(chat)]).toEqual([
    200,
    [
      ["r3", "changed"],
      ["r2", "u2"],
    ],
  ]);
  for (const client of [a, b]) {
    await client.frame(
      ({ type, messages }) => type === TRANSCRIPT && messages?.map(textIn).join(" ") === "u1 one changed u2",
    );
  }
  const taken = await ask(chat, "DELETE", "/r2");
  expect([taken.status, await taken.json()]).toEqual([
    200,
    { requestId: "r2", status: "withdrawn", messages: [user("u2")] },
  ]);
  for (const client of [a, b]) {
    const end = await client.done("r2");
    expect(end).toEqual({ type: RESPONSE, id: "r2", body: "", done: true, outcome: "skipped", messageIds: ["u2"] });
    expect(client.ofType(TRANSCRIPT).at(-1)?.messages?.map(textIn)).toEqual(["u1", "one", "changed"]);
  }
  stage.end();
  const second = await chat.stage();
  expect(second.messages.map(textIn)).toEqual(["u1", "one", "changed"]);
  second.say("two").end();
  await chat.stable();
  expect([chat.calls, (await chat.stored()).map(textIn)]).toEqual([2, ["u1", "one", "changed", "two"]]);
  expect(await listed(chat)).toEqual([]);
});

test("parts and the end of the list", async () => {
  const { chat, stage } = await busy();
  const parts = [{ type: "file", mediaType: "text/plain", url: "data:text/plain,x" }];
  expect((await ask(chat, "PATCH", "/r2", { parts })).status).toBe(200);
  expect((await ask(chat, "PATCH", "/r2", { before: null })).status).toBe(200);
  expect((await listed(chat)).map(([id]) => id)).toEqual(["r3", "r2"]);
  expect((await chat.stored()).at(-1)?.parts).toEqual(parts);
  const one = await ask(chat, "GET", "/r2");
  expect(await one.json()).toMatchObject({ requestId: "r2", status: "waiting", item: { position: 1, messages: [{}] } });
  stage.end();
  (await chat.stage()).end();
  (await chat.stage()).end();
});

test("404 for what does not wait, 409 for what has started, and nothing has changed", async () => {
  const { chat, stage } = await busy();
  const before = await listed(chat);
  const wishes: [string, string, unknown][] = [
    ["PATCH", "/ID", { text: "x" }],
    ["PATCH", "/ID", { before: null }],
    ["PATCH", "/r3", { text: "x", before: "ID" }],
    ["DELETE", "/ID", undefined],
  ];
  for (const [id, status, code] of [
    ["nobody", 404, "not_found"],
    ["r1", 409, "bad_state"],
  ] as const) {
    for (const [method, path, body] of wishes) {
      const sent = body === undefined ? undefined : JSON.stringify(body).replace("ID", id);
      const response = await ask(chat, method, path.replace("ID", id), sent);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect([response.status, error.code]).toEqual([status, code]);
      expect(error.message).toContain(id);
    }
  }
  expect((await ask(chat, "GET", "/nobody")).status).toBe(404);
  expect(await (await ask(chat, "GET", "/r1")).json()).toEqual({ requestId: "r1", status: "running" });
  expect(await listed(chat)).toEqual(before);
  stage.end();
  (await chat.stage()).end();
  (await chat.stage()).end();
});

test("400 for what is not understood, 405 for what is no method here", async () => {
  const { chat, stage } = await busy();
  const before = await listed(chat);
  const bad: unknown[] = [
    "",
    "{",
    "[]",
    "7",
    {},
    { text: 7 },
    { parts: "x" },
    { parts: [] },
    { parts: [{ type: "tool-x" }] },
    { text: "x", parts: [] },
    { before: 7 },
    { text: 7, before: "r2" },
  ];
  for (const body of bad) {
    const response = await ask(chat, "PATCH", "/r3", body);
    const { error } = (await response.json()) as { error: { code: string } };
    expect([body, response.status, error.code]).toEqual([body, 400, "bad_input"]);
  }
  for (const [method, path] of [
    ["POST", ""],
    ["DELETE", ""],
    ["PUT", "/r2"],
    ["POST", "/r2"],
  ] as const)
    expect([method, path, (await ask(chat, method, path, {})).status]).toEqual([method, path, 405]);
  expect((await ask(chat, "GET", "/r2/other")).status).toBe(404);
  expect(await listed(chat)).toEqual(before);
  stage.end();
  (await chat.stage()).end();
  (await chat.stage()).end();
});

test("an id with signs that paths do not have", async () => {
  const { chat, a, stage } = await busy();
  a.request("a/b c%", [user("u4")]);
  await a.flushed();
  expect((await ask(chat, "DELETE", `/${encodeURIComponent("a/b c%")}`)).status).toBe(200);
  expect((await listed(chat)).map(([id]) => id)).toEqual(["r2", "r3"]);
  stage.end();
  (await chat.stage()).end();
  (await chat.stage()).end();
});

test("who follows a turn that is withdrawn hears of its end, and what waits survives a restart in its order", async () => {
  const { chat } = await busy();
  const response = await fetch(`${chat.host.url}/agents/talk/one/chat/r2/stream`);
  const reader = readEvents(response);
  await ask(chat, "DELETE", "/r2");
  expect(await reader.outcome()).toMatchObject({ requestId: "r2", outcome: "skipped" });
  await fetch(`${chat.host.url}/agents/talk/one/chat`, {
    method: "POST",
    body: JSON.stringify({ message: user("u4"), requestId: "r4" }),
  });
  await ask(chat, "PATCH", "/r4", { before: "r3" });
  await chat.restart();
  expect(await listed(chat)).toEqual([
    ["r4", "u4"],
    ["r3", "u3"],
  ]);
  (await chat.stage()).say("on").end();
  for (const id of ["r4", "r3"]) {
    const stage = await chat.stage();
    expect(stage.options.requestId).toBe(id);
    stage.end();
  }
});
