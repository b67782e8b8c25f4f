import { afterAll, expect, onTestFinished, test } from "vitest";
import { jailed, sandbox } from "./jailed.ts";

afterAll(async () => await sandbox.dispose());

/** Longer than a short program takes: it has ended before the host looks again. */
const BUSY_MS = 100;

test(
  "a host that is too busy to look at once still learns how a short run went",
  jailed(async () => {
    const still = new Int32Array(new SharedArrayBuffer(4));
    const busy = setInterval(() => Atomics.wait(still, 0, 0, BUSY_MS), 1);
    onTestFinished(() => clearInterval(busy));
    expect(await sandbox.run({ language: "bash", code: "exit 7" })).toMatchObject({ status: "ok", exitCode: 7 });
  }),
);
