import { once } from "node:events";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { Readable } from "node:stream";
import { Agent, AIChatAgent } from "perdure";
import { memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, eventually, openHost } from "./open-host.ts";

const MAX = 100_000;

class Sink extends Agent {
  static override readonly subAgents = ["Inner"];
  static errors: unknown[] = [];

  override async onRequest(request: Request): Promise<Response> {
    const what = new URL(request.url).pathname.split("/").at(-1);
    if (what === "unread") return new Response("not read");
    if (what === "count") {
      let bytes = 0;
      try {
        for await (const chunk of request.body ?? []) bytes += chunk.byteLength;
      } catch (thrown) {
        return Response.json({ bytes, error: (thrown as { code?: string }).code }, { status: 400 });
      }
      return Response.json({ bytes });
    }
    if (what === "form") return Response.json([...(await request.formData()).keys()]);
    return Response.json((await request.bytes()).byteLength);
  }
  override onError(error: unknown): void {
    Sink.errors.push(error);
  }
}
class Inner extends Sink {}
class Talk extends AIChatAgent {
  override onChatMessage(): Promise<Response> {
    return Promise.resolve(new Response("heard"));
  }
}

const open = () =>
  openHost({ agents: { Sink, Talk }, subAgents: { Inner }, storage: memoryStorage(), maxBodyBytes: MAX });

const chunks = (bytes: number) =>
  Readable.toWeb(Readable.from(Array.from({ length: Math.ceil(bytes / 10_000) }, () => Buffer.alloc(10_000, "x"))));
const streamed = (bytes: number) => ({ method: "POST", duplex: "half", body: chunks(bytes) }) as unknown as RequestInit;

const text = "The body is larger than 100000 bytes, which is this host's limit.";

test.each(["/agents/sink/a", "/agents/sink/a/sub/inner/b"])(
  "%s: a body up to the bound arrives whole",
  async (path) => {
    const host = await open();
    expect(await (await fetch(host.url + path, { method: "POST", body: "x".repeat(MAX) })).json()).toBe(MAX);
    expect(await (await fetch(host.url + path, streamed(MAX))).json()).toBe(MAX);
  },
);

test.each(["/agents/sink/a", "/agents/sink/a/sub/inner/b", "/agents/sink/a/form"])(
  "%s: a larger one is refused with 413, said before or not, and others go on",
  async (path) => {
    const host = await open();
    const bystander = await connect(host, "/agents/sink/a");
    const headers = { "content-type": "multipart/form-data; boundary=b" };
    const form = path.endsWith("form") ? { headers } : {};
    for (const init of [{ method: "POST", body: "x".repeat(MAX + 1) }, streamed(MAX + 10_000), streamed(20 * MAX)]) {
      const answer = await fetch(host.url + path, { ...init, ...form });
      expect(answer.status).toBe(413);
      expect(await answer.json()).toEqual({ error: { code: "too_large", message: text } });
    }
    expect(await (await fetch(`${host.url}/agents/sink/a`, { method: "POST", body: "fine" })).json()).toBe(4);
    expect(bystander.closed).toBeUndefined();
  },
);

test("a large length that is only announced is answered without waiting for it", async () => {
  const host = await open();
  const upload = httpRequest(`${host.url}/agents/sink/a`, {
    method: "POST",
    headers: { "content-length": String(2 ** 40) },
  });
  upload.on("error", () => undefined);
  upload.write("a little of it");
  const [answer] = (await once(upload, "response")) as [IncomingMessage];
  expect(answer.statusCode).toBe(413);
  // The rest is not waited for either.
  await once(upload, "close");
});

test("a sender without an end gets its answer and is cut off", async () => {
  const host = await open();
  const upload = httpRequest(`${host.url}/agents/sink/a`, { method: "POST" });
  const piece = Buffer.alloc(64 * 1024);
  let sent = 0;
  let over = false;
  let status: number | undefined;
  upload.on("error", () => undefined);
  upload.on("close", () => (over = true));
  upload.on("response", (response) => {
    status = response.statusCode;
    response.resume();
  });
  const pump = () => {
    if (over) return;
    sent += piece.length;
    if (upload.write(piece)) setImmediate(pump);
    else upload.once("drain", pump);
  };
  pump();
  await eventually(() => over, "the end of an endless upload");
  expect(status).toBe(413);
  expect(sent).toBeGreaterThan(MAX);
  expect(await (await fetch(`${host.url}/agents/sink/a`, { method: "POST", body: "fine" })).json()).toBe(4);
});

test("an agent that reads by itself sees the error in the stream, and may answer it", async () => {
  const host = await open();
  const answer = await fetch(`${host.url}/agents/sink/a/count`, streamed(3 * MAX));
  expect([answer.status, await answer.json()]).toEqual([400, { bytes: expect.any(Number), error: "too_large" }]);
  expect(await (await fetch(`${host.url}/agents/sink/a/unread`, streamed(3 * MAX))).text()).toBe("not read");
});

test("what an agent leaves to throw is reported to it, once", async () => {
  Sink.errors = [];
  const host = await open();
  await fetch(`${host.url}/agents/sink/a`, streamed(3 * MAX));
  expect(Sink.errors).toMatchObject([{ code: "too_large" }]);
  await fetch(`${host.url}/agents/sink/a`, { method: "POST", body: "x".repeat(3 * MAX) });
  expect(Sink.errors).toHaveLength(1);
});

test("a chat request that is too large stores nothing; the next one is heard", async () => {
  const host = await open();
  const say = (words: string, stream: boolean) => {
    const body = JSON.stringify({ message: { id: "m1", role: "user", parts: [{ type: "text", text: words }] } });
    const init = stream ? { duplex: "half", body: Readable.toWeb(Readable.from([Buffer.from(body)])) } : { body };
    return fetch(`${host.url}/agents/talk/a/chat`, { method: "POST", ...init } as RequestInit);
  };
  for (const stream of [false, true]) {
    const answer = await say("x".repeat(MAX), stream);
    expect([answer.status, await answer.json()]).toEqual([413, { error: { code: "too_large", message: text } }]);
  }
  const messages = async () => (await (await fetch(`${host.url}/agents/talk/a/get-messages`)).json()) as unknown[];
  expect(await messages()).toEqual([]);
  expect((await say("hello", true)).status).toBe(202);
  await expect.poll(messages).toHaveLength(2);
});
