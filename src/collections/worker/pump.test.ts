import { pause } from "../../base/time.ts";
import { describe, expect, test, vi } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { createPump } from "./pump.ts";
import type { PollOptions, PumpOptions, PumpOutcome } from "./pump.ts";
import type { Move } from "../log/query.ts";

/** A list of work that tells of its moves, as a watch does. */
function list() {
  const items = new Map<string, string>();
  let moves: Move<string>[] = [];
  return {
    put: (id: string) => {
      items.set(id, id);
      moves.push({ to: "in", row: id });
    },
    take: (id: string) => {
      items.delete(id);
      moves.push({ to: "out", row: id });
    },
    read: () => items.values(),
    moves: () => {
      const told = moves;
      moves = [];
      return told;
    },
  };
}

/** Both ways of a pump to know what is gone. */
const ways = ["by all", "by moves"] as const;

function start(way: (typeof ways)[number], run: PumpOptions<string>["run"], more: Partial<PumpOptions<string>> = {}) {
  const work = list();
  const pump = createPump<string>({
    read: work.read,
    ...(way === "by moves" ? { moves: work.moves } : {}),
    idOf: (id) => id,
    run,
    giveUp: () => {},
    ...more,
  });
  return { work, pump };
}

test.each(ways)("runs in order, one behind the other, and takes what comes in the middle (%s)", async (way) => {
  const ran: string[] = [];
  let busy = 0;
  const { work, pump } = start(way, async (id) => {
    expect(++busy).toBe(1);
    if (id === "a") {
      work.put("c");
      pump.wake();
    }
    await Promise.resolve();
    busy--;
    ran.push(id);
    return "done";
  });
  work.put("a");
  work.put("b");
  pump.wake();
  pump.wake();
  await pump.idle();
  expect(ran).toEqual(["a", "b", "c"]);
});

test.each(ways)("what was gone and comes back is new work; what never left is not (%s)", async (way) => {
  const ran: string[] = [];
  const { work, pump } = start(way, async (id) => {
    ran.push(id);
    return "done";
  });
  work.put("a");
  pump.wake();
  await pump.idle();
  pump.wake();
  await pump.idle();
  expect(ran).toEqual(["a"]);
  work.take("a");
  pump.wake();
  await pump.idle();
  work.put("a");
  pump.wake();
  await pump.idle();
  expect(ran).toEqual(["a", "a"]);
  // In and out between two looks.
  work.take("a");
  work.put("a");
  work.take("a");
  pump.wake();
  await pump.idle();
  work.put("a");
  pump.wake();
  await pump.idle();
  expect(ran).toEqual(["a", "a", "a"]);
});

test.each(ways)("what is only hidden is not gone (%s)", async (way) => {
  const ran: string[] = [];
  let hidden = true;
  const run = async (id: string): Promise<PumpOutcome> => {
    ran.push(id);
    return "done";
  };
  const { work, pump } = start(way, run, { isGone: () => !hidden });
  work.put("a");
  pump.wake();
  await pump.idle();
  work.take("a");
  pump.wake();
  await pump.idle();
  work.put("a");
  pump.wake();
  await pump.idle();
  expect(ran).toEqual(["a"]);
  work.take("a");
  hidden = false;
  pump.wake();
  await pump.idle();
  work.put("a");
  pump.wake();
  await pump.idle();
  expect(ran).toEqual(["a", "a"]);
});

test("what failed comes again, and is given up after its last try", async () => {
  vi.useFakeTimers();
  try {
    const tries: number[] = [];
    const givenUp: string[] = [];
    const run = async (_id: string, { attempt }: { attempt: number }): Promise<PumpOutcome> => {
      tries.push(attempt);
      throw new Error(`try ${attempt}`);
    };
    const { work, pump } = start("by moves", run, {
      retry: { maxAttempts: 3, delayMs: 10 },
      giveUp: (id, error) => void givenUp.push(`${id}: ${error.message}`),
    });
    work.put("a");
    pump.wake();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(tries).toEqual([1, 2, 3]);
    expect(givenUp).toEqual(["a: try 3"]);
    pump.wake();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(tries).toHaveLength(3);
  } finally {
    vi.useRealTimers();
  }
});

test("work that is nobody's now waits for a wake, and does not turn in circles", async () => {
  let open = false;
  let looks = 0;
  const { work, pump } = start("by moves", async () => {
    looks++;
    return open ? "done" : { later: true };
  });
  work.put("a");
  pump.wake();
  await pump.idle();
  expect(looks).toBe(1);
  open = true;
  pump.wake();
  await pump.idle();
  expect(looks).toBe(2);
});

test("dispose aborts, waits for what runs, and does not wait for itself", async () => {
  const { work, pump } = start("by moves", async (_id, { signal }) => {
    await pump.dispose(5);
    expect(signal.aborted).toBe(true);
    return "done";
  });
  work.put("a");
  pump.wake();
  await pump.idle();
  await pump.dispose();
  expect(pump.disposed).toBe(true);
});

test("dispose while it reads: nothing is started", async () => {
  const gate = Promise.withResolvers<void>();
  let runs = 0;
  const read = async () => {
    await gate.promise;
    return ["a"];
  };
  const pump = createPump<string>({ read, idOf: (id) => id, run: async () => (runs++, "done"), giveUp: () => {} });
  pump.wake();
  await settled();
  const over = pump.dispose();
  gate.resolve();
  await over;
  await settled();
  expect(runs).toBe(0);
});

test.each([
  ["still waits for it", false],
  ["after dispose leaves no timer behind", true],
])("a run that is to be done again later %s", async (_what, disposed) => {
  const later = 1_234_567;
  vi.useFakeTimers();
  // Not the number of all timers: other tests of this process may still end theirs.
  const timers = vi.spyOn(globalThis, "setTimeout");
  try {
    const gate = Promise.withResolvers<PumpOutcome>();
    const pump = createPump<string>({ read: () => ["a"], idOf: (id) => id, run: () => gate.promise, giveUp: () => {} });
    pump.wake();
    await vi.advanceTimersByTimeAsync(0);
    const over = disposed ? pump.dispose(0) : undefined;
    await vi.advanceTimersByTimeAsync(0);
    await over;
    gate.resolve({ later: true, ms: later });
    await vi.advanceTimersByTimeAsync(0);
    expect(timers.mock.calls.filter(([, ms]) => ms === later)).toHaveLength(disposed ? 0 : 1);
    await pump.dispose(0);
  } finally {
    timers.mockRestore();
    vi.useRealTimers();
  }
});

test("work for a year from now is not for now", async () => {
  let runs = 0;
  const later: PumpOutcome = { later: true, ms: 365 * 86_400_000 };
  const run = async () => (runs++, later);
  const pump = createPump<string>({ read: () => ["a"], idOf: (id) => id, run, giveUp: () => {} });
  pump.wake();
  await settled();
  await pump.dispose();
  expect(runs).toBe(1);
});

test("a look that failed is taken again, although nobody wakes it", async () => {
  const errors: string[] = [];
  const ran = Promise.withResolvers<void>();
  const pump = createPump<string>({
    read: () => {
      if (errors.length < 2) throw new Error("not now");
      return ["a"];
    },
    idOf: (id) => id,
    run: async () => (ran.resolve(), "done"),
    giveUp: () => {},
    retry: { delayMs: 1, maxAttempts: 1 },
    onError: (error) => errors.push(error.message),
  });
  pump.wake();
  await ran.promise;
  expect(errors).toEqual(["not now", "not now"]);
  await pump.dispose();
});

const settled = () => new Promise((resolve) => setTimeout(resolve, 10));

const DAY_MS = 86_400_000;

/** The same work for a pump that lists it and for one that asks for it. */
const kinds = {
  listed: (run: PollOptions["poll"], more: Partial<PollOptions> = {}) =>
    createPump<string>({
      ...more,
      read: () => ["work"],
      idOf: (id) => id,
      run: (_id, context) => run(context),
      giveUp: (_id, error) => more.giveUp?.(error),
    }),
  polled: (poll: PollOptions["poll"], more: Partial<PollOptions> = {}) => createPump({ ...more, poll }),
};

describe.each(Object.entries(kinds))("a pump whose work is %s", (_kind, make) => {
  test("goes on at once, at a wake, after a time, and ends", async () => {
    const clock = manualClock();
    const outcomes: PumpOutcome[] = ["again", { later: true }, { later: true, ms: 1_000 }, "done", "again"];
    let runs = 0;
    const pump = make(async () => outcomes[runs++]!, { clock });
    pump.wake();
    await pump.idle();
    expect(runs).toBe(2);
    pump.wake();
    await pump.idle();
    expect(runs).toBe(3);
    // A time that must have passed is not shortened by a wake.
    pump.wake();
    await clock.advance(999);
    expect(runs).toBe(3);
    await clock.advance(1);
    expect(runs).toBe(4);
    pump.wake();
    await clock.advance(DAY_MS);
    expect(runs).toBe(4);
    expect(clock.pending()).toBe(0);
  });

  test("what comes during a run is not missed", async () => {
    let runs = 0;
    const pump = make(async () => {
      if (++runs === 1) pump.wake();
      return { later: true };
    });
    pump.wake();
    await pump.idle();
    expect(runs).toBe(2);
    await pump.dispose();
  });

  test("a retry in 25 days, longer than a timer holds, is not made before", async () => {
    const clock = manualClock();
    const tries: number[] = [];
    const retry = { maxAttempts: 3, delayMs: 25 * DAY_MS, maxDelayMs: 25 * DAY_MS };
    const givenUp = vi.fn<() => void>();
    const run = async ({ attempt }: { attempt: number }) => {
      tries.push(attempt);
      if (tries.length !== 2) throw new Error("not yet");
      return "again" as const;
    };
    const pump = make(run, { clock, retry, giveUp: givenUp });
    pump.wake();
    await clock.advance(25 * DAY_MS - 1);
    expect(tries).toEqual([1]);
    // A success in between: failures in a row count.
    await clock.advance(1);
    expect(tries).toEqual([1, 2, 1]);
    await clock.advance(50 * DAY_MS);
    expect(tries).toEqual([1, 2, 1, 2, 3]);
    expect(givenUp).toHaveBeenCalledOnce();
    await pump.dispose();
  });

  test("in real time too", async () => {
    let tries = 0;
    const retry = { delayMs: 25 * DAY_MS, maxDelayMs: 25 * DAY_MS };
    const run = async () => {
      tries++;
      throw new Error("not yet");
    };
    const pump = make(run, { retry });
    pump.wake();
    await settled();
    await pump.dispose();
    expect(tries).toBe(1);
  });

  test.each([
    ["throws", () => fail("onError")],
    ["rejects", async () => fail("onError")],
  ])("a function for errors that %s stops nothing, and has an owner", async (_how, onError) => {
    const told = vi.spyOn(console, "error").mockImplementation(() => {});
    try {
      let tries = 0;
      const over = Promise.withResolvers<void>();
      const run = async (): Promise<PumpOutcome> => (++tries < 3 ? fail("run") : "done");
      const pump = make(run, {
        onError,
        retry: { delayMs: 1, maxAttempts: 3, retryable: () => true },
        giveUp: () => over.resolve(),
      });
      pump.wake();
      await vi.waitFor(() => expect(tries).toBe(3));
      await pump.idle();
      await pump.dispose();
      expect(told).toHaveBeenCalledTimes(2);
    } finally {
      told.mockRestore();
    }
  });

  test("dispose tells what runs why", async () => {
    const reason = new Error("enough");
    const seen = Promise.withResolvers<unknown>();
    const pump = make(async ({ signal }) => {
      signal.addEventListener("abort", () => seen.resolve(signal.reason));
      await seen.promise;
      return "again";
    });
    pump.wake();
    await settled();
    await pump.dispose(1_000, reason);
    expect(await seen.promise).toBe(reason);
  });
});

test("a look that failed, and a function for errors that throws: it looks again", async () => {
  const told = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    const ran = Promise.withResolvers<void>();
    let looks = 0;
    const pump = createPump<string>({
      read: () => (++looks < 3 ? fail("read") : ["a"]),
      idOf: (id) => id,
      run: async () => (ran.resolve(), "done"),
      retry: { delayMs: 1 },
      onError: () => fail("onError"),
    });
    pump.wake();
    await ran.promise;
    await pump.dispose();
    expect(told).toHaveBeenCalledTimes(2);
  } finally {
    told.mockRestore();
  }
});

test("what says whether a failure is worth another try, and throws, says no", async () => {
  const givenUp = Promise.withResolvers<string>();
  const pump = createPump({
    poll: async () => fail("run"),
    retry: { delayMs: 1, retryable: () => fail("retryable") },
    giveUp: (error) => givenUp.resolve(error.message),
  });
  pump.wake();
  expect(await givenUp.promise).toBe("run");
  await pump.dispose();
});

function fail(text: string): never {
  throw new Error(text);
}

test("a pump that may wait for ever does wait for what runs", async () => {
  let over = false;
  const run = async () => {
    await pause(20);
    over = true;
    return "done" as const;
  };
  const pump = createPump({ read: () => ["work"], idOf: (item) => item, run, giveUp: () => {} });
  pump.wake();
  await pause(5);
  await pump.dispose(Number.POSITIVE_INFINITY);
  expect(over).toBe(true);
});
