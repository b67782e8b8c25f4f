import { callable, type StreamingResponse } from "perdure";
import { expect, test, vi } from "vitest";
import { Base } from "./fixtures.ts";
import { atEnd, connect, connected, eventually, startHost, takeFailures } from "./harness.ts";

class Slow extends Base {
  static {
    callable(this, "hold");
    callable(this, "note");
    callable(this, "holdStream", { streaming: true });
  }

  readonly held: (() => void)[] = [];
  readonly notes: string[] = [];

  async hold(): Promise<string> {
    await new Promise<void>((resolve) => this.held.push(resolve));
    return "at last";
  }
  async holdStream(stream: StreamingResponse): Promise<void> {
    stream.send("begun");
    await new Promise<void>((resolve) => this.held.push(resolve));
    stream.end("at last");
  }
  letGo(): void {
    for (const resolve of this.held.splice(0)) resolve();
  }
  waiting(): number {
    return this.held.length;
  }
  note(text: string): number {
    return this.notes.push(text);
  }
  noted(): string[] {
    return this.notes;
  }
}

const options = { agent: "Slow", name: "x" };
const start = async () => {
  const host = await startHost({ agents: { Slow } });
  return { host, stub: host.getAgentByName(Slow, "x") };
};

test("a call times out on the client; the late answer is only warned of", async () => {
  const { host, stub } = await start();
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  atEnd(() => warn.mockRestore());
  const { client } = await connected(host, options);
  await expect(client.call("hold", [], { timeout: 20 })).rejects.toThrow("timed out after 20ms");
  // It may have been given up before it arrived.
  await eventually(async () => expect(await stub.waiting()).toBe(1));
  await stub.letGo();
  await eventually(() => expect(warn).toHaveBeenCalledWith(expect.stringContaining("Discarded an RPC response")));
  expect(await client.call("ping")).toBe("pong");
});

test("the client's own default timeout holds for calls, `timeout: 0` lifts it", async () => {
  const { host, stub } = await start();
  const { client } = await connected(host, { ...options, defaultCallTimeout: 30 });
  const patient = client.call("hold", [], { timeout: 0 });
  await eventually(async () => expect(await stub.waiting()).toBe(1));
  await expect(client.call("hold")).rejects.toThrow("timed out after 30ms");
  await eventually(async () => expect(await stub.waiting()).toBe(2));
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  atEnd(() => warn.mockRestore());
  await stub.letGo();
  expect(await patient).toBe("at last");
});

test("a stream has no default timeout, but takes one", async () => {
  const { host, stub } = await start();
  const { client } = await connected(host, { ...options, defaultCallTimeout: 20 });
  const chunks: unknown[] = [];
  const errors: string[] = [];
  const stream = client.call("holdStream", [], { stream: { onChunk: (chunk) => void chunks.push(chunk) } });
  await expect(
    client.call("holdStream", [], { timeout: 30, stream: { onError: (error) => void errors.push(error) } }),
  ).rejects.toThrow("timed out after 30ms");
  expect(errors).toEqual(["RPC call to holdStream timed out after 30ms"]);
  await eventually(async () => expect(await stub.waiting()).toBe(2));
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  atEnd(() => warn.mockRestore());
  await stub.letGo();
  expect(await stream).toBe("at last");
  expect(chunks).toEqual(["begun"]);
});

test("a drop rejects calls that were sent; the method itself runs on, once", async () => {
  const { host, stub } = await start();
  const test = await connected(host, options);
  const call = test.client.call("hold");
  const rejected = expect(call).rejects.toThrow("Connection closed");
  await eventually(async () => expect(await stub.waiting()).toBe(1));
  await stub.drop(1012);
  await rejected;
  await test.client.ready;
  expect(await stub.waiting()).toBe(1);
  await stub.letGo();
  expect(await test.client.call("ping")).toBe("pong");
});

test("a drop ends streams that were under way with an error", async () => {
  const { host, stub } = await start();
  const { client } = await connected(host, options);
  const errors: string[] = [];
  const chunks: unknown[] = [];
  const stream = client.call("holdStream", [], {
    stream: { onChunk: (chunk) => void chunks.push(chunk), onError: (error) => void errors.push(error) },
  });
  const rejected = expect(stream).rejects.toThrow("Connection closed");
  await eventually(() => expect(chunks).toEqual(["begun"]));
  await stub.drop(1001);
  await rejected;
  expect(errors).toEqual(["Connection closed"]);
  await stub.letGo();
});

test("calls made while the socket is down wait for the next one, and run once", async () => {
  const { host, stub } = await start();
  const test = await connected(host, options);
  await stub.drop(1012);
  await eventually(() => expect(test.closes).toHaveLength(1));
  const calls = ["a", "b", "c"].map((text) => test.client.call("note", [text]));
  expect(await Promise.all(calls)).toEqual([1, 2, 3]);
  expect(await stub.noted()).toEqual(["a", "b", "c"]);
});

test("calls made before the first connection are answered in their order", async () => {
  const { host, stub } = await start();
  const { client } = connect(host, options);
  const calls = ["a", "b", "c"].map((text) => client.call("note", [text]));
  expect(await Promise.all(calls)).toEqual([1, 2, 3]);
  expect(await stub.noted()).toEqual(["a", "b", "c"]);
});

test("a terminal close rejects everything, waiting calls too, and later calls at once", async () => {
  const { host, stub } = await start();
  const { client, closes } = await connected(host, options);
  const call = client.call("hold");
  const rejected = expect(call).rejects.toThrow("Connection closed");
  await eventually(async () => expect(await stub.waiting()).toBe(1));
  await stub.drop(4000, "enough");
  await rejected;
  await eventually(() => expect(closes).toEqual([{ code: 4000, reason: "enough" }]));
  await expect(client.call("ping")).rejects.toThrow("Connection closed");
  await stub.letGo();
});

test("a call that is running when the host stops is rejected on the client, and given up by the host", async () => {
  const host = await startHost({ agents: { Slow }, graceMs: 20 });
  const { client, closes } = await connected(host, options);
  const call = client.call("hold");
  const rejected = expect(call).rejects.toThrow("Connection closed");
  await eventually(async () => expect(await host.getAgentByName(Slow, "x").waiting()).toBe(1));
  await host.stop();
  await rejected;
  expect(closes[0]).toEqual({ code: 1012, reason: "host restarts" });
  // On a busy machine the grace may also end before the `onClose` of the closed socket has run.
  const failures = takeFailures().filter((line) => !line.startsWith("Slow/x close: The host stopped"));
  expect(failures).toEqual([expect.stringContaining("Slow/x message: The host stopped before this was done")]);
});
