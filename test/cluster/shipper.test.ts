import { PerdureError } from "perdure";
import { expect, test } from "vitest";
import type { Append } from "../../src/host/node/cluster/engine.ts";
import { Shipper } from "../../src/host/node/cluster/shipper.ts";

/** A database in the hands of the test. */
function setUp(maxBytes = 1000) {
  const groups: { items: readonly Append[]; answer: PromiseWithResolvers<ReadonlySet<number>> }[] = [];
  const lost: string[] = [];
  const append = (items: readonly Append[]) => {
    const answer = Promise.withResolvers<ReadonlySet<number>>();
    groups.push({ items, answer });
    return answer.promise;
  };
  const shipper = new Shipper({ append }, (root, epoch, why) => lost.push(`${root} ${epoch} ${why.code}`), maxBytes);
  const done: string[] = [];
  const send = (id: string, seq: number, epoch = 1): void => {
    const item = { root: id, epoch, id, seq, template: "t", pages: Buffer.from("page") };
    shipper.append(item).then(
      () => done.push(`${id} ${seq}`),
      (thrown: unknown) => done.push(`${id} ${seq} ${PerdureError.is(thrown) ? thrown.code : String(thrown)}`),
    );
  };
  const tick = () => new Promise((resolve) => setTimeout(resolve, 0));
  const sent = () => groups.map(({ items }) => items.map(({ id, seq }) => `${id}${seq}`).join(" "));
  return { shipper, groups, lost, done, send, tick, sent };
}

test("what is written in one breath goes out together; what comes meanwhile is the next group", async () => {
  const { groups, send, tick, sent, done } = setUp();
  send("a", 1);
  send("b", 1);
  await tick();
  send("a", 2);
  send("c", 1);
  await tick();
  expect(sent()).toEqual(["a1 b1"]);
  expect(done).toEqual([]);
  groups[0]?.answer.resolve(new Set([0, 1]));
  await tick();
  expect(done).toEqual(["a 1", "b 1"]);
  expect(sent()).toEqual(["a1 b1", "a2 c1"]);
});

test("what the statement did not return is refused, and nothing more of that epoch is sent", async () => {
  const { groups, send, tick, sent, done, lost } = setUp();
  send("a", 1);
  send("b", 1);
  await tick();
  send("a", 2);
  send("b", 2);
  groups[0]?.answer.resolve(new Set([1]));
  await tick();
  expect(done).toEqual(["b 1", "a 1 fenced", "a 2 fenced"]);
  expect(lost).toEqual(["a 1 fenced"]);
  expect(sent()).toEqual(["a1 b1", "b2"]);
});

test("what became of a group is not known: none of it is sent again, under the next epoch all is", async () => {
  const { groups, send, tick, sent, done, lost } = setUp();
  send("a", 1);
  send("b", 1);
  await tick();
  send("a", 2);
  groups[0]?.answer.reject(new Error("connection lost"));
  await tick();
  expect(done).toEqual(["a 1 fenced", "b 1 fenced", "a 2 fenced"]);
  expect(lost).toEqual(["a 1 fenced", "b 1 fenced"]);
  send("a", 2, 2);
  await tick();
  expect(sent()).toEqual(["a1 b1", "a2"]);
  groups[1]?.answer.resolve(new Set([0]));
  await tick();
  expect(done.at(-1)).toBe("a 2");
});

test("an order waits for all that was handed over before it", async () => {
  const { shipper, groups, send, tick } = setUp();
  const order: string[] = [];
  send("a", 1);
  void shipper.behind(async () => void order.push("order"));
  send("a", 2);
  await tick();
  expect(order).toEqual([]);
  groups[0]?.answer.resolve(new Set([0]));
  await tick();
  expect(order).toEqual(["order"]);
  expect(groups.length).toBe(2);
});

test("a line that is too long takes no more of an agent: it is given up, not kept for ever", async () => {
  const { shipper, groups, send, tick, done, lost } = setUp(10);
  send("a", 1);
  send("b", 1);
  send("c", 1);
  await tick();
  expect([lost, done, shipper.bytes]).toEqual([["c 1 fenced"], ["c 1 fenced"], 8]);
  groups[0]?.answer.resolve(new Set([0, 1]));
  await tick();
  expect(shipper.bytes).toBe(0);
});
