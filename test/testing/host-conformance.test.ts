import { hostConformance } from "perdure/testing";
import { describe, expect, test } from "vitest";
import { openDiskHost, openMemoryHost } from "./conformance-hosts.ts";

describe("a host on disk", () => {
  test.for(hostConformance(openDiskHost))("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});

describe("a host in memory", () => {
  test.for(hostConformance(openMemoryHost))("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
