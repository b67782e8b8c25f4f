import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Tests that `npm test` leaves out, so that it takes minutes: matrices whose promise a quicker one touches too, pages in
 * a real browser, hundreds of hostile scripts. `npm run test:long` runs them, and `npm run test:rest` as whole as they are.
 */
export const LONG: readonly string[] = [
  "src/context/compactor-random.test.ts",
  "src/session/{search.property,sessions-random}.test.ts",
  "test/actions/crash.test.ts",
  "test/admin/{backup,cli,copies,hostile-host,request}.test.ts",
  "test/browser/{accessible,answers,branches,context,continuity,conversations,helpers,helpers-reach,keyboard}.test.ts",
  "test/browser/{long-history,messenger,phone,tabs,turns}.test.ts",
  "test/chat-client/{chaos,restart,tool-options}.test.tsx",
  "test/chat/{crash-approved,crash-queue,crash-stop,crash-turn,resume-race,writes}.test.ts",
  "test/cloudflare/{conformance,workerd}.test.ts",
  "test/cloudflare/hooks.test.tsx",
  "test/cluster/{conformance,kill}.test.ts",
  "test/collections/agents/crash-points.test.ts",
  "test/collections/claims/{interleavings,processes}.test.ts",
  "test/collections/runner/{odd-runs,restart}.test.ts",
  "test/collections/server/crash.test.ts",
  "test/collections/session/*.test.ts",
  "test/collections/streams/outage.test.ts",
  "test/context/crash.test.ts",
  "test/crash/{awake,child,fiber,fiber-method,fiber-recovery,poison,stop}.test.ts",
  "test/directory/watch*.test.ts",
  "test/disk/{damage,modes}.test.ts",
  "test/examples/{chat,mounted,tools-and-approvals}.test.ts",
  "test/extensions/crash.test.ts",
  "test/host/{notes-example,owned}.test.ts",
  "test/jail/busy-host.test.ts",
  "test/long/{crash,rounds,same-model}.test.ts",
  "test/mcp/conformance-client.test.ts",
  "test/messenger/{cost,crash*,flat,hard,rules,thousand,unjudged}.test.ts",
  "test/messenger/chat-sdk/{crash*,ways}.test.ts",
  "test/package/package.test.ts",
  "test/sandbox/resources.test.ts",
  "test/sessions/{branches-property,crash,crash-side-by-side,wire-random}.test.ts",
  "test/shell/hostile-{bash,python}.test.ts",
  "test/storage/turns.test.ts",
  "test/think/crash-{again,background,context,erase,execute,identity,inbox,model,runaway,stop,tasks}.test.ts",
  "test/think/{failing-writes,interleave*,odd-names,requests-random}.test.ts",
  "test/together/{budgets-random,crash-approval,crash-budgets,crash-clear,crash-detached,crash-stop,crash-tree}.test.ts",
  "test/testing/{crash,tape}.test.ts",
  "test/together/public-restart.test.tsx",
  "test/workspace/crash.test.ts",
];

/** What tests of kill points and of chance ask to know how many they run. */
const SCALES = /\bcrashMatrix\b|\bseedCount\b|\bisWhole\b|\bthinned\b|PERDURE_SEEDS|PERDURE_CRASH_STEP/;

/**
 * The files of `npm test` that leave kill points or seeds out there: they run again where nothing is left out. Found by
 * what they, and the files of `test` that they stand on, mention.
 */
export function scaledFiles(): string[] {
  const long = new Set(globSync([...LONG]));
  const known = new Map<string, boolean>();
  const isScaled = (file: string): boolean => {
    const before = known.get(file);
    if (before !== undefined) return before;
    known.set(file, false);
    const text = readFileSync(file, "utf8");
    const imports = [...text.matchAll(/from "(\.[^"]+)"/g)].map(([, path = ""]) => join(dirname(file), path));
    const found =
      SCALES.test(text) || imports.some((path) => path.startsWith("test/") && existsSync(path) && isScaled(path));
    known.set(file, found);
    return found;
  };
  return globSync(["src/**/*.test.ts", "test/**/*.test.{ts,tsx}"]).filter((file) => !long.has(file) && isScaled(file));
}
