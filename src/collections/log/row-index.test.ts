import { createCollection, localOnlyCollectionOptions } from "@tanstack/db";
import { expect, test } from "vitest";
import { logCollectionOptions } from "./collection-options.ts";
import { RowState } from "./row-state.ts";
import type { ConfirmedRow, RowLog, RowTable } from "./row-log.ts";
import type { RowChange } from "../../wire/row-frames.ts";
import { indexRows } from "./row-index.ts";

interface Item {
  id: string;
  shelf?: string;
  seq?: number;
}

/** A table whose changes the test makes itself, and which counts how often all of it was read. */
function open() {
  const state = new RowState((error) => {
    throw error;
  });
  const inner = state.table("items");
  let scans = 0;
  const table: RowTable = {
    get: (key) => inner.get(key),
    rows: () => (scans++, inner.rows()),
    get size() {
      return inner.size;
    },
    version: (key) => inner.version(key),
    subscribe: (listener) => inner.subscribe(listener),
  };
  const log = { source: "test", ready: new Promise<void>(() => {}), table: () => table } as unknown as RowLog;
  const items = createCollection(
    logCollectionOptions<Item>({ log, name: "items", getKey: (row) => row.id, orderAs: "seq" }),
  );
  const change = (...changes: Omit<RowChange, "table">[]) =>
    state.emit(state.apply({ changes: changes.map((one) => ({ table: "items", ...one })) }).changes);
  const put = (id: string, shelf?: string) =>
    change({ key: id, operation: "upsert", value: { id, ...(shelf === undefined ? {} : { shelf }) } });
  const reset = (rows: readonly ConfirmedRow[]) => {
    state.clear("items");
    const all = rows.map((row) => ({ ...row, table: "items", operation: "insert" }) as const);
    for (const one of all) state.adopt(one);
    state.emitTable("items", all, true);
  };
  const touched: string[][] = [];
  const index = () =>
    indexRows(
      items,
      (row) => row.shelf,
      (names) => touched.push([...names].toSorted()),
    );
  return { put, change, reset, index, touched, scans: () => scans };
}

const ids = (rows: readonly Item[]) => rows.map(({ id }) => id);

test("rows are under their name in the order of the log, wherever they come from", () => {
  const { put, change, index } = open();
  put("a", "x");
  put("b", "y");
  put("c");
  const shelves = index();
  expect(ids(shelves.rows("x"))).toEqual(["a"]);
  put("d", "x");
  put("c", "x");
  expect(shelves.rows("x")).toEqual([
    { id: "a", shelf: "x", seq: 1 },
    { id: "c", shelf: "x", seq: 3 },
    { id: "d", shelf: "x", seq: 4 },
  ]);
  put("a", "y");
  change({ key: "c", operation: "delete" });
  expect(ids(shelves.rows("x"))).toEqual(["d"]);
  expect(ids(shelves.rows("y"))).toEqual(["a", "b"]);
  put("b");
  put("a");
  expect([...shelves.names()]).toEqual(["x"]);
  expect(shelves.rows("y")).toEqual([]);
});

test("a row that was deleted and has come again is behind the others, also within one write", () => {
  const { put, change, index } = open();
  const shelves = index();
  put("a", "x");
  put("b", "x");
  change({ key: "a", operation: "delete" }, { key: "a", operation: "insert", value: { id: "a", shelf: "x" } });
  expect(ids(shelves.rows("x"))).toEqual(["b", "a"]);
});

test("it tells of the names that a write has touched: where a row came from, where it is, and where it stays", () => {
  const { put, change, index, touched } = open();
  put("a", "x");
  index();
  expect(touched).toEqual([]);
  put("a", "y");
  put("a", "y");
  put("b");
  change({ key: "a", operation: "delete" });
  expect(touched).toEqual([["x", "y"], ["y"], [], ["y"]]);
});

test("a reset leaves only what came with it, and touches all names before and behind it", () => {
  const { put, reset, index, touched } = open();
  put("a", "x");
  put("b", "y");
  const shelves = index();
  reset([
    { key: "c", value: { id: "c", shelf: "z" }, version: 1, order: 9 },
    { key: "a", value: { id: "a", shelf: "z" }, version: 1, order: 1 },
  ]);
  expect([...shelves.names()]).toEqual(["z"]);
  expect(ids(shelves.rows("z"))).toEqual(["a", "c"]);
  expect(touched).toEqual([["x", "y", "z"]]);
});

test("the table is read once, however often it is looked at and changed; and not followed behind the end", () => {
  const { put, index, touched, scans } = open();
  put("a", "x");
  const before = scans();
  const shelves = index();
  for (let n = 0; n < 20; n++) {
    put(`n${n}`, n % 2 === 0 ? "x" : undefined);
    expect(shelves.rows("x")).toHaveLength(2 + Math.floor(n / 2));
  }
  expect(scans() - before).toBe(1);
  shelves.stop();
  put("b", "x");
  expect(touched).toHaveLength(20);
});

test("a collection that is not on a log is looked at again after each change", () => {
  const plain = createCollection(localOnlyCollectionOptions<Item, string>({ getKey: (row) => row.id }));
  const touched: string[][] = [];
  const shelves = indexRows(
    plain,
    (row) => row.shelf,
    (names) => touched.push([...names].toSorted()),
  );
  plain.insert([{ id: "a", shelf: "x" }, { id: "b", shelf: "y" }, { id: "c" }]);
  expect([ids(shelves.rows("x")), ids(shelves.rows("y", "x")).toSorted()]).toEqual([["a"], ["a", "b"]]);
  plain.update("a", (row) => void (row.shelf = "y"));
  expect([...shelves.names()]).toEqual(["y"]);
  expect(touched.at(-1)).toEqual(["y"]);
  shelves.stop();
  const before = touched.length;
  plain.delete("a");
  expect(touched).toHaveLength(before);
});
