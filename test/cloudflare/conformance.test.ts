// Every promise of the port, kept on the platform's own runtime, which is killed where a case asks for a new life of the host.
import { hostConformance } from "perdure/testing";
import type { ConformanceHost } from "perdure/testing";
import { beforeAll, expect, test } from "vitest";
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
