import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { agentFetch } from "agents/client";
import { expect, test } from "vitest";
import { Base } from "./fixtures.ts";
import { addressOf, eventually, startHost } from "./harness.ts";

const SIZE = 2 * 1024 * 1024;
const bytes = Buffer.alloc(SIZE);
for (let i = 0; i < SIZE; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + (i >> 16)) & 0xff;
const digest = (data: Uint8Array) => createHash("sha256").update(data).digest("hex");

class Pipe extends Base {
  static override readonly subAgents = ["Inner"];
  readonly seen: number[] = [];
  cancelled = 0;

  override async onRequest(request: Request): Promise<Response> {
    switch (new URL(request.url).pathname.split("/").at(-1)) {
      case "echo":
        return new Response(request.body, { headers: { "content-type": "application/octet-stream" } });
      case "hash":
        return new Response(digest(await request.bytes()));
      case "count": {
        for await (const chunk of request.body ?? []) this.seen.push(chunk.byteLength);
        return Response.json(this.seen.reduce((sum, length) => sum + length, 0));
      }
      case "ignore":
        return new Response("not read");
      case "form": {
        const form = await request.formData();
        const file = form.get("file");
        return Response.json([form.get("text"), file instanceof File ? [file.name, digest(await file.bytes())] : null]);
      }
      default:
        return new Response(this.#ticks(), { headers: { "content-type": "text/event-stream" } });
    }
  }
  #ticks(): ReadableStream<Uint8Array> {
    let n = 0;
    return new ReadableStream({
      pull: async (controller) => {
        await new Promise(setImmediate);
        controller.enqueue(new TextEncoder().encode(`data: ${n++}\n\n`));
      },
      cancel: () => void this.cancelled++,
    });
  }
  counted(): { seen: number[]; cancelled: number } {
    return { seen: this.seen, cancelled: this.cancelled };
  }
}
class Inner extends Pipe {}

const start = () => startHost({ agents: { Pipe }, subAgents: { Inner } });
const HOPS = ["", "sub/inner/a/", "sub/inner/a/sub/inner/b/"];
const to = (host: { port: number }, path: string) => ({ host: addressOf(host), agent: "Pipe", name: "x", path });

test("two megabytes there and back, byte for byte, directly and through one and two hops", async () => {
  const host = await start();
  for (const hop of HOPS) {
    const hash = await agentFetch(to(host, `${hop}hash`), { method: "POST", body: bytes });
    expect(await hash.text(), hop).toBe(digest(bytes));
    const echo = await agentFetch(to(host, `${hop}echo`), { method: "PUT", body: bytes });
    expect(digest(await echo.bytes()), hop).toBe(digest(bytes));
  }
});

test("a streamed upload of unknown length arrives whole", async () => {
  const host = await start();
  for (const hop of HOPS) {
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (let at = 0; at < SIZE; at += 100_000) {
          controller.enqueue(bytes.subarray(at, Math.min(SIZE, at + 100_000)));
          await new Promise(setImmediate);
        }
        controller.close();
      },
    });
    const init: RequestInit & { duplex: "half" } = { method: "POST", body, duplex: "half" };
    expect(await (await agentFetch(to(host, `${hop}hash`), init)).text(), hop).toBe(digest(bytes));
  }
});

test("the beginning of an unfinished upload reaches the agent, also through a hop", async () => {
  const host = await start();
  for (const hop of ["", "sub/inner/a/"]) {
    const upload = httpRequest(`${host.url}/agents/pipe/x/${hop}echo`, { method: "POST" });
    const echoed: Buffer[] = [];
    const answered = new Promise<void>((resolve, reject) => {
      upload.on("error", reject);
      upload.on("response", (response) => {
        response.on("data", (chunk: Buffer) => void echoed.push(chunk));
        response.on("end", resolve);
      });
    });
    upload.write("first half, ");
    await eventually(() => expect(Buffer.concat(echoed).toString()).toBe("first half, "));
    upload.end("second half");
    await answered;
    expect(Buffer.concat(echoed).toString()).toBe("first half, second half");
  }
});

test("an empty body, no body, and a body that nobody reads", async () => {
  const host = await start();
  for (const hop of HOPS) {
    expect(await (await agentFetch(to(host, `${hop}hash`), { method: "POST", body: "" })).text()).toBe(
      digest(Buffer.alloc(0)),
    );
    expect(await (await agentFetch(to(host, `${hop}hash`))).text()).toBe(digest(Buffer.alloc(0)));
    expect(await (await agentFetch(to(host, `${hop}ignore`), { method: "POST", body: bytes })).text()).toBe("not read");
  }
});

test("forms and files", async () => {
  const host = await start();
  for (const hop of HOPS) {
    const form = new FormData();
    form.set("text", "ü😀");
    form.set("file", new File([bytes], "data.bin"));
    const response = await agentFetch(to(host, `${hop}form`), { method: "POST", body: form });
    expect(await response.json(), hop).toEqual(["ü😀", ["data.bin", digest(bytes)]]);
  }
});

test("an endless answer is streamed, and ends for the agent when the reader leaves", async () => {
  const host = await start();
  const abort = new AbortController();
  const response = await agentFetch(to(host, "ticks"), { signal: abort.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = response.body?.getReader();
  let text = "";
  while (!text.includes("data: 5\n\n")) text += new TextDecoder().decode((await reader?.read())?.value);
  expect(text.startsWith("data: 0\n\ndata: 1\n\n")).toBe(true);
  abort.abort();
  await eventually(async () => expect((await host.getAgentByName(Pipe, "x").counted()).cancelled).toBe(1));
});

test("a client that breaks off its upload does not break the agent", async () => {
  const host = await start();
  const upload = httpRequest(`${host.url}/agents/pipe/x/count`, {
    method: "POST",
    headers: { "content-length": "1000" },
  });
  upload.on("error", () => {});
  upload.write("x".repeat(10));
  await eventually(async () => expect((await host.getAgentByName(Pipe, "x").counted()).seen).toEqual([10]));
  upload.destroy();
  expect(await (await agentFetch(to(host, "hash"), { method: "POST", body: "fine" })).text()).toBe(
    digest(Buffer.from("fine")),
  );
});
