import { fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort, insert, messagesOf, rows, startStreamServer } from "./stream-server.ts";
import { until } from "../../support/until.ts";
import type { StreamServer } from "./stream-server.ts";

let server: StreamServer;
beforeAll(async () => {
  server = await startStreamServer();
});
afterAll(() => server.stop());

/** Passes requests on, and loses the answers that `loses` names after the server has done what was asked. */
async function startProxy(target: string, loses: (method: string, count: number) => boolean) {
  const counts: Record<string, number> = {};
  const proxy = createServer((incoming, outgoing) => {
    const { method = "GET", url, headers } = incoming;
    const count = (counts[method] = (counts[method] ?? 0) + 1);
    const passed = request(new URL(url ?? "/", target), { method, headers }, (answer) => {
      if (loses(method, count)) {
        answer.resume().on("end", () => outgoing.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${new URL(target).pathname}`,
    counts,
    stop: async () => {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

test("answers that are lost after the server took the write: each write counts once, and says so", async () => {
  const direct = server.fresh();
  const proxy = await startProxy(direct, (method, count) => count % 3 === 1 && method !== "HEAD");
  const log = server.open(proxy.url);
  await log.ready;
  const keys = Array.from({ length: 30 }, (_, n) => `k${n}`);
  const upsert = (key: string, producer?: { id: string; epoch: number }) =>
    log.write({ changes: [{ ...insert("t", key), operation: "upsert" }], ...(producer && { producer }) });
  for (const key of keys.slice(0, 10)) await upsert(key);
  await Promise.all(keys.slice(10, 20).map((key) => upsert(key)));
  for (const key of keys.slice(20)) await upsert(key, { id: "runner", epoch: 1 });
  expect(rows(log, "t")).toEqual(Object.fromEntries(keys.map((key) => [key, { value: { id: key }, version: 1 }])));
  // The server itself has each of them once: other readers need not know our names of writes.
  expect((await messagesOf(direct)).map(({ key }) => key)).toEqual(keys);
  expect(proxy.counts.POST).toBeGreaterThan(21);
  await log.close();
  await proxy.stop();
});

test("answers that are errors, cut off or garbled are asked for again", async () => {
  const url = server.fresh();
  const log = server.open(url);
  await log.ready;
  const harms: Parameters<StreamServer["harm"]>[1][] = [
    { method: "POST", status: 503, retryAfter: 0 },
    { method: "POST", status: 500, count: 2 },
    { method: "POST", dropConnection: true },
    { method: "GET", status: 500 },
    { method: "GET", status: 429 },
    { method: "GET", dropConnection: true },
    { method: "GET", truncateBodyBytes: 20 },
    { method: "GET", corruptBody: true },
  ];
  const keys: string[] = [];
  for (const harm of [...harms, ...harms]) {
    server.harm(url, harm);
    for (const n of [1, 2]) {
      keys.push(`k${keys.length}`);
      await log.write({ changes: [insert("t", keys.at(-1)!, { n })] });
    }
  }
  expect(Object.keys(rows(log, "t"))).toEqual(keys);
  expect(log.quarantined).toEqual([]);
  const late = server.open(url);
  await late.ready;
  expect(rows(late, "t")).toEqual(rows(log, "t"));
});

test("a claim whose answer was lost knows that it was won, or lost", async () => {
  const direct = server.fresh();
  const proxy = await startProxy(direct, (method, count) => method === "POST" && count % 2 === 1);
  const [shaky, other] = [server.open(proxy.url), server.open(direct)];
  await Promise.all([shaky.ready, other.ready]);
  const claim = async (log: typeof shaky, key: string, by: string) => {
    const when = [{ table: "t", key, version: 0 }];
    return (await log.write({ changes: [{ ...insert("t", key, { by }), operation: "upsert" }], when })).applied;
  };
  for (let n = 0; n < 10; n++) {
    const won = await Promise.all([claim(shaky, `k${n}`, "shaky"), claim(other, `k${n}`, "other")]);
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(shaky.table("t").get(`k${n}`)?.value).toEqual({ by: won[0] ? "shaky" : "other" });
  }
  await shaky.close();
  await proxy.stop();
});

test("a write that was taken is not told to be fenced because its answer was lost and a later epoch came", async () => {
  const url = server.fresh();
  const next = server.open(url);
  await next.ready;
  const release = Promise.withResolvers<void>();
  let posts = 0;
  const log = server.open(url, {
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      // What it has written is not read before it is asked for it.
      if (init?.method === "GET" && posts > 0) await release.promise;
      if (init?.method === "HEAD") release.resolve();
      if (init?.method !== "POST" || ++posts > 1) return answer;
      await next.write({ changes: [insert("t", "b")], producer: { id: "runner", epoch: 2 } });
      throw new Error("the answer was lost");
    },
  });
  await log.ready;
  const producer = { id: "runner", epoch: 1 };
  expect(await log.write({ changes: [insert("t", "a")], producer })).toMatchObject({ applied: true });
  await expect(log.write({ changes: [insert("t", "c")], producer })).rejects.toMatchObject({ code: "fenced" });
  expect(Object.keys(rows(log, "t")).toSorted()).toEqual(["a", "b"]);
  await log.close();
});

test("a server that is killed and started again during writes: nothing is lost, nothing comes twice", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "perdure-streams-"));
  const port = await freePort();
  const start = async () => {
    const child = fork(new URL("file-server.ts", import.meta.url), [String(port), dataDir], { stdio: "ignore" });
    await new Promise((resolve, reject) => child.once("message", resolve).once("exit", reject));
    return child;
  };
  let child = await start();
  const url = `http://127.0.0.1:${port}/v1/stream/rows`;
  const told: unknown[] = [];
  const logs = [server.open(url, { onError: (error) => told.push(error) }), server.open(url)];
  await Promise.all(logs.map((log) => log.ready));
  const positions: string[] = [];
  const heard = new Map<string, number>();
  logs[1]!.table("t").subscribe((changes) => {
    positions.push(logs[1]!.position);
    for (const { key } of changes) heard.set(key, (heard.get(key) ?? 0) + 1);
  });
  const writes: Promise<unknown>[] = [];
  const keys: string[] = [];
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 40; n++) {
      for (const [by, log] of logs.entries()) {
        keys.push(`r${round}-${n}-${by}`);
        writes.push(log.write({ changes: [{ ...insert("t", keys.at(-1)!), operation: "upsert" }] }));
      }
      if (n % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    // Some of them are on their way.
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
    child = await start();
  }
  await Promise.all(writes);
  await until(() => logs.every((log) => log.table("t").size === keys.length));
  const late = server.open(url);
  await late.ready;
  const expected = Object.fromEntries(keys.map((key) => [key, { value: { id: key }, version: 1 }]));
  for (const log of [...logs, late]) expect(rows(log, "t")).toEqual(expected);
  expect([...heard.values()]).toEqual(keys.map(() => 1));
  expect(positions).toEqual(positions.toSorted());
  expect(told.length).toBeGreaterThan(0);
  await Promise.all([...logs, late].map((log) => log.close()));
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
  await rm(dataDir, { recursive: true });
});
