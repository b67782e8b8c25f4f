import { expect, test } from "vitest";
import { type BackgroundOwner, BackgroundWork } from "./summary-ahead.ts";
import { type CompactionOutcome, OTHER_WAY, type Prepared } from "./compaction-job.ts";

type Result = Prepared | Extract<CompactionOutcome, { ok: false }>;

const MADE = { seq: 1 } as Prepared;

function open() {
  const seen = { kept: [] as Promise<void>[], ready: [] as string[], failed: [] as unknown[] };
  const owner: BackgroundOwner = {
    keepAwake: (work) => void seen.kept.push(work),
    ready: (session) => void seen.ready.push(session),
    failed: (error) => void seen.failed.push(error),
  };
  return { ...seen, work: new BackgroundWork(owner), settled: () => Promise.all(seen.kept) };
}

test("one for each session: what is ready is told, and taken once", async () => {
  const { work, settled, ready } = open();
  work.start("a", async () => MADE);
  work.start("a", () => Promise.reject(new Error("a second one")));
  expect([work.has("a"), work.isFree("a"), work.isFree("b")]).toEqual([true, false, true]);
  await settled();
  expect(ready).toEqual(["a"]);
  expect([work.take("a"), work.take("a"), work.isFree("a")]).toEqual([MADE, undefined, true]);
});

test("what came to nothing, or threw, makes room for another; only what nobody stopped is told", async () => {
  const { work, settled, failed, ready } = open();
  work.start("a", async () => ({ ok: false, error: "no", tried: true }));
  work.start("b", () => Promise.reject(new Error("disk")));
  const stopped = Promise.withResolvers<Result>();
  let why: unknown;
  work.start("c", (signal) => {
    signal.addEventListener("abort", () => (why = signal.reason));
    return stopped.promise;
  });
  work.stop("c");
  stopped.reject(new Error("gone"));
  await settled();
  expect(failed).toEqual([new Error("disk")]);
  expect(why).toEqual(new Error(OTHER_WAY));
  expect([ready, work.isFree("a"), work.isFree("b"), work.isFree("c")]).toEqual([[], true, true, true]);
});

test("closed: what is under way is stopped, and nothing more is begun", async () => {
  const { work, settled, ready, failed } = open();
  const late = Promise.withResolvers<Result>();
  let aborted = false;
  work.start("a", (signal) => {
    signal.addEventListener("abort", () => (aborted = true));
    return late.promise;
  });
  const waits = work.wait("a", new AbortController().signal);
  work.close();
  let begun = false;
  work.start("b", async () => ((begun = true), MADE));
  late.resolve(MADE);
  await settled();
  await waits;
  expect({ aborted, begun, ready, failed, free: work.isFree("b") }).toEqual({
    ...{ aborted: true, begun: false, ready: [], failed: [], free: false },
  });
});
