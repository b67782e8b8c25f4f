import { openStreamLog } from "perdure/collections";
import type { QuarantinedMessage } from "perdure/collections/log";
import { afterAll, beforeAll, expect, test } from "vitest";
import { append, insert, messagesOf, rows, startStreamServer } from "./stream-server.ts";
import { until } from "../../support/until.ts";
import type { StreamServer } from "./stream-server.ts";

let server: StreamServer;
beforeAll(async () => {
  server = await startStreamServer();
});
afterAll(() => server.stop());

test("a change of one row is one plain event of the State Protocol; a write of several is one append", async () => {
  const url = server.fresh();
  const log = server.open(url);
  await log.write({ changes: [insert("notes", "a", { text: "hi" })], txid: "t1" });
  await log.write({
    changes: [insert("notes", "b"), insert("tags", "c")],
    when: [{ table: "notes", key: "a", version: 1 }],
    txid: "t2",
  });
  expect(await messagesOf(url)).toEqual([
    {
      type: "notes",
      key: "a",
      value: { text: "hi" },
      headers: { operation: "insert", txid: "t1", perdure: { part: 1, of: 1 } },
    },
    {
      type: "notes",
      key: "b",
      value: { id: "b" },
      headers: {
        operation: "insert",
        txid: "t2",
        perdure: { part: 1, of: 2, when: [{ table: "notes", key: "a", version: 1 }] },
      },
    },
    {
      type: "tags",
      key: "c",
      value: { id: "c" },
      headers: { operation: "insert", txid: "t2", perdure: { part: 2, of: 2 } },
    },
  ]);
});

test("what waits goes together into one request, in its order, and each write is judged by itself", async () => {
  const url = server.fresh();
  let posts = 0;
  const counting: typeof fetch = (input, init) => {
    if (init?.method === "POST") posts++;
    return fetch(input, init);
  };
  const log = server.open(url, { fetch: counting });
  await log.ready;
  const keys = ["a", "b", "b", "c", "a", "d"];
  const receipts = await Promise.all(keys.map((key) => log.write({ changes: [insert("t", key)] })));
  expect(receipts.map(({ applied }) => applied)).toEqual([true, true, false, true, false, true]);
  expect(receipts[2]?.refused).toContain('"b"');
  expect((await messagesOf(url)).map(({ key }) => key)).toEqual(keys);
  expect(posts).toBeLessThan(keys.length);
  await expect(log.write({ changes: [insert("t", "e")], txid: "" })).rejects.toMatchObject({ code: "bad_input" });
});

test("a write that no reader would understand is not waited for for ever", async () => {
  const log = server.open(server.fresh());
  const value = Object.assign(Object.create({ toJSON: () => "a text" }) as object, { n: 1 });
  await expect(log.write({ changes: [insert("t", "a", { ...value })] })).resolves.toMatchObject({ applied: true });
  const odd = { table: "t", key: "b", operation: "insert" as const, value: value as { n: number } };
  await expect(log.write({ changes: [odd] })).rejects.toMatchObject({ code: "disconnected" });
  expect(log.quarantined).toHaveLength(1);
});

test("plain events of other writers are applied as far as they go: an update replaces, a reset empties", async () => {
  const url = server.fresh();
  const log = server.open(url);
  await log.ready;
  const event = (operation: string, key: string, value?: object) => ({
    type: "users",
    key,
    value,
    headers: { operation, txid: "one for all of them" },
  });
  await append(
    url,
    { headers: { control: "snapshot-start" } },
    event("insert", "a", { n: 1, old: true }),
    event("insert", "a", { n: 2 }),
    event("update", "b", { n: 3 }),
    event("delete", "none"),
    event("upsert", "c", { n: 4 }),
    event("delete", "c"),
    { headers: { control: "snapshot-end" } },
  );
  await until(() => log.table("users").version("c") === 2);
  expect(rows(log, "users")).toEqual({ a: { value: { n: 2 }, version: 2 }, b: { value: { n: 3 }, version: 1 } });
  expect(log.quarantined).toEqual([]);

  const heard: string[] = [];
  log.table("users").subscribe((changes) => heard.push(...changes.map(({ key, operation }) => `${operation} ${key}`)));
  await append(url, { headers: { control: "reset" } }, event("insert", "a", { n: 5 }));
  await until(() => log.table("users").get("a")?.version === 4);
  expect(heard).toEqual(["delete a", "delete b", "insert a"]);
  // A condition of before the reset does not hold again.
  const late = await log.write({
    changes: [insert("users", "b")],
    when: [{ table: "users", key: "b", version: 0 }],
  });
  expect(late.applied).toBe(false);
});

test("trap: one malformed message is set aside, harms nothing behind it, and all readers agree", async () => {
  const url = server.fresh();
  const told: QuarantinedMessage[] = [];
  const one = server.open(url, { onQuarantine: (message) => told.push(message) });
  await one.write({ changes: [insert("t", "before")] });
  const ours = (part: unknown, of: unknown, rest: object = {}) => ({
    type: "t",
    key: `part${String(part)}`,
    value: {},
    headers: { operation: "insert", txid: "x", perdure: { part, of, ...rest } },
  });
  const headers = { operation: "insert" };
  const bad: [unknown, string][] = [
    [{ type: "t", key: "a", value: {} }, "no headers"],
    [[{ type: "t", key: "a", value: {}, headers }], "no object"],
    ["text", "no object"],
    [null, "no object"],
    [{ type: "t", key: "a", value: {}, headers: { operation: "patch" } }, "operation is unknown"],
    [{ type: "t", key: "a", value: {}, headers: {} }, "operation is unknown"],
    [{ headers: { control: "explode" } }, "control is unknown"],
    [{ key: "a", value: {}, headers }, "no type"],
    [{ type: "t", key: 7, value: {}, headers }, "no key"],
    [{ type: "t", key: "a", headers }, "value is no object"],
    [{ type: "t", key: "a", value: [], headers }, "value is no object"],
    [ours(0, 1), "header is malformed"],
    [ours(2, 1), "header is malformed"],
    [ours(1, 1, { when: [{ table: "t", key: "a", version: -1 }] }), "header is malformed"],
    [{ ...ours(1, 1), headers: { ...ours(1, 1).headers, txid: "" } }, "header is malformed"],
    [ours(2, 3), "beginning is missing"],
    [ours(1, 3), "end is missing"],
    [ours(2, 3), "end is missing"],
  ];
  await append(url, ...bad.map(([message]) => message));
  await append(url, { type: "t", key: "behind", value: { n: 1 }, headers });
  await one.write({ changes: [insert("t", "after")] });
  const two = server.open(url);
  await two.ready;
  for (const log of [one, two]) {
    expect(Object.keys(rows(log, "t"))).toEqual(["before", "behind", "after"]);
    expect(log.quarantined).toHaveLength(bad.length);
    for (const [index, [message, reason]] of bad.entries()) {
      expect(log.quarantined[index]).toMatchObject({ message, reason: expect.stringContaining(reason) });
    }
  }
  expect(told).toEqual(one.quarantined);
});

test("what was set aside is kept up to a bound", async () => {
  const url = server.fresh();
  const log = server.open(url);
  await log.ready;
  await append(url, ...Array.from({ length: 150 }, (_, n) => n));
  await log.write({ changes: [insert("t", "a")] });
  expect(log.quarantined.map(({ message }) => message)).toEqual(Array.from({ length: 100 }, (_, n) => n + 50));
});

test("a writer that was overtaken stays shut out, and the stream has nothing of it", async () => {
  const url = server.fresh();
  const [zombie, runner] = [server.open(url), server.open(url)];
  const write = (log: typeof zombie, key: string, epoch: number) =>
    log.write({ changes: [insert("t", key)], producer: { id: "runner", epoch } });
  await write(zombie, "z1", 1);
  await write(runner, "r1", 2);
  const late = await Promise.allSettled([write(zombie, "z2", 1), write(zombie, "z3", 1)]);
  for (const one of late) expect(one).toMatchObject({ status: "rejected", reason: { code: "fenced" } });
  await expect(write(zombie, "z4", 1)).rejects.toThrow(/epoch 1 was overtaken by epoch 2/);
  await write(runner, "r2", 2);
  // What it writes without that name is not the runner's work.
  await zombie.write({ changes: [insert("t", "free")] });
  expect((await messagesOf(url)).map(({ key }) => key)).toEqual(["z1", "r1", "r2", "free"]);
});

test("two writers with the same id and epoch: the second is told, instead of losing what it writes", async () => {
  const url = server.fresh();
  const [first, second] = [server.open(url), server.open(url)];
  const producer = { id: "twin", epoch: 3 };
  for (const n of [1, 2, 3]) await first.write({ changes: [insert("t", `f${n}`)], producer });
  await expect(second.write({ changes: [insert("t", "s1")], producer })).rejects.toMatchObject({ code: "fenced" });
  await expect(second.write({ changes: [insert("t", "s2")], producer })).rejects.toThrow(/its own epoch/);
  await first.write({ changes: [insert("t", "f4")], producer });
  expect(Object.keys(rows(first, "t"))).toEqual(["f1", "f2", "f3", "f4"]);
});

test("a writer whose server has forgotten it goes on", async () => {
  const url = server.fresh();
  const log = server.open(url);
  const producer = { id: "runner", epoch: 1 };
  await log.write({ changes: [insert("t", "a")] });
  await log.write({ changes: [insert("t", "b")], producer });
  // As a server does that was restored without its list of writers.
  const text = JSON.stringify(await messagesOf(url));
  const forgetful = server.open(url, {
    fetch: async (input, init) => {
      const seq = new Headers(init?.headers).get("producer-seq");
      if (init?.method !== "POST" || seq === "0") return fetch(input, init);
      return new Response("", { status: 409, headers: { "producer-expected-seq": "0" } });
    },
  });
  await forgetful.write({ changes: [insert("t", "c")] });
  await forgetful.write({ changes: [insert("t", "d")] });
  expect(Object.keys(rows(forgetful, "t"))).toEqual(["a", "b", "c", "d"]);
  expect(text).not.toContain('"d"');
});

test("the same txid counts once for every reader, however it came into the stream", async () => {
  const url = server.fresh();
  const log = server.open(url);
  await log.write({ changes: [{ ...insert("t", "a", { n: 1 }), operation: "upsert" }], txid: "once" });
  await append(url, ...(await messagesOf(url)));
  await log.write({ changes: [insert("t", "b")] });
  const late = server.open(url);
  // Known from the stream, not from having written it.
  await late.ready;
  const again = (n: number) =>
    late.write({ changes: [{ ...insert("t", "a", { n }), operation: "upsert" }], txid: "once" });
  expect(await again(1)).toMatchObject({ applied: true });
  await expect(again(9)).rejects.toMatchObject({ code: "conflict" });
  expect(await messagesOf(url)).toHaveLength(3);
  for (const one of [log, late]) expect(rows(one, "t")["a"]).toEqual({ value: { n: 1 }, version: 1 });
  const twice = { changes: [insert("t", "c")], txid: "at the same time" };
  expect((await Promise.all([log.write(twice), log.write(twice)])).map(({ applied }) => applied)).toEqual([true, true]);
});

test("writes before it is ready wait for the stream; listeners of before get all rows at once", async () => {
  const url = server.fresh();
  const first = server.open(url);
  const written = first.write({ changes: [insert("t", "a")] });
  expect(first.position).toBe("-1");
  expect(await written).toMatchObject({ applied: true });
  const second = server.open(url);
  const heard: unknown[] = [];
  second.table("t").subscribe((changes, reset) => heard.push([changes.map(({ key }) => key), reset]));
  await second.ready;
  expect(heard).toEqual([[["a"], true]]);
});

test("a stream that is not there is created, or is an error", async () => {
  const url = server.fresh();
  const strict = server.open(url, { create: false });
  await expect(strict.ready).rejects.toMatchObject({ code: "not_found" });
  await expect(strict.write({ changes: [insert("t", "a")] })).rejects.toThrow(/`create: true`/);
  await server.open(url).ready;
  await server.open(url, { create: false }).ready;
});

test("a stream that is deleted ends the log with an error that says so", async () => {
  const url = server.fresh();
  const errors: unknown[] = [];
  const log = server.open(url, { onError: (error) => errors.push(error) });
  await log.write({ changes: [insert("t", "a")] });
  await fetch(url, { method: "DELETE" });
  await expect(log.write({ changes: [insert("t", "b")] })).rejects.toMatchObject({ code: "not_found" });
  expect(errors).toEqual([expect.objectContaining({ code: "not_found" })]);
  expect(log.table("t").size).toBe(1);
});

test("a stream that is replaced by a shorter one is not read on as if it were the same", async () => {
  const url = server.fresh();
  const errors: unknown[] = [];
  const log = server.open(url, { onError: (error) => errors.push(error) });
  await log.write({ changes: [insert("t", "a", { text: "x".repeat(500) })] });
  const position = log.position;
  await fetch(url, { method: "DELETE" });
  await fetch(url, { method: "PUT", headers: { "content-type": "application/json" } });
  await until(() => errors.length > 0);
  expect(errors).toEqual([expect.objectContaining({ code: expect.stringMatching(/conflict|not_found/) })]);
  expect(log.position).toBe(position);
});

test("a closed stream is read to its end and takes no more writes", async () => {
  const url = server.fresh();
  const log = server.open(url);
  await log.write({ changes: [insert("t", "a")] });
  await fetch(url, { method: "POST", headers: { "stream-closed": "true" } });
  await expect(log.write({ changes: [insert("t", "b")] })).rejects.toMatchObject({ code: "read_only" });
  const late = server.open(url);
  await late.ready;
  expect(late.table("t").size).toBe(1);
});

test("a stream that is none of JSON is refused", async () => {
  const url = server.fresh();
  await fetch(url, { method: "PUT", headers: { "content-type": "text/plain" }, body: "hello" });
  await expect(server.open(url).ready).rejects.toMatchObject({ code: "bad_config" });
});

test("headers are asked for each request; who may not write is told, and may be allowed later", async () => {
  const url = server.fresh();
  let token = "old";
  const guarded: typeof fetch = async (input, init) => {
    const allowed = new Headers(init?.headers).get("authorization") === "new" || init?.method !== "POST";
    return allowed ? fetch(input, init) : new Response("who are you", { status: 401 });
  };
  const log = server.open(url, { fetch: guarded, headers: async () => ({ authorization: token }) });
  const both = await Promise.allSettled(["a", "b"].map((key) => log.write({ changes: [insert("t", key)] })));
  for (const one of both) expect(one).toMatchObject({ status: "rejected", reason: { code: "not_allowed" } });
  token = "new";
  expect(await log.write({ changes: [insert("t", "a")] })).toMatchObject({ applied: true });
});

test("of writes that wait together one that is refused takes none with it", async () => {
  const url = server.fresh();
  const small: typeof fetch = async (input, init) =>
    String(init?.body ?? "").length > 1000 ? new Response("", { status: 413 }) : fetch(input, init);
  const log = server.open(url, { fetch: small });
  await log.ready;
  const writes = ["a", "b", "c", "d"].map((key) =>
    log.write({ changes: [insert("t", key, { text: (key === "c" ? "x" : "").repeat(2000) })] }),
  );
  const outcomes = await Promise.allSettled(writes);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
  await expect(writes[2]).rejects.toMatchObject({ code: "too_large" });
  expect(Object.keys(rows(log, "t"))).toEqual(["a", "b", "d"]);
});

test("closing fails what is under way, and what comes later", async () => {
  const url = server.fresh();
  const log = server.open(url);
  await log.ready;
  const written = log.write({ changes: [insert("t", "a")] });
  const closed = log.close();
  await expect(written).rejects.toMatchObject({ code: "disconnected" });
  await closed;
  await expect(log.write({ changes: [insert("t", "a")] })).rejects.toMatchObject({ code: "disconnected" });
  const early = server.open(server.fresh());
  await early.close();
  await expect(early.ready).rejects.toMatchObject({ code: "disconnected" });
});

test("two logs race for 200 rows: each has exactly one winner, and both readers agree", async () => {
  const url = server.fresh();
  const logs = [server.open(url), server.open(url)];
  await Promise.all(logs.map((log) => log.ready));
  const keys = Array.from({ length: 200 }, (_, n) => `k${n}`);
  const outcomes: boolean[][] = [];
  // In some rounds many at once, in others one by one.
  for (let start = 0; start < keys.length; start += (start % 3) * 7 + 1) {
    const some = keys.slice(start, start + (start % 3) * 7 + 1);
    const round = some.map((key) =>
      Promise.all(
        logs.map(async (log, by) => {
          const when = [{ table: "t", key, version: 0 }];
          return (await log.write({ changes: [{ ...insert("t", key, { by }), operation: "upsert" }], when })).applied;
        }),
      ),
    );
    outcomes.push(...(await Promise.all(round)));
  }
  expect(outcomes.map((pair) => pair.filter(Boolean).length)).toEqual(keys.map(() => 1));
  const winners = Object.fromEntries(
    keys.map((key, n) => [key, { value: { by: outcomes[n]!.indexOf(true) }, version: 1 }]),
  );
  for (const log of logs) expect(rows(log, "t")).toEqual(winners);
});

test.each(["localhost:4437/v1/stream/x", "/v1/stream/x", "", undefined as never])(
  "what is no address (%j) is refused at once",
  (url) => {
    expect(() => openStreamLog({ url })).toThrow(expect.objectContaining({ code: "bad_config" }));
  },
);
