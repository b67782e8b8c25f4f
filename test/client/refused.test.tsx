import { openPage } from "./page.tsx";
import { expect, test, vi } from "vitest";
import { AgentChat, AgentClient, AgentSessions, SocketChatTransport } from "../../src/client/index.ts";
import { startTalk, talk } from "../chat-client/talk.ts";
import { eventually, startHost } from "../clients/harness.ts";
import { connect } from "./harness.ts";
import { chatOver } from "./talk-client.ts";

/** A host whose hook lets nobody in until `open` is called. */
async function startLocked() {
  const { Talk } = talk({ script: () => "Hello." });
  let locked = true;
  const onBeforeConnect = () => (locked ? new Response("Log in first.", { status: 401 }) : undefined);
  const host = await startHost({ agents: { Talk }, onBeforeConnect });
  return { host, unlock: () => void (locked = false) };
}

const REFUSED = { name: "AgentConnectionError", code: 4401, status: 401, reason: "Log in first." };

test("a client that a hook refuses hears what the hook said: ready and every call reject", async () => {
  const { host } = await startLocked();
  const { client, line } = connect<unknown>(host, { agent: "Talk" });
  const early = expect(client.call("add")).rejects.toMatchObject({ code: "disconnected", cause: REFUSED });
  await expect(client.ready).rejects.toMatchObject(REFUSED);
  await early;
  expect(client.connectionError?.message).toContain("4401: Log in first.");
  await expect(client.ready).rejects.toMatchObject(REFUSED);
  await expect(client.call("add")).rejects.toMatchObject({ code: "disconnected", cause: REFUSED });
  await expect(client.callStream("add").result).rejects.toMatchObject({ code: "disconnected", cause: REFUSED });
  expect(line.opens).toBe(1);
});

test("a client with the wrong class name hears that there is no such class", async () => {
  const { host } = await startLocked();
  const { client } = connect<unknown>(host, { agent: "Tolk" });
  await expect(client.ready).rejects.toMatchObject({ code: 4400, reason: expect.stringContaining("no agent class") });
});

test("a chat on a refused client rejects what is sent, shows why, and sends it when it is let in", async () => {
  const { host, unlock } = await startLocked();
  const { client } = connect<unknown>(host, { agent: "Talk" });
  const chat = new AgentChat(client);
  const errors: Error[] = [];
  chat.subscribe(
    () => {},
    () => ({ onError: (error) => void errors.push(error) }),
  );
  await expect(chat.sendMessage({ text: "one" })).rejects.toMatchObject(REFUSED);
  expect(chat.getSnapshot()).toMatchObject({ status: "error", error: REFUSED });
  await expect(chat.sendMessage({ text: "two" })).rejects.toMatchObject(REFUSED);
  await expect(chat.regenerate()).rejects.toMatchObject(REFUSED);
  await expect(chat.search("x")).rejects.toMatchObject({ code: "disconnected", cause: REFUSED });
  await chat.loadOlder();
  expect(errors.every((error) => error === client.connectionError)).toBe(true);
  expect(errors).toHaveLength(3);

  unlock();
  client.open();
  await chat.sendMessage({ text: "three" });
  expect(chat.getSnapshot()).toMatchObject({ status: "ready", error: undefined });
  const said = chat.messages.map(
    ({ role, parts }) => `${role} ${parts.flatMap((p) => ("text" in p ? p.text : [])).join("")}`,
  );
  expect(said).toEqual(["user one", "user two", "user three", "assistant Hello."]);
});

test("a chat that is thrown out in the middle of an answer ends its wait with the reason", async () => {
  const { host, say } = await startTalk({ script: [{ text: ["one ", "two"], delayMs: 1 }] });
  const { client, line } = connect<unknown>(host, { agent: "Talk" });
  const chat = new AgentChat(client);
  const sent = expect(chat.sendMessage({ text: "count" })).rejects.toMatchObject({ code: 4403, reason: "banned" });
  await say();
  await eventually(() => expect(chat.getSnapshot().status).toBe("streaming"));
  line.cut(4403, "banned");
  await sent;
  expect(chat.getSnapshot()).toMatchObject({ status: "error", isStreaming: false });
  await say();
});

test("the AI SDK's chat over a refused client has the reason as its error", async () => {
  const { host } = await startLocked();
  const { client } = connect<unknown>(host, { agent: "Talk" });
  const { chat } = chatOver(new SocketChatTransport({ agent: client }));
  await chat.sendMessage({ text: "one" });
  expect(chat).toMatchObject({ status: "error", error: REFUSED });
  await chat.sendMessage({ text: "two" });
  expect(chat).toMatchObject({ status: "error", error: REFUSED });
  await chat.resumeStream();
  expect(chat).toMatchObject({ status: "error", error: REFUSED });
});

test("the hooks of a refused page show why", async () => {
  const { host } = await startLocked();
  const page = await openPage(host);
  await eventually(() =>
    expect(page.chat()).toMatchObject({ status: "error", error: REFUSED, connectionError: REFUSED }),
  );
  // A page does not wait for it: that must not end the process.
  void page.chat().sendMessage({ text: "one" });
  await eventually(() => expect(page.lines()).toEqual(["user: one"]));
  expect(page.chat()).toMatchObject({ status: "error", error: REFUSED });
  const sessions = new AgentSessions(page.agent() as AgentClient);
  sessions.subscribe(() => {});
  expect(sessions.getSnapshot()).toMatchObject({ isLoaded: false, error: REFUSED });
});

test("a client that is closed here rejects who waits to be ready, and is ready again after open", async () => {
  const { host, unlock } = await startLocked();
  unlock();
  const { client } = connect<unknown>(host, { agent: "Talk", startClosed: true });
  const first = client.ready;
  client.open();
  client.close();
  await expect(first).rejects.toMatchObject({ code: "disconnected" });
  client.open();
  await client.ready;
});

test("a client that never finds a server says so once, and comes in when there is one", async () => {
  const warn = vi.spyOn(console, "warn").mockReturnValue();
  try {
    const { host, unlock } = await startLocked();
    unlock();
    const { client, line } = connect<unknown>(host, { agent: "Talk", startClosed: true });
    line.cut();
    client.open();
    await eventually(() => expect(warn).toHaveBeenCalledTimes(1));
    expect(warn.mock.calls[0]?.[0]).toContain(`http://127.0.0.1:${host.port}/agents/talk/x`);
    expect(client.connectionError).toBeNull();
    line.mend();
    await client.ready;
    expect(warn).toHaveBeenCalledTimes(1);
  } finally {
    warn.mockRestore();
  }
});

test("a client that gives up by itself has no status of the server", async () => {
  const { host } = await startLocked();
  const { client, line } = connect<unknown>(host, { agent: "Talk", startClosed: true, maxRetries: 0 });
  line.cut();
  client.open();
  await expect(client.ready).rejects.toMatchObject({ code: 1006, status: undefined });
});

test("an address that cannot be is refused at once instead of being tried for ever", () => {
  const open = () => new AgentClient({ agent: "Talk", path: "/slash", host: "127.0.0.1:1" });
  expect(open).toThrow("must not begin with a slash");
});
