import type { RowLog } from "perdure/collections";
import type { AppliedChange } from "perdure/collections/log";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backends } from "./backends.ts";
import type { TestPlace } from "./backends.ts";
import { until } from "../support/until.ts";

const row = (table: string, key: string, value: object = { id: key }) => ({ table, key, value: { ...value } });

/** The rows of a table, in their order. */
const listed = (log: RowLog, table: string) =>
  [...log.table(table).rows()]
    .toSorted((a, b) => a.order - b.order)
    .map(({ key, value, version }) => ({ key, value, version }));

describe.each(backends)("a log of rows: $name", ({ start }) => {
  let place: TestPlace;
  let one: RowLog;
  let other: RowLog;
  beforeAll(async () => {
    place = await start();
    one = await place.open();
    other = await place.open();
  });
  afterAll(() => place.stop());

  /** What a table of the test's own is called: one place serves all tests. */
  let count = 0;
  const table = () => {
    const name = `t${++count}`;
    // A table is followed from when it is first asked for.
    one.table(name);
    other.table(name);
    return name;
  };

  test("who has written can read it, and the others get it under the same version and order", async () => {
    const t = table();
    const receipt = await one.write({ changes: [{ ...row(t, "a", { n: 1 }), operation: "insert" }] });
    expect(receipt).toMatchObject({ applied: true });
    expect(receipt.position <= one.position).toBe(true);
    expect(one.table(t).get("a")).toMatchObject({ key: "a", value: { n: 1 }, version: 1 });
    await other.write({ changes: [{ ...row(t, "b", { n: 2 }), operation: "insert" }] });
    await until(() => one.table(t).size === 2 && other.table(t).size === 2);
    expect(listed(one, t)).toEqual(listed(other, t));
    expect(listed(one, t).map(({ key }) => key)).toEqual(["a", "b"]);
  });

  test("a transaction id stands for one write: the same again counts once, another one is refused", async () => {
    const t = table();
    const change = (n: number) => [{ ...row(t, "a", { n, at: { x: 1, y: 2 } }), operation: "upsert" as const }];
    const txid = `used-${t}`;
    const first = await one.write({ changes: change(1), txid });
    const sameInOtherOrder = [{ ...row(t, "a", { at: { y: 2, x: 1 }, n: 1 }), operation: "upsert" as const }];
    expect(await one.write({ changes: sameInOtherOrder, txid })).toMatchObject({ applied: true });
    await expect(one.write({ changes: change(2), txid })).rejects.toMatchObject({ code: "conflict" });
    await until(() => other.table(t).size === 1);
    await expect(other.write({ changes: change(3), txid })).rejects.toMatchObject({ code: "conflict" });
    expect(first).toMatchObject({ applied: true });
    expect(one.table(t).get("a")).toMatchObject({ value: { n: 1 }, version: 1 });
    // Of two that use one name at once, one is told no.
    const both = await Promise.allSettled([
      one.write({ changes: change(4), txid: `both-${t}` }),
      other.write({ changes: change(5), txid: `both-${t}` }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const kept = both[0]?.status === "fulfilled" ? 4 : 5;
    await until(() => [one, other].every((log) => log.table(t).get("a")?.value.n === kept));
  });

  test("an update replaces the row: a field that is left out is gone", async () => {
    const t = table();
    await one.write({ changes: [{ ...row(t, "a", { n: 1, error: "x" }), operation: "insert" }] });
    await one.write({ changes: [{ ...row(t, "a", { n: 2 }), operation: "update" }] });
    expect(one.table(t).get("a")).toMatchObject({ value: { n: 2 }, version: 2 });
    expect(one.table(t).get("a")?.value).not.toHaveProperty("error");
  });

  test("versions go on across a delete, so that an old condition never holds again", async () => {
    const t = table();
    await one.write({ changes: [{ ...row(t, "a"), operation: "insert" }] });
    await one.write({ changes: [{ table: t, key: "a", operation: "delete" }] });
    expect(one.table(t).get("a")).toBeUndefined();
    expect(one.table(t).version("a")).toBe(2);
    await one.write({ changes: [{ ...row(t, "a"), operation: "insert" }] });
    expect(one.table(t).get("a")?.version).toBe(3);
    const old = { table: t, key: "a", version: 1 };
    const late = await one.write({ changes: [{ ...row(t, "a"), operation: "update" }], when: [old] });
    expect(late).toMatchObject({ applied: false });
    expect(late.refused).toContain("version 3");
  });

  test("what cannot be is refused whole: no second insert, no update or delete of nothing", async () => {
    const t = table();
    await one.write({ changes: [{ ...row(t, "a"), operation: "insert" }] });
    const writes = [
      [
        { ...row(t, "new"), operation: "insert" as const },
        { ...row(t, "a"), operation: "insert" as const },
      ],
      [
        { ...row(t, "new"), operation: "insert" as const },
        { ...row(t, "none"), operation: "update" as const },
      ],
      [
        { ...row(t, "new"), operation: "insert" as const },
        { table: t, key: "none", operation: "delete" as const },
      ],
    ];
    for (const changes of writes) expect(await one.write({ changes })).toMatchObject({ applied: false });
    expect(listed(one, t).map(({ key }) => key)).toEqual(["a"]);
    expect(await one.write({ changes: [{ ...row(t, "a", { n: 9 }), operation: "upsert" }] })).toMatchObject({
      applied: true,
    });
    expect(one.table(t).get("a")).toMatchObject({ value: { n: 9 }, version: 2 });
  });

  test("a write over several tables comes together or not at all, in one call of each listener", async () => {
    const [t, u] = [table(), table()];
    const heard: (readonly AppliedChange[])[] = [];
    const stop = other.table(t).subscribe((changes) => heard.push(changes));
    await one.write({
      changes: [
        { ...row(t, "a"), operation: "insert" },
        { ...row(u, "b"), operation: "insert" },
        { ...row(t, "a", { n: 2 }), operation: "update" },
      ],
    });
    await until(() => other.table(u).size === 1 && heard.length > 0);
    stop();
    expect(heard.map((changes) => changes.map(({ key, operation, version }) => [key, operation, version]))).toEqual([
      [
        ["a", "insert", 1],
        ["a", "update", 2],
      ],
    ]);
    const gone = { table: u, key: "b", version: 7 };
    const refused = await one.write({ changes: [{ ...row(t, "c"), operation: "insert" }], when: [gone] });
    expect(refused.applied).toBe(false);
    expect(one.table(t).get("c")).toBeUndefined();
  });

  test("of two writers that want the same version exactly one gets it, and all agree who", async () => {
    const t = table();
    const keys = Array.from({ length: 20 }, (_, n) => `k${n}`);
    const outcomes = await Promise.all(
      keys.map((key) =>
        Promise.all(
          [one, other].map(async (log, n) => {
            const when = [{ table: t, key, version: 0 }];
            return (await log.write({ changes: [{ ...row(t, key, { by: n }), operation: "upsert" }], when })).applied;
          }),
        ),
      ),
    );
    expect(outcomes.map((pair) => pair.filter(Boolean).length)).toEqual(keys.map(() => 1));
    await until(() => one.table(t).size === 20 && other.table(t).size === 20);
    expect(listed(one, t)).toEqual(listed(other, t));
    for (const [index, key] of keys.entries()) {
      expect(one.table(t).get(key)?.value).toEqual({ by: outcomes[index]!.indexOf(true) });
    }
  });

  test("a write that is sent again under its name counts once", async () => {
    const t = table();
    const write = { txid: `again-${t}`, changes: [{ ...row(t, "a"), operation: "upsert" as const }] };
    expect((await one.write(write)).applied).toBe(true);
    expect((await one.write(write)).applied).toBe(true);
    await one.write({ changes: [{ ...row(t, "b"), operation: "insert" }] });
    expect(one.table(t).get("a")?.version).toBe(1);
    await until(() => other.table(t).size === 2);
    expect(other.table(t).get("a")?.version).toBe(1);
  });

  test("a later epoch of a producer shuts out the earlier one", async () => {
    const t = table();
    const id = `runner-${t}`;
    const insert = (log: RowLog, key: string, epoch: number) =>
      log.write({ changes: [{ ...row(t, key), operation: "insert" }], producer: { id, epoch } });
    await insert(one, "a", 1);
    await insert(other, "b", 2);
    await expect(insert(one, "c", 1)).rejects.toMatchObject({ code: "fenced" });
    await insert(other, "d", 2);
    expect(other.table(t).get("c")).toBeUndefined();
    expect(other.table(t).size).toBe(3);
  });

  test("who opens the log later has all of it at once, and its positions go on", async () => {
    const t = table();
    for (const n of [1, 2, 3]) await one.write({ changes: [{ ...row(t, "a", { n }), operation: "upsert" }] });
    const before = one.position;
    const late = await place.open();
    late.table(t);
    await until(() => late.table(t).size === 1);
    expect(listed(late, t)).toEqual(listed(one, t));
    await late.write({ changes: [{ ...row(t, "b"), operation: "insert" }] });
    await until(() => one.table(t).size === 2);
    expect(one.position > before).toBe(true);
  });

  test("a listener that throws harms nobody else", async () => {
    const t = table();
    const heard: string[] = [];
    const stops = [
      one.table(t).subscribe(() => {
        throw new Error("not my day");
      }),
      one.table(t).subscribe((changes) => heard.push(...changes.map(({ key }) => key))),
    ];
    await one.write({ changes: [{ ...row(t, "a"), operation: "insert" }] });
    for (const stop of stops) stop();
    expect(heard).toEqual(["a"]);
  });

  test.each([
    ["nothing", { changes: [] }],
    ["no key", { changes: [{ table: "t", key: "", operation: "insert" as const, value: {} }] }],
    ["no row", { changes: [{ table: "t", key: "a", operation: "insert" as const }] }],
    [
      "a version that is none",
      {
        changes: [{ table: "t", key: "a", operation: "upsert" as const, value: {} }],
        when: [{ table: "t", key: "a", version: -1 }],
      },
    ],
    ["an operation that is none", { changes: [{ table: "t", key: "a", operation: "put" as "insert", value: {} }] }],
    ["a name that is none", { txid: "", changes: [{ table: "t", key: "a", operation: "upsert" as const, value: {} }] }],
  ])("a write with %s is refused before it is sent", async (_what, write) => {
    await expect(one.write(write)).rejects.toMatchObject({ code: "bad_input" });
  });

  test("what a row was made from can change without changing the row", async () => {
    const t = table();
    const value = { list: [1] };
    await one.write({ changes: [{ ...row(t, "a"), value, operation: "insert" }] });
    value.list.push(2);
    expect(one.table(t).get("a")?.value).toEqual({ list: [1] });
  });
});
