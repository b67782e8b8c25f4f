import { expect } from "vitest";
import type { Probe, RunResult } from "../../src/toolbox/sandbox/sandbox.ts";
import { createProcessSandbox, type ProcessSandbox } from "../../src/toolbox/sandbox/process/process-sandbox.ts";

/** One for a file: what it needs is looked for once. */
export const sandbox: ProcessSandbox = createProcessSandbox();
let found: Promise<Probe> | undefined;

/**
 * The body of a test that runs programs in a jail. Where the machine has none, the test checks that the sandbox says
 * what is missing and runs nothing.
 */
export function jailed(body: () => Promise<void>): () => Promise<void> {
  return async () => {
    const probe = await (found ??= sandbox.probe());
    if (probe.ok) return await body();
    expect(probe.missing).toMatch(/^(There is no program|User namespaces are closed|Jails need)/);
    expect(await sandbox.run({ language: "argv", code: '["true"]' })).toMatchObject({
      ...{ status: "crashed", message: probe.missing },
    });
  };
}

/** What was printed on one stream. */
export function printed(result: RunResult, level: "stdout" | "stderr" = "stdout"): string {
  return result.logs
    .filter((line) => line.level === level)
    .map(({ text }) => text)
    .join("\n");
}
