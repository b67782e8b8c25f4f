import { afterAll, expect } from "vitest";
import type { Capabilities, Json, RunResult } from "perdure/sandbox";
import { createQuickJsSandbox, type QuickJsOptions } from "perdure/tools";

/** One sandbox for a file of tests. */
export function sharedSandbox(options: QuickJsOptions = {}) {
  const sandbox = createQuickJsSandbox({ lanes: { max: 2 }, ...options });
  afterAll(async () => sandbox.dispose());
  const run = async (code: string, more: Partial<Parameters<typeof sandbox.run>[0]> = {}): Promise<RunResult> =>
    sandbox.run({ language: "js", code, ...more });
  return {
    sandbox,
    run,
    /** What the code returns; fails with what went wrong. */
    async value(code: string, can?: Capabilities): Promise<Json | undefined> {
      const result = await run(code, can === undefined ? {} : { can });
      if (result.status !== "ok") throw new Error(JSON.stringify(result));
      return result.value;
    },
    /** The message of the error that the code ends with. */
    async failure(code: string, can?: Capabilities): Promise<string> {
      const result = await run(code, can === undefined ? {} : { can });
      if (result.status !== "error") throw new Error(JSON.stringify(result));
      return `${result.error.name}: ${result.error.message}`;
    },
    /** Whatever came before, the next run is as good as the first. */
    async stillWorks(): Promise<void> {
      expect(await run("return 6 * 7")).toMatchObject({ status: "ok", value: 42 });
    },
  };
}
