import { expect, onTestFinished, test, vi } from "vitest";
import { PerdureError } from "../../base/error.ts";
import type { RunnerClaim, RunnerLifecycleAdapter, RunnerSession } from "./lifecycle.ts";
import { runWithLifecycle } from "./lifecycle.ts";

interface Fake extends RunnerLifecycleAdapter<string> {
  readonly calls: string[];
}

/** An adapter that writes down what it is called for; `on` may throw in a call's place. */
function fake(claim: RunnerClaim = {}, on: (call: string) => unknown = () => {}): Fake {
  const calls: string[] = [];
  const note = async (call: string) => {
    calls.push(call);
    await on(call);
  };
  return {
    calls,
    claimWake: async (wake) => {
      await note(`claim ${wake}`);
      return claim;
    },
    heartbeat: () => note("heartbeat"),
    checkpoint: (checkpoints) => note(`checkpoint ${checkpoints.map((c) => `${c.source}=${c.cursor}`).join(",")}`),
    complete: (_state, { done }) => note(`complete ${done}`),
    fail: (_state, error) => note(`fail ${error.message}`),
  };
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });

const fencedError = () => new PerdureError("fenced", "Another runner has it.");

test("requirement: Runner lifecycle primitives: claim, work, checkpoint, complete, in this order", async () => {
  const adapter = fake({ fenceToken: "7" });
  const result = await runWithLifecycle("w", adapter, async (session) => {
    expect(session).toMatchObject({ wake: "w", fenceToken: "7", ended: false });
    await session.heartbeat();
    await session.checkpoint([{ source: "a", cursor: "1" }]);
    await session.complete({ done: true });
    expect(session.ended).toBe(true);
    return 5;
  });
  expect(result).toBe(5);
  expect(adapter.calls).toEqual(["claim w", "heartbeat", "checkpoint a=1", "complete true"]);
});

test("invariant 7: a wake that cannot be claimed runs nothing", async () => {
  const adapter = fake({}, (call) => {
    if (call.startsWith("claim")) throw fencedError();
  });
  let ran = false;
  const run = runWithLifecycle("w", adapter, async () => {
    ran = true;
  });
  await expect(run).rejects.toMatchObject({ code: "fenced" });
  expect(ran).toBe(false);
  expect(adapter.calls).toEqual(["claim w"]);
});

test("invariant 8: a checkpoint that goes back is refused before it is sent, each time alike", async () => {
  const adapter = fake();
  await runWithLifecycle("w", adapter, async (session) => {
    await session.checkpoint([
      { source: "a", cursor: "0005" },
      { source: "b", cursor: "0001" },
    ]);
    for (let time = 0; time < 2; time++) {
      await expect(session.checkpoint([{ source: "a", cursor: "0004" }])).rejects.toMatchObject({ code: "bad_input" });
    }
    // One that goes back takes those beside it along.
    const mixed = [
      { source: "b", cursor: "0002" },
      { source: "a", cursor: "0001" },
    ];
    await expect(session.checkpoint(mixed)).rejects.toMatchObject({ code: "bad_input" });
    const twice = [
      { source: "c", cursor: "2" },
      { source: "c", cursor: "1" },
    ];
    await expect(session.checkpoint(twice)).rejects.toMatchObject({ code: "bad_input" });
    await session.checkpoint([{ source: "a", cursor: "0005" }]);
    await session.checkpoint([{ source: "a", cursor: "0006" }]);
    await session.complete({ done: true });
  });
  expect(adapter.calls).toEqual(["claim w", "checkpoint a=0005,b=0001", "checkpoint a=0006", "complete true"]);
});

test("cursors that are numbers need no padding", async () => {
  const adapter = fake();
  await runWithLifecycle("w", adapter, async (session) => {
    await session.checkpoint([{ source: "a", cursor: "9" }]);
    await session.checkpoint([{ source: "a", cursor: "10" }]);
    await expect(session.checkpoint([{ source: "a", cursor: "9" }])).rejects.toMatchObject({ code: "bad_input" });
    await session.complete({ done: true });
  });
  expect(adapter.calls).toEqual(["claim w", "checkpoint a=9", "checkpoint a=10", "complete true"]);
});

test("an adapter brings the order of its own cursors; one that has none lets all pass", async () => {
  const letters = ["monday", "tuesday", "friday"];
  const days = { ...fake(), compareCursors: (a: string, b: string) => letters.indexOf(a) - letters.indexOf(b) };
  await runWithLifecycle("w", days, async (session) => {
    for (const cursor of ["tuesday", "friday"]) await session.checkpoint([{ source: "a", cursor }]);
    await expect(session.checkpoint([{ source: "a", cursor: "monday" }])).rejects.toMatchObject({ code: "bad_input" });
    expect(session.compareCursors("friday", "monday", "a")).toBeGreaterThan(0);
    await session.complete({ done: true });
  });
  expect(days.calls).toEqual(["claim w", "checkpoint a=tuesday", "checkpoint a=friday", "complete true"]);
  const tokens = { ...fake(), compareCursors: () => 0 };
  await runWithLifecycle("w", tokens, async (session) => {
    for (const cursor of ["f00", "bad", "bad"]) await session.checkpoint([{ source: "a", cursor }]);
    await session.complete({ done: true });
  });
  expect(tokens.calls).toEqual(["claim w", "checkpoint a=f00", "checkpoint a=bad", "complete true"]);
});

test("an adapter with a heartbeat and no interval is called all the same: by its lease, or by default", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  for (const options of [{}, { leaseMs: 3_000 }]) {
    const adapter = fake(options);
    await runWithLifecycle("w", adapter, async (session) => {
      while (!adapter.calls.includes("heartbeat")) await vi.advanceTimersToNextTimerAsync();
      expect(session.signal.aborted).toBe(false);
      await session.complete({ done: true });
    });
    expect(adapter.calls).toEqual(["claim w", "heartbeat", "complete true"]);
  }
});

test("checkpoints and the end arrive in the order of the calls, also when nobody waits", async () => {
  const finished: string[] = [];
  const adapter = fake({}, async (call) => {
    // The first one takes its time.
    await new Promise((resolve) => setTimeout(resolve, call.endsWith("=1") ? 20 : 0));
    finished.push(call);
  });
  await runWithLifecycle("w", adapter, async (session) => {
    const all = [1, 2, 3].map((n) => session.checkpoint([{ source: "a", cursor: String(n) }]));
    await Promise.all([...all, session.complete({ done: true })]);
  });
  expect(finished).toEqual(["claim w", "checkpoint a=1", "checkpoint a=2", "checkpoint a=3", "complete true"]);
});

test("a wake is ended once", async () => {
  const adapter = fake();
  await runWithLifecycle("w", adapter, async (session) => {
    await session.complete({ done: false });
    await expect(session.complete({ done: true })).rejects.toMatchObject({ code: "bad_state" });
    await expect(session.fail(new Error("no"))).rejects.toMatchObject({ code: "bad_state" });
    await expect(session.checkpoint([])).rejects.toMatchObject({ code: "bad_state" });
  });
  expect(adapter.calls).toEqual(["claim w", "complete false"]);
});

test("an end that did not get through may be tried again", async () => {
  let tries = 0;
  const adapter = fake({}, (call) => {
    if (call.startsWith("complete") && ++tries === 1) throw new Error("no network");
  });
  await runWithLifecycle("w", adapter, async (session) => {
    await expect(session.complete({ done: true })).rejects.toThrow("no network");
    expect(session.ended).toBe(false);
    await session.complete({ done: true });
  });
  expect(adapter.calls).toEqual(["claim w", "complete true", "complete true"]);
});

test("invariant 9: done is never guessed: neither by a word left out nor by a return", async () => {
  const silent = fake();
  expect(await runWithLifecycle("w", silent, async () => "result")).toBe("result");
  expect(silent.calls).toEqual(["claim w", expect.stringContaining("fail The handler of a wake returned without")]);
  const { fail: _fail, ...noFail } = fake();
  await runWithLifecycle("w", noFail, async () => {});
  expect(noFail.calls).toEqual(["claim w", "complete false"]);
  const vague = fake();
  await runWithLifecycle("w", vague, async (session: RunnerSession<string>) => {
    await expect(session.complete({} as { done: boolean })).rejects.toMatchObject({ code: "bad_input" });
    await session.complete({ done: false });
  });
  expect(vague.calls).toEqual(["claim w", "complete false"]);
});

test("what the handler throws fails the wake and comes out", async () => {
  const adapter = fake();
  const run = runWithLifecycle("w", adapter, async () => {
    throw new Error("no model");
  });
  await expect(run).rejects.toThrow("no model");
  expect(adapter.calls).toEqual(["claim w", "fail no model"]);
});

test("invariant 10: heartbeats are sent while the handler works, and end with it", async () => {
  const adapter = fake({ heartbeatIntervalMs: 2, leaseMs: 10_000 });
  await runWithLifecycle("w", adapter, async (session) => {
    while (adapter.calls.length < 4) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(session.signal.aborted).toBe(false);
    await session.complete({ done: true });
  });
  const count = adapter.calls.length;
  expect(adapter.calls.slice(1, 4)).toEqual(["heartbeat", "heartbeat", "heartbeat"]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(adapter.calls).toHaveLength(count);
});

test("invariant 10: a heartbeat that is answered with fenced stops the work; nothing more is sent", async () => {
  const adapter = fake({ heartbeatIntervalMs: 2 }, (call) => {
    if (call === "heartbeat") throw fencedError();
  });
  const seen: unknown[] = [];
  const run = runWithLifecycle("w", adapter, async (session) => {
    await aborted(session.signal);
    seen.push(session.signal.reason);
    await expect(session.complete({ done: true })).rejects.toMatchObject({ code: "fenced" });
    return "too late";
  });
  await expect(run).rejects.toMatchObject({ code: "fenced" });
  expect(seen).toMatchObject([{ code: "fenced" }]);
  expect(adapter.calls).toEqual(["claim w", "heartbeat"]);
});

test("invariant 10: heartbeats that fail, or hang, for a whole lease lose the work; single ones do not", async () => {
  let failing = 2;
  const flaky = fake({ heartbeatIntervalMs: 2, leaseMs: 10_000 }, (call) => {
    if (call === "heartbeat" && failing-- > 0) throw new Error("no network");
  });
  await runWithLifecycle("w", flaky, async (session) => {
    while (failing > -2) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(session.signal.aborted).toBe(false);
    await session.complete({ done: true });
  });
  const hanging = { ...fake({ heartbeatIntervalMs: 2, leaseMs: 20 }), heartbeat: () => new Promise<void>(() => {}) };
  const dead = fake({ heartbeatIntervalMs: 2, leaseMs: 20 }, (call) => {
    if (call === "heartbeat") throw new Error("no network");
  });
  for (const adapter of [hanging, dead]) {
    const run = runWithLifecycle("w", adapter, async (session) => aborted(session.signal));
    await expect(run).rejects.toMatchObject({ code: "fenced", message: expect.stringContaining("lease") });
  }
});

test("a lost handler's own error is kept behind the loss", async () => {
  const adapter = fake({}, (call) => {
    if (call.startsWith("checkpoint")) throw fencedError();
  });
  const run = runWithLifecycle("w", adapter, async (session) => {
    await session.checkpoint([{ source: "a", cursor: "1" }]).catch(() => {});
    throw new Error("stopped");
  });
  await expect(run).rejects.toMatchObject({ code: "fenced", cause: { message: "stopped" } });
  expect(adapter.calls).toEqual(["claim w", "checkpoint a=1"]);
});

test("a runner that is told to stop gives its wake back as not done", async () => {
  const adapter = fake();
  const stop = new AbortController();
  const run = runWithLifecycle(
    "w",
    adapter,
    async (session) => {
      stop.abort(new Error("deploy"));
      await aborted(session.signal);
      session.signal.throwIfAborted();
    },
    { signal: stop.signal },
  );
  await expect(run).rejects.toThrow("deploy");
  expect(adapter.calls).toEqual(["claim w", "complete false"]);
  await expect(runWithLifecycle("w", adapter, async () => {}, { signal: stop.signal })).rejects.toThrow("deploy");
  expect(adapter.calls).toHaveLength(2);
});

test("a lease of a month, longer than a timer holds, is not over at once", async () => {
  const month = 30 * 86_400_000;
  const adapter = fake({ leaseMs: month, heartbeatIntervalMs: month });
  await runWithLifecycle("w", adapter, async (session) => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(session.signal.aborted).toBe(false);
    await session.complete({ done: true });
  });
  expect(adapter.calls).toEqual(["claim w", "complete true"]);
});
