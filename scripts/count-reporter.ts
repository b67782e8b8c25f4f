import type { Reporter, TestModule } from "vitest/node";

/** Ends the output of a test run with one line that says how many tests there were and how they ended. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    let files = 0;
    for (const module of modules) {
      if (module.state() === "failed") files += 1;
      for (const test of module.children.allTests()) count[test.result().state] += 1;
    }
    const total = count.passed + count.failed + count.skipped + count.pending;
    const bad = files > 0 || unhandledErrors.length > 0;
    const trouble = bad ? `, ${files} failed files, ${unhandledErrors.length} unhandled errors` : "";
    const line = `Tests: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped, ${total} total${trouble}`;
    // At exit, because the other reporters write their summary after this hook has run.
    process.once("exit", () => process.stdout.write(`${line}\n`));
  }
}
