import { callable, type StreamingResponse } from "perdure";
import { expect, test } from "vitest";
import { Base } from "./fixtures.ts";
import { connected, eventually, ofType, startHost, type TestClient } from "./harness.ts";

class Teller extends Base<{ told: number }> {
  static {
    for (const name of ["several", "paused", "midway", "explicit", "early", "twice", "open"] as const) {
      callable(this, name, { streaming: true });
    }
    for (const name of ["late", "unwritable", "badEnd", "only", "noting", "watch"] as const) {
      callable(this, name, { streaming: true });
    }
  }

  override initialState = { told: 0 };
  readonly late_: string[] = [];
  leftBehind: StreamingResponse | undefined;

  several(stream: StreamingResponse, count: number): void {
    for (let i = 0; i < count; i++) stream.send({ i });
    stream.end("final");
  }
  async paused(stream: StreamingResponse, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await new Promise(setImmediate);
      stream.send(i);
    }
    stream.end();
  }
  async midway(stream: StreamingResponse): Promise<void> {
    stream.send(1);
    await new Promise(setImmediate);
    stream.send(2);
    throw new Error("broke midway");
  }
  explicit(stream: StreamingResponse): void {
    stream.send("a");
    stream.error("said so");
    stream.send("never");
    stream.end("never");
  }
  early(_stream: StreamingResponse): void {
    throw new Error("broke at once");
  }
  twice(stream: StreamingResponse): void {
    stream.end("first");
    stream.end("second");
    stream.error("third");
    stream.send("fourth");
  }
  async open(stream: StreamingResponse): Promise<void> {
    stream.send("only chunk");
    await new Promise(setImmediate);
  }
  only(stream: StreamingResponse): void {
    stream.end(null);
  }
  late(stream: StreamingResponse): void {
    stream.end("done");
    throw new Error("after the end");
  }
  unwritable(stream: StreamingResponse): void {
    stream.send("good");
    try {
      stream.send(1n);
    } catch (error) {
      stream.send(error instanceof Error ? error.message : "?");
    }
    stream.end("survived");
  }
  badEnd(stream: StreamingResponse): void {
    stream.end(1n);
  }
  /** Each chunk stands on a stored row: it may leave only after that. */
  noting(stream: StreamingResponse, count: number): void {
    for (let i = 1; i <= count; i++) {
      this.setState({ told: i });
      stream.send(i);
    }
  }
  async watch(stream: StreamingResponse): Promise<void> {
    this.leftBehind = stream;
    stream.send("watching");
    while (!stream.isClosed) await new Promise(setImmediate);
    stream.send("nobody hears this");
    this.late_.push("saw the end");
  }
  after(): string[] {
    return this.late_;
  }
}

interface Told {
  readonly chunks: unknown[];
  readonly dones: unknown[];
  readonly errors: string[];
  readonly result: Promise<unknown>;
}

function tell({ client }: TestClient, method: string, args: unknown[] = []): Told {
  const told = { chunks: [] as unknown[], dones: [] as unknown[], errors: [] as string[] };
  const result = client.call(method, args, {
    stream: {
      onChunk: (chunk) => void told.chunks.push(chunk),
      onDone: (final) => void told.dones.push(final),
      onError: (error) => void told.errors.push(error),
    },
  });
  return { ...told, result };
}

const start = async () => {
  const host = await startHost({ agents: { Teller } });
  return { host, client: await connected(host, { agent: "Teller", name: "x" }) };
};

test("chunks arrive in order, then the final value", async () => {
  const { client } = await start();
  const told = tell(client, "several", [50]);
  expect(await told.result).toBe("final");
  expect(told.chunks).toEqual(Array.from({ length: 50 }, (_, i) => ({ i })));
  expect(told.dones).toEqual(["final"]);
  expect(told.errors).toEqual([]);
});

test("chunks with pauses arrive one by one; no final value is undefined", async () => {
  const { client } = await start();
  const told = tell(client, "paused", [5]);
  expect(await told.result).toBeUndefined();
  expect(told.chunks).toEqual([0, 1, 2, 3, 4]);
});

test("the callbacks may be given without `stream` around them", async () => {
  const { client } = await start();
  const chunks: unknown[] = [];
  await client.client.call("paused", [3], { onChunk: (chunk) => void chunks.push(chunk) });
  expect(chunks).toEqual([0, 1, 2]);
});

test("an error midway ends the stream after the chunks before it", async () => {
  const { client } = await start();
  const told = tell(client, "midway");
  await expect(told.result).rejects.toThrow("broke midway");
  expect(told.chunks).toEqual([1, 2]);
  expect(told.errors).toEqual(["broke midway"]);
  expect(told.dones).toEqual([]);
});

test("an explicit error ends it, and nothing follows", async () => {
  const { client } = await start();
  const told = tell(client, "explicit");
  await expect(told.result).rejects.toThrow("said so");
  await client.client.call("ping");
  expect(told.chunks).toEqual(["a"]);
  expect(told.errors).toEqual(["said so"]);
  expect(ofType(client.frames, "rpc")).toHaveLength(3);
});

test("a throw before the first chunk is an error without chunks", async () => {
  const { client } = await start();
  const told = tell(client, "early");
  await expect(told.result).rejects.toThrow("broke at once");
  expect(told.chunks).toEqual([]);
});

test("only the first end counts, also when the method throws after it", async () => {
  const { client } = await start();
  expect(await tell(client, "twice").result).toBe("first");
  expect(await tell(client, "late").result).toBe("done");
  await client.client.call("ping");
  expect(ofType(client.frames, "rpc")).toHaveLength(3);
});

test("a method that returns without an end is ended for it", async () => {
  const { client } = await start();
  const told = tell(client, "open");
  expect(await told.result).toBeUndefined();
  expect(told.chunks).toEqual(["only chunk"]);
  expect(await tell(client, "only").result).toBeNull();
});

test("a chunk that JSON cannot hold throws in the method; the stream goes on", async () => {
  const { client } = await start();
  const told = tell(client, "unwritable");
  expect(await told.result).toBe("survived");
  expect(told.chunks[0]).toBe("good");
  expect(told.chunks[1]).toMatch(/cannot be written as JSON/);
});

test("a final value that JSON cannot hold becomes the error", async () => {
  const { client } = await start();
  await expect(tell(client, "badEnd").result).rejects.toThrow(/cannot be written as JSON/);
});

test("several streams and calls at once stay apart", async () => {
  const { client } = await start();
  const streams = [tell(client, "paused", [20]), tell(client, "several", [5]), tell(client, "paused", [7])];
  expect(await client.client.call("ping")).toBe("pong");
  await Promise.all(streams.map(({ result }) => result));
  expect(streams.map(({ chunks }) => chunks.length)).toEqual([20, 5, 7]);
});

test("chunks and state frames keep the order in which they were sent", async () => {
  const { client } = await start();
  const from = client.frames.length;
  await tell(client, "noting", [3]).result;
  const order = client.frames.slice(from).map(({ type, state, result }) => (type === "rpc" ? result : state));
  expect(order).toEqual([{ told: 1 }, 1, { told: 2 }, 2, { told: 3 }, 3, undefined]);
});

test("a streaming method can see that its caller has left", async () => {
  const { host, client } = await start();
  const told = tell(client, "watch");
  const failed = expect(told.result).rejects.toThrow("Connection closed");
  await eventually(() => expect(told.chunks).toEqual(["watching"]));
  client.client.close();
  await failed;
  await eventually(async () => expect(await host.getAgentByName(Teller, "x").after()).toEqual(["saw the end"]));
});
