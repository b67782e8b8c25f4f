import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What takes longest where nothing is left out, the longest first. */
const SLOW: readonly string[] = [
  "test/collections/session/crash.test.ts",
  "test/together/crash-tree.test.ts",
  "test/think/crash-turn.test.ts",
  "test/together/crash-clear.test.ts",
  "test/think/crash-tasks.test.ts",
  "test/crash/schedule.test.ts",
  "test/think/crash-execute.test.ts",
  "test/chat/crash-queue.test.ts",
  "test/chat/crash-turn.test.ts",
  "test/crash/queue.test.ts",
  "test/together/crash-budgets.test.ts",
  "test/think/interleave.test.ts",
  "test/think/crash-again.test.ts",
  "test/long/crash.test.ts",
  "test/crash/socket.test.ts",
  "test/actions/crash.test.ts",
  "test/browser/helpers.test.ts",
  "test/collections/session/tabs.test.ts",
];

/** Begins with the slowest files, so that no single one of them is left at the end. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = SLOW.findIndex((path) => moduleId.endsWith(path));
      return at === -1 ? SLOW.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
