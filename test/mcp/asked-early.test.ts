// A client may call a tool before it has opened the stream on which it is asked back.
import { expect, onTestFinished, test } from "vitest";
import { createMcpHandler } from "../../src/toolbox/mcp/server/handler.ts";
import { everything } from "./conformance-everything.ts";
import { listen } from "./web-server.ts";

const VERSION = "2025-11-25";
const SAMPLING = "sampling/createMessage";

/** A session, spoken by hand: the order of its requests is the point. */
async function begin() {
  const handler = createMcpHandler(everything, { sessions: true });
  const web = await listen(handler);
  onTestFinished(async () => {
    await handler.close();
    await web.stop();
  });
  let session: Record<string, string> = {};
  const headers = () => ({
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    ...session,
  });
  const post = (message: object) =>
    fetch(`${web.origin}/mcp`, {
      method: "POST",
      headers: headers(),
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  const clientInfo = { name: "test", version: "1" };
  const params = { protocolVersion: VERSION, capabilities: { sampling: {} }, clientInfo };
  const begun = await post({ id: 0, method: "initialize", params });
  await begun.text();
  session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "", "mcp-protocol-version": VERSION };
  await post({ method: "notifications/initialized" });
  return { post, get: () => fetch(`${web.origin}/mcp`, { headers: headers() }) };
}

/** Reads a stream of events up to the message that `wanted` accepts. */
async function readTo(response: Response, wanted: (message: Message) => boolean): Promise<Message> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    const lines = text.split("\n").filter((line) => line.startsWith("data: {") && line.endsWith("}"));
    const found = lines.map((line) => JSON.parse(line.slice("data: ".length)) as Message).find(wanted);
    if (found !== undefined) return found;
  }
  throw new Error(`It was not in: ${text}`);
}
interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly result?: unknown;
}

test("a client that calls first and listens later is asked, and its call goes on", async () => {
  const { post, get } = await begin();
  const called = await post({
    id: 1,
    method: "tools/call",
    params: { name: "test_sampling", arguments: { prompt: "?" } },
  });
  const stream = await get();
  const { id } = await readTo(stream, ({ method }) => method === SAMPLING);
  const content = { type: "text", text: "Yes." };
  await post({ id, result: { role: "assistant", model: "m", content } });
  const { result } = await readTo(called, (message) => message.id === 1);
  expect(result).toMatchObject({ content: [{ type: "text", text: "LLM response: Yes." }] });
});
