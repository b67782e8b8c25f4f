import { expect, test, vi } from "vitest";
import { createPump } from "./pump.ts";
import type { PumpOptions, PumpOutcome } from "./pump.ts";
import type { Move } from "./watch.ts";

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
