import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { sha256 } from "./hash.ts";

test("texts and bytes of any length have the SHA-256 that others know them by", async () => {
  const known = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex");
  // Around each end of a block, and around the length from which another way is taken.
  for (const length of [0, 1, 3, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1_000, 1_023, 1_024, 1_025, 5_000]) {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 251 + length) % 256);
    expect(await sha256(bytes), `${length} bytes`).toBe(known(bytes));
    expect(await sha256(bytes.subarray(length % 7))).toBe(known(bytes.subarray(length % 7)));
  }
  for (const text of ["abc", '["echo",{"k":0,"tag":"x"}]', "Grüße, 世界 🙂".repeat(20)]) {
    expect(await sha256(text)).toBe(known(text));
  }
});
