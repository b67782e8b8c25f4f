import { createProcessSandbox } from "perdure";
import { expect, onTestFinished, test } from "vitest";

/** Longer than a short program takes: it has ended before the host looks again. */
const BUSY_MS = 150;

test("a host that is too busy to look at once still learns how a short run went", async () => {
  const sandbox = createProcessSandbox();
  onTestFinished(() => sandbox.dispose());
  const probe = await sandbox.probe();
  const still = new Int32Array(new SharedArrayBuffer(4));
  const busy = setInterval(() => Atomics.wait(still, 0, 0, BUSY_MS), 1);
  onTestFinished(() => clearInterval(busy));
  const result = await sandbox.run({ language: "bash", code: "exit 7" });
  expect(result).toMatchObject(probe.ok ? { status: "ok", exitCode: 7 } : { status: expect.any(String) as string });
});
