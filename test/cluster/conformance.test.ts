// What every host must do, on PostgreSQL: each new life of the host begins with an empty cache.
import { hostConformance } from "perdure/testing";
import type { ConformanceHost, ConformanceProbe } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPostgres, type Postgres } from "../support/postgres.ts";
import { start } from "../testing/conformance-hosts.ts";

let postgres: Postgres;
beforeAll(async () => {
  postgres = await openPostgres();
});
afterAll(() => postgres.stop());

async function openClusterHost(probe: ConformanceProbe): Promise<ConformanceHost> {
  const url = await postgres.database();
  const life = (): Promise<ConformanceHost> =>
    start(
      probe,
      { cluster: { url } },
      async (stop) => {
        await stop();
        return life();
      },
      () => undefined,
    );
  return life();
}

describe("a cluster of one", () => {
  test.for(hostConformance(openClusterHost))("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
