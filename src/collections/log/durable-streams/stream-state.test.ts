import { expect, test } from "vitest";
import { contentOf } from "../receipts.ts";
import type { RowWrite } from "../../../wire/row-frames.ts";
import { encodeWrite } from "./state-events.ts";
import { StreamState } from "./stream-state.ts";

function reader() {
  const outcomes: string[] = [];
  const state = new StreamState({
    onError: (error) => outcomes.push(String(error)),
    onQuarantine: ({ reason }) => outcomes.push(`set aside: ${reason}`),
    onOutcome: (txid, _content, { applied, refused }) => outcomes.push(`${txid}: ${applied ? "applied" : refused}`),
    onConflict: (txid) => outcomes.push(`${txid}: conflict`),
  });
  const rows = () => [...state.table("t").rows()].map(({ key, value, version }) => [key, value, version]);
  return { state, outcomes, rows };
}

const events = (write: RowWrite, txid: string) => encodeWrite(write, txid).map((text): unknown => JSON.parse(text));

const upsert = (key: string, n: number) => ({ table: "t", key, operation: "upsert" as const, value: { n } });

/** Writes of one and of several rows, with and without conditions, some twice, and things that are no writes. */
function story(): unknown[] {
  const when = (key: string, version: number) => [{ table: "t", key, version }];
  const three = events({ changes: [upsert("a", 3), upsert("b", 3), upsert("c", 3)], when: when("a", 1) }, "three");
  return [
    ...events({ changes: [upsert("a", 1)], when: when("a", 0) }, "won"),
    ...events({ changes: [upsert("a", 2)], when: when("a", 0) }, "lost"),
    ...three.slice(0, 2),
    "noise",
    ...three,
    ...three,
    ...three.slice(1),
    { type: "t", key: "d", value: { n: 4 }, headers: { operation: "insert" } },
    ...events({ changes: [{ table: "t", key: "b", operation: "delete" }, upsert("b", 5)] }, "again"),
    ...three.slice(0, 1),
  ];
}

test("what a stream adds up to does not depend on how it was cut into batches", () => {
  const messages = story();
  const whole = reader();
  whole.state.read(messages, "9");
  expect(whole.outcomes).toEqual([
    "won: applied",
    'lost: the row "a" of "t" is at version 1, not 0',
    "set aside: it is part of a write whose end is missing",
    "set aside: it is part of a write whose end is missing",
    "set aside: it is no object",
    "three: applied",
    "set aside: it is part of a write whose beginning is missing",
    "set aside: it is part of a write whose beginning is missing",
    "again: applied",
  ]);
  expect(whole.rows()).toEqual([
    ["a", { n: 3 }, 2],
    ["c", { n: 3 }, 1],
    ["d", { n: 4 }, 1],
    ["b", { n: 5 }, 3],
  ]);
  for (let size = 1; size < messages.length; size++) {
    const cut = reader();
    for (let from = 0; from < messages.length; from += size) {
      cut.state.read(messages.slice(from, from + size), String(from));
    }
    expect(cut.outcomes).toEqual(whole.outcomes);
    expect(cut.rows()).toEqual(whole.rows());
  }
});

test("the position stays before a write whose end has not come, and never goes back", () => {
  const { state } = reader();
  const [first, second] = events({ changes: [upsert("a", 1), upsert("b", 1)] }, "two");
  state.read(events({ changes: [upsert("c", 1)] }, "one"), "1");
  state.read([first], "2");
  expect(state.position).toBe("1");
  expect(state.table("t").size).toBe(1);
  state.read([second], "3");
  expect(state.position).toBe("3");
  expect(state.table("t").size).toBe(3);
});

test("another write under a used name is set aside, whoever reads it, and its writer is told", () => {
  const { state, outcomes, rows } = reader();
  const [first, other] = [1, 2].map((n) => events({ changes: [upsert("a", n)] }, "w"));
  state.read([...(first ?? []), ...(other ?? []), ...(first ?? [])], "1");
  expect(rows()).toEqual([["a", { n: 1 }, 1]]);
  expect(outcomes).toEqual(["w: applied", "set aside: its transaction id stands for another write", "w: conflict"]);
});

test("names of writes are forgotten after a number of writes, by all readers at the same place", () => {
  const once = events({ changes: [upsert("a", 1)] }, "once");
  const others = Array.from({ length: 10_000 }, (_, n) => events({ changes: [upsert("b", n)] }, `w${n}`)).flat();
  const { state } = reader();
  state.read([...once, ...others.slice(1), ...once], "1");
  expect(state.table("t").version("a")).toBe(1);
  state.read([...others.slice(0, 1), ...once], "2");
  expect(state.table("t").version("a")).toBe(2);
  expect(state.receipt("w1", contentOf([upsert("b", 1)]))).toBeUndefined();
  expect(state.receipt("w9999", contentOf([upsert("b", 9999)]))).toMatchObject({ applied: true, position: "1" });
});

test("a row that cannot be JSON is refused", () => {
  const changes = [{ table: "t", key: "a", operation: "insert" as const, value: { n: 1n } }];
  expect(() => encodeWrite({ changes }, "x")).toThrow(/"a" of "t" cannot be written as JSON/);
});
