// Every promise of the port, kept on the platform's own runtime, which is killed where a case asks for a new life of the host.
import { hostConformance } from "perdure/testing";
import type { ConformanceHost } from "perdure/testing";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { openClient } from "../testing/conformance-hosts.ts";
import { bundled, type Workerd } from "./kit.ts";

let start: () => Promise<Workerd>;
beforeAll(async () => {
  const made = await bundled("conformance-worker.ts");
  start = made.start;
  return made.stop;
});

function hostOn(worker: Workerd): ConformanceHost {
  return {
    call: (name, method, args) => worker.call("Probe", name, method, ...args),
    connect: (name, query) => openClient(`ws://${worker.address}/agents/probe/${encodeURIComponent(name)}?${query}`),
    async reopen() {
      await worker.kill();
      await worker.start();
      return hostOn(worker);
    },
    close: () => worker.kill(),
  };
}

test.for(hostConformance(async () => hostOn(await start())))("$name", async ({ run }) => {
  await expect(run()).resolves.toBeUndefined();
});

test("blobs go into a bucket, under keys of their agent, and with it", async () => {
  const { start: startWithBucket, stop } = await bundled("bucket-worker.ts");
  onTestFinished(stop);
  const worker = await startWithBucket();
  const kept = async () => (await (await fetch(`http://${worker.address}/kept`)).json()) as string[];
  // In one life: the bucket of this Worker is gone with its process.
  const cases = hostConformance(async () => ({ ...hostOn(worker), close: () => Promise.resolve() }));
  const names = ["what was put", "only the window", "deleted and unknown", "many puts"];
  const chosen = cases.filter(({ name }) => names.some((some) => name.startsWith(`blobs: ${some}`)));
  expect(chosen).toHaveLength(names.length);
  for (const { name, run } of chosen) await expect(run(), name).resolves.toBeUndefined();
  const put = ["blobs: deleting in one agent leaves another agent's", "put"];
  const before = new Set(await kept());
  for (const agent of ["b", "c"]) await worker.call("Probe", agent, "act", ...put);
  const made = (await kept()).filter((key) => !before.has(key));
  expect(made).toHaveLength(2);
  await worker.call("Probe", "a", "remove", "b");
  const left = await kept();
  expect(made.filter((key) => left.includes(key))).toHaveLength(1);
});
