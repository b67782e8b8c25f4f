import { expect, test } from "vitest";
import type { PerdureError } from "../../../base/error.ts";
import type { RowProducer } from "../../../wire/row-frames.ts";
import { ProducerLanes, StreamWriter } from "./stream-writer.ts";
import { StreamHttp } from "./stream-http.ts";

test("of each producer the lane of its latest epoch is kept; those before it are fenced", () => {
  const lanes = new ProducerLanes();
  for (let epoch = 1; epoch <= 50; epoch++) {
    for (const id of ["ann", "bob"]) {
      const lane = lanes.of({ id, epoch });
      lane.seq++;
      lanes.keep(lane, epoch);
    }
  }
  expect(lanes.size).toBe(2);
  expect(lanes.of({ id: "ann", epoch: 50 })).toEqual({ id: "ann", epoch: 50, seq: 1 });
  expect(lanes.of({ id: "ann", epoch: 49 }).fenced).toMatchObject({ code: "fenced" });
  expect(lanes.of({ id: "ann", epoch: 51 })).toEqual({ id: "ann", epoch: 51, seq: 0 });
});

test("a lane is kept as long as nothing of a later one is in the stream", () => {
  const lanes = new ProducerLanes();
  const first = lanes.of({ id: "ann", epoch: 1 });
  first.seq = 7;
  lanes.keep(first, 1);
  // Asked for, and never taken by the server.
  lanes.of({ id: "ann", epoch: 2 });
  expect(lanes.of({ id: "ann", epoch: 1 })).toBe(first);
});

test("a later epoch of another process shuts out all before it", () => {
  const lanes = new ProducerLanes();
  lanes.keep(lanes.of({ id: "ann", epoch: 1 }), 1);
  lanes.keep(lanes.of({ id: "ann", epoch: 3 }), 5);
  expect(lanes.size).toBe(0);
  for (const epoch of [1, 3, 4]) expect(lanes.of({ id: "ann", epoch }).fenced?.message).toContain("epoch 5");
  expect(lanes.of({ id: "ann", epoch: 5 }).fenced).toBeUndefined();
});

/** A writer whose server judges by epoch and number as the protocol says, and loses the answers it is told to. */
function open() {
  const producers = new Map<string, { epoch: number; seq: number }>();
  const sent: string[] = [];
  const taken: string[] = [];
  let loses = 0;
  const judge = (id: string, epoch: number, seq: number): Response => {
    const known = producers.get(id);
    if (known !== undefined && epoch < known.epoch) {
      return new Response("", { status: 403, headers: { "producer-epoch": String(known.epoch) } });
    }
    if (known?.epoch === epoch && seq <= known.seq) return new Response(undefined, { status: 204 });
    const expected = known?.epoch === epoch ? known.seq + 1 : 0;
    if (seq !== expected) {
      return new Response("", { status: 409, headers: { "producer-expected-seq": String(expected) } });
    }
    producers.set(id, { epoch, seq });
    taken.push(`${id}/${epoch}/${seq}`);
    return new Response("", { status: 200, headers: { "stream-next-offset": String(taken.length) } });
  };
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    if (init?.method === "HEAD") return new Response(undefined, { headers: { "stream-next-offset": "0" } });
    const headers = new Headers(init?.headers);
    const [id = "", epoch, seq] = ["id", "epoch", "seq"].map((name) => headers.get(`producer-${name}`) ?? "");
    sent.push(`${id}/${epoch}/${seq}`);
    const answer = judge(id, Number(epoch), Number(seq));
    if (loses === 0) return answer;
    loses--;
    throw new TypeError("cut off");
  };
  const { signal } = new AbortController();
  const writer = new StreamWriter({
    http: new StreamHttp({ url: "http://server/rows", fetch }, signal),
    signal,
    opened: Promise.resolve(),
    // What was taken has its echo by then.
    reached: async () => pending.forEach((one) => (one.settled = true)),
    onGone: () => {},
    onTrouble: () => {},
  });
  let pending: { settled: boolean }[] = [];
  const write = async (producer: RowProducer): Promise<string> => {
    let error: PerdureError | undefined;
    const outgoing = {
      txid: "t",
      events: ["{}"],
      producer,
      settled: false,
      fail: (reason: PerdureError) => void (error = reason),
    };
    pending = [outgoing];
    writer.send(outgoing);
    await writer.idle();
    return error?.code ?? "taken";
  };
  return { write, sent, taken, lose: () => void loses++ };
}

test("writes of an epoch that was overtaken here are refused without asking the server", async () => {
  const { write, sent } = open();
  expect(await write({ id: "ann", epoch: 1 })).toBe("taken");
  expect(await write({ id: "ann", epoch: 2 })).toBe("taken");
  expect(await write({ id: "ann", epoch: 1 })).toBe("fenced");
  expect(await write({ id: "ann", epoch: 2 })).toBe("taken");
  expect(sent).toEqual(["ann/1/0", "ann/2/0", "ann/2/1"]);
});

test("a write whose answer was lost is sent under the same number, and the next one under the next", async () => {
  const { write, sent, taken, lose } = open();
  lose();
  expect(await write({ id: "ann", epoch: 1 })).toBe("taken");
  expect(await write({ id: "ann", epoch: 1 })).toBe("taken");
  expect(sent).toEqual(["ann/1/0", "ann/1/0", "ann/1/1"]);
  expect(taken).toEqual(["ann/1/0", "ann/1/1"]);
});
