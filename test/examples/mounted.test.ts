import net from "node:net";
import { AgentClient } from "agents/client";
import { expect, onTestFinished, test } from "vitest";
import { connect, eventually, tempDir } from "../host/open-host.ts";
import { startExample } from "./run-example.ts";

const tell = (url: string, body: unknown) =>
  fetch(`${url}/api/tell/main`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test.each(["express", "hono"])("%s: the app's routes and the agents' side by side", async (name) => {
  const { url } = await startExample(tempDir(), name);
  const own = await fetch(`${url}/api/hello`);
  expect(await own.json()).toEqual({ hello: "from the app's own route" });
  expect((await fetch(`${url}/nothing`)).status).toBe(404);

  // The public client, through the app's server.
  const client = new AgentClient({ agent: "chat-agent", name: "main", host: new URL(url).host });
  onTestFinished(() => client.close());
  const frames: string[] = [];
  client.addEventListener("message", ({ data }) => frames.push(String(data)));
  await client.ready;

  // The app's own route starts a turn, and the open client sees it.
  expect(await (await tell(url, { text: "good morning" })).json()).toMatchObject({ status: "completed" });
  await eventually(() => frames.some((frame) => frame.includes("good morning")), "the message arrives");
  await eventually(() => frames.some((frame) => frame.includes("text-delta")), "the answer streams");
  expect((await tell(url, { words: "none" })).status).toBe(400);

  // An agent's request has its body, though the app has a body parser.
  const turn = await fetch(`${url}/agents/chat-agent/main/chat`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ message: { id: "one", role: "user", parts: [{ type: "text", text: "over HTTP" }] } }),
  });
  expect(turn.status).toBe(200);
  expect(await turn.text()).toContain('"outcome":"completed"');
  const stored: unknown = await (await fetch(`${url}/agents/chat-agent/main/get-messages`)).json();
  expect(stored).toMatchObject([{ role: "user" }, { role: "assistant" }, { id: "one" }, { role: "assistant" }]);
});

test.each(["express", "hono"])(
  "%s: a WebSocket that is not an agent's is the app's, which refuses it",
  async (name) => {
    const { url, child } = await startExample(tempDir(), name);
    await expect(connect({ url }, "/own/socket")).rejects.toThrow("404");
    await connect({ url }, "/agents/chat-agent/main");
    expect(child.exitCode).toBeNull();
  },
);

const HANG_UPS = 300;

/** Asks for a WebSocket and breaks the connection off at once, so that the answer meets a closed door. */
function hangUp(url: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  socket.on("close", () => resolve());
  socket.write(
    "GET /own/socket HTTP/1.1\r\nHost: app\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    () => socket.resetAndDestroy(),
  );
  return promise;
}

test.each(["express", "hono", "minimal-chat"])("%s: clients that hang up do not end the process", async (name) => {
  const { url, output } = await startExample(tempDir(), name);
  for (let i = 0; i < HANG_UPS; i++) await hangUp(url);
  expect((await fetch(url)).status, output()).toBe(200);
});
