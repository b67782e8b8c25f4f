import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { firstWords } from "../../src/toolbox/sandbox/bash/node/first-words.ts";

/** A thread of the shell that waits for the value to be another than 1, and tells how that ended. */
async function waiting(timeoutMs: number) {
  const view = new Int32Array(new SharedArrayBuffer(4));
  view[0] = 1;
  const source = `import { parentPort, workerData } from "node:worker_threads";
    parentPort.postMessage("waits");
    const woken = Atomics.wait(workerData, 0, 1, ${timeoutMs});
    parentPort.postMessage([woken, Atomics.load(workerData, 0)]);`;
  const execArgv = ["--import", firstWords(64)];
  const file = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const worker = new Worker(file, { workerData: view, execArgv });
  onTestFinished(async () => void (await worker.terminate()));
  expect(await once(worker, "message")).toEqual(["waits"]);
  return { view, ended: once(worker, "message").then(([end]) => end as unknown) };
}

test("who waits for an answer is not woken by one that came before", async () => {
  const { view, ended } = await waiting(60_000);
  // Woken for nothing, again and again, until one of these finds it waiting.
  while (Atomics.notify(view, 0) === 0) await setTimeout(1);
  await setTimeout(20);
  Atomics.store(view, 0, 2);
  // Between two waits it sees the value itself.
  Atomics.notify(view, 0);
  expect([
    ["ok", 2],
    ["not-equal", 2],
  ]).toContainEqual(await ended);
});

test("a wait still has an end", async () => {
  const { view, ended } = await waiting(50);
  Atomics.notify(view, 0);
  expect(await ended).toEqual(["timed-out", 1]);
});
