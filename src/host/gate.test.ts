import { expect, test } from "vitest";
import { Gate } from "./gate.ts";
import type { GatedStore } from "./gate.ts";

/** A store in the hands of the test, and what has left so far. */
function setUp() {
  const left: string[] = [];
  const failures: unknown[] = [];
  let sync: PromiseWithResolvers<void> | undefined;
  const store: { -readonly [K in keyof GatedStore]: GatedStore[K] } = {
    inTransaction: false,
    needed: 0,
    synced: 0,
    durable(): Promise<void> {
      if (store.synced >= store.needed) return Promise.resolve();
      sync ??= Promise.withResolvers<void>();
      return sync.promise;
    },
  };
  const gate = new Gate(
    () => store,
    (error) => failures.push(error),
  );
  return {
    store,
    gate,
    left,
    failures,
    send: (text: string) => gate.pass({ deliver: () => left.push(text) }),
    tick: () => new Promise((resolve) => setTimeout(resolve, 0)),
    synced(upto: number): void {
      store.synced = upto;
      sync?.resolve();
      sync = undefined;
    },
    fail(error: Error): void {
      sync?.reject(error);
      sync = undefined;
    },
  };
}

test("with nothing to wait for it leaves at once", () => {
  const { send, left, gate } = setUp();
  send("a");
  expect(left).toEqual(["a"]);
  expect(gate.empty).toBe(true);
});

test("in a transaction it is held until the commit, in order", () => {
  const { send, left, gate, store } = setUp();
  store.inTransaction = true;
  send("a");
  send("b");
  expect(left).toEqual([]);
  expect(gate.empty).toBe(false);
  store.inTransaction = false;
  gate.committed();
  expect(left).toEqual(["a", "b"]);
});

test("an undone part is forgotten, what was before it is not", () => {
  const { send, left, gate, store } = setUp();
  store.inTransaction = true;
  send("a");
  const mark = gate.mark();
  send("b");
  gate.rolledBack(mark);
  send("c");
  store.inTransaction = false;
  gate.committed();
  expect(left).toEqual(["a", "c"]);
});

test("after a write it waits for the sync of that write, and everything behind it waits too", async () => {
  const { send, left, store, synced, tick } = setUp();
  store.needed = 1;
  send("a");
  store.needed = 2;
  send("b");
  await tick();
  expect(left).toEqual([]);
  synced(1);
  await tick();
  expect(left).toEqual(["a"]);
  send("c");
  synced(2);
  await tick();
  expect(left).toEqual(["a", "b", "c"]);
});

test("what is sent while others wait stays behind them, although nothing more was written", async () => {
  const { send, left, store, synced, tick, gate } = setUp();
  store.needed = 1;
  send("a");
  // Synced by another caller, but the line has not moved yet.
  store.synced = 1;
  send("b");
  expect(left).toEqual([]);
  synced(1);
  await tick();
  expect(left).toEqual(["a", "b"]);
  expect(gate.empty).toBe(true);
});

test("a failed sync drops what waits and says so", async () => {
  const { send, left, store, fail, tick, failures, gate } = setUp();
  store.needed = 1;
  send("a");
  fail(new Error("disk"));
  await tick();
  expect(left).toEqual([]);
  expect(failures).toEqual([new Error("disk")]);
  expect(gate.empty).toBe(true);
});

test("settled and durable fail as the sync does, and say so", async () => {
  const { store, fail, failures, gate } = setUp();
  await gate.settled();
  store.needed = 1;
  const waiting = gate.settled();
  fail(new Error("disk"));
  await expect(waiting).rejects.toThrow("disk");
  expect(failures).toEqual([new Error("disk")]);
});

test("afterTx: at once outside of a transaction; inside, with its fate, after what was sent", () => {
  const { send, left, gate, store } = setUp();
  const told: string[] = [];
  gate.afterTx((committed) => told.push(`outside ${committed}`));
  store.inTransaction = true;
  gate.afterTx((committed) => {
    told.push(`outer ${committed}, ${left.length} sent`);
    send("by the listener");
  });
  const mark = gate.mark();
  gate.afterTx((committed) => told.push(`inner ${committed}`));
  gate.rolledBack(mark);
  send("after");
  expect(told).toEqual(["outside true", "inner false"]);
  store.inTransaction = false;
  gate.committed();
  expect(told).toEqual(["outside true", "inner false", "outer true, 1 sent"]);
  expect(left).toEqual(["after", "by the listener"]);
});

test("what is sent right after the last delivery, before anything else happens, leaves too", async () => {
  const { send, left, gate, store, synced, tick } = setUp();
  store.needed = 1;
  gate.pass({
    deliver() {
      left.push("a");
      queueMicrotask(() => {
        store.needed = 2;
        send("b");
      });
    },
  });
  synced(1);
  await tick();
  expect(left).toEqual(["a"]);
  synced(2);
  await tick();
  expect(left).toEqual(["a", "b"]);
  expect(gate.empty).toBe(true);
});
