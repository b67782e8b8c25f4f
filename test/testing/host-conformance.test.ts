import { hostConformance } from "perdure/testing";
import { describe, test } from "vitest";
import { openDiskHost, openMemoryHost } from "./conformance-hosts.ts";

describe("a host on disk", () => {
  for (const { name, run } of hostConformance(openDiskHost)) test(name, run);
});

describe("a host in memory", () => {
  for (const { name, run } of hostConformance(openMemoryHost)) test(name, run);
});
