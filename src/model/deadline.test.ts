import { expect, onTestFinished, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import { deadline } from "./call.ts";

interface Part {
  readonly type: string;
}

/** A stream that says what it is told to, when it is told to. */
function feed() {
  const waiting: ((result: IteratorResult<Part, undefined>) => void)[] = [];
  const ready: IteratorResult<Part, undefined>[] = [];
  let asked = 0;
  let closed = 0;
  const put = (result: IteratorResult<Part, undefined>) => {
    const next = waiting.shift();
    if (next === undefined) ready.push(result);
    else next(result);
  };
  return {
    say: (type: string) => put({ done: false, value: { type } }),
    end: () => put({ done: true, value: undefined }),
    asked: () => asked,
    closed: () => closed,
    stream: {
      [Symbol.asyncIterator]: () => ({
        next() {
          asked++;
          const result = ready.shift();
          return result === undefined
            ? new Promise<IteratorResult<Part, undefined>>((resolve) => waiting.push(resolve))
            : Promise.resolve(result);
        },
        async return() {
          closed++;
          return { done: true as const, value: undefined };
        },
      }),
    } satisfies AsyncIterable<Part>,
  };
}

/** Reads a stream to its end. `seen` grows meanwhile; `over` tells how it ended. */
function read(parts: AsyncIterable<Part>, meanwhile: (part: Part) => unknown = () => undefined) {
  const seen: string[] = [];
  const over = (async () => {
    try {
      for await (const part of parts) {
        seen.push(part.type);
        await meanwhile(part);
      }
      return "done";
    } catch (error) {
      return String((error as Error).message);
    }
  })();
  return { seen, over };
}

function begin(timeout: Parameters<typeof deadline>[2]) {
  const clock = manualClock();
  const turn = new AbortController();
  const limits = deadline(clock, turn.signal, timeout);
  onTestFinished(() => {
    limits.end();
    expect(clock.pending()).toBe(0);
  });
  return { clock, turn, limits, model: feed() };
}

test.each([undefined, {}, { toolMs: 5 }])("without a bound (%j) nothing is in the way", async (timeout) => {
  const { clock, turn, limits, model } = begin(timeout);
  expect(clock.pending()).toBe(0);
  expect(limits.signal).toBe(turn.signal);
  expect(limits.each(model.stream)).toBe(model.stream);
  expect(await limits.within(Promise.resolve(7))).toBe(7);
});

test.each([5_000, { stepMs: 5_000 }, { totalMs: 5_000 }, { stepMs: 5_000, totalMs: 9_000 }])(
  "the whole call is bounded by %j, however much it says",
  async (timeout) => {
    const { clock, limits, model } = begin(timeout);
    const { seen, over } = read(limits.each(model.stream));
    for (let second = 1; second <= 4; second++) {
      model.say("text-delta");
      await clock.advance(1_000);
    }
    expect(limits.signal.aborted).toBe(false);
    await clock.advance(1_000);
    expect(await over).toBe("The model did not finish for 5000 ms.");
    expect(seen).toHaveLength(4);
    expect(limits.signal.reason).toMatchObject({ code: "timeout" });
    expect(model.closed()).toBe(1);
  },
);

test("a call that does not begin is given up", async () => {
  const { clock, limits } = begin({ firstChunkMs: 100 });
  const begun = limits.within(new Promise<never>(() => {})).catch((error: unknown) => error);
  await clock.advance(99);
  expect(limits.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(await begun).toMatchObject({ code: "timeout", message: "The model said nothing for 100 ms." });
  expect(limits.signal.aborted).toBe(true);
});

test("a call that fails by itself fails with its own error", async () => {
  const { limits } = begin({ firstChunkMs: 100 });
  await expect(limits.within(Promise.reject(new Error("overloaded")))).rejects.toThrow("overloaded");
});

test("the first part has its own bound, which a stream that only opens does not keep", async () => {
  const { clock, limits, model } = begin({ firstChunkMs: 100 });
  const { seen, over } = read(limits.each(model.stream));
  model.say("model-call-start");
  await clock.advance(60);
  model.say("model-call-response-metadata");
  await clock.advance(40);
  expect(await over).toBe("The model said nothing for 100 ms.");
  expect(seen).toEqual(["model-call-start", "model-call-response-metadata"]);
});

test("once it has said something the first bound is over, and there may be no other", async () => {
  const { clock, limits, model } = begin({ firstChunkMs: 100 });
  const { over } = read(limits.each(model.stream));
  model.say("text-start");
  await clock.advance(0);
  expect(clock.pending()).toBe(0);
  await clock.advance(1_000_000);
  model.end();
  expect(await over).toBe("done");
});

test("the time between two parts is bounded", async () => {
  const { clock, limits, model } = begin({ firstChunkMs: 1_000, chunkMs: 100 });
  const { seen, over } = read(limits.each(model.stream));
  await clock.advance(900);
  for (let i = 0; i < 5; i++) {
    model.say("text-delta");
    await clock.advance(99);
  }
  expect(seen).toHaveLength(5);
  await clock.advance(1);
  expect(await over).toBe("The model said nothing for 100 ms.");
});

test("a sign of life is no part", async () => {
  const { clock, limits, model } = begin({ chunkMs: 100 });
  const { over } = read(limits.each(model.stream));
  model.say("text-delta");
  await clock.advance(60);
  model.say("ping");
  await clock.advance(40);
  expect(await over).toBe("The model said nothing for 100 ms.");
});

test("without a bound of its own the first part has that of the others", async () => {
  const { clock, limits, model } = begin({ chunkMs: 100 });
  const { over } = read(limits.each(model.stream));
  await clock.advance(100);
  expect(await over).toBe("The model said nothing for 100 ms.");
});

test("a slow reader is not the model's fault", async () => {
  const { clock, limits, model } = begin({ chunkMs: 100 });
  let goOn = () => {};
  const { seen, over } = read(limits.each(model.stream), () => new Promise<void>((resolve) => (goOn = resolve)));
  model.say("text-delta");
  await clock.advance(10_000);
  model.say("text-delta");
  goOn();
  await clock.advance(10_000);
  model.end();
  goOn();
  expect(await over).toBe("done");
  expect(seen).toHaveLength(2);
});

test("a stream that ends in time leaves no timer, and is read no further", async () => {
  const { clock, limits, model } = begin({ stepMs: 1_000, firstChunkMs: 100, chunkMs: 50 });
  const { over } = read(limits.each(model.stream));
  model.say("text-delta");
  model.end();
  expect(await over).toBe("done");
  expect(clock.pending()).toBe(1);
  limits.end();
  expect(clock.pending()).toBe(0);
  await clock.advance(10_000);
  expect(limits.signal.aborted).toBe(false);
  expect(model.asked()).toBe(2);
});

test("a reader that leaves closes the stream", async () => {
  const { clock, limits, model } = begin({ stepMs: 1_000, chunkMs: 50 });
  model.say("error");
  model.say("text-delta");
  for await (const part of limits.each(model.stream)) if (part.type === "error") break;
  expect(model.closed()).toBe(1);
  limits.end();
  expect(clock.pending()).toBe(0);
});

test("an error of the stream is its own", async () => {
  const { limits } = begin({ stepMs: 1_000 });
  async function* failing(): AsyncGenerator<Part> {
    yield { type: "text-delta" };
    throw new Error("connection lost");
  }
  expect(await read(limits.each(failing())).over).toBe("connection lost");
});

test("the end of the turn is the end of the call", () => {
  const { turn, limits } = begin({ stepMs: 1_000 });
  turn.abort(new Error("stopped"));
  expect(limits.signal.aborted).toBe(true);
  expect(limits.signal.reason).toMatchObject({ message: "stopped" });
});

test("a turn that was over before is over", () => {
  const turn = AbortSignal.abort(new Error("stopped"));
  const clock = manualClock();
  const limits = deadline(clock, turn, 1_000);
  expect(limits.signal.reason).toMatchObject({ message: "stopped" });
  limits.end();
  expect(clock.pending()).toBe(0);
});

test("after the end of the call the turn may end without it", () => {
  const { turn, limits } = begin({ stepMs: 1_000 });
  limits.end();
  turn.abort();
  expect(limits.signal.aborted).toBe(false);
});
