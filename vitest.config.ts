import { fileURLToPath } from "node:url";
import { defaultServerConditions } from "vite";
import { configDefaults, defineConfig } from "vitest/config";
import { SlowFirst } from "./scripts/slow-first.ts";
import { LONG, scaledFiles } from "./test/support/long.ts";
import { PATIENCE_MS } from "./test/support/until.ts";

/** `import … from "perdure"` means `src` in tests, not what was last built. */
const condition = "perdure-source";
const conditions = [condition, ...defaultServerConditions];

/** Perdure's own hooks in the place of the public ones. */
const ownHooks = fileURLToPath(new URL("src/client/react.ts", import.meta.url));

/** Which tests run: `quick` (`npm test`), `long` (what that leaves out) or `all`, when nobody says. */
const part = process.env.PERDURE_TESTS ?? "all";
/** Every kill point and every seed. */
const isWhole = process.env.PERDURE_CRASH === "all" && process.env.PERDURE_SEEDS === "all";
/** What the quick run leaves out: files, and of some files most points and seeds. */
const left = part === "long" && isWhole ? [...LONG, ...scaledFiles()] : LONG;

/** The files of a project, as far as they are in that part. */
const filesOf = (include: readonly string[], isOurs: (pattern: string) => boolean) => ({
  include: part === "long" ? left.filter(isOurs) : [...include],
  exclude: [...configDefaults.exclude, ...(part === "quick" ? LONG : [])],
});
const isPage = (pattern: string) => pattern.endsWith(".tsx");

/** What is asked of public and own hooks about both kinds of agent: what differs most between them, and the rest. */
const suite = {
  quick: ["test/chat-client/{approval,stop,stream,tabs}.test.tsx"],
  long: ["test/chat-client/{client-tools,history,overlap,reconnect,recovering,reload}.test.tsx"],
};
const publicSuite =
  process.env.PERDURE_SEEDS === "all"
    ? ["test/chat-client/**/*.test.tsx"]
    : [...(part === "long" ? [] : suite.quick), ...(part === "quick" ? [] : suite.long)];
/** Those of it that have run already. */
const publicDone = part === "long" ? suite.quick : [];
/** The same, and what our hooks do in their own way. */
const ownSuite = [
  ...publicSuite,
  ...(part === "quick"
    ? []
    : [
        "test/chat-client/{clear,errors}.test.tsx",
        "test/client/{history,use-agent-chat}.test.tsx",
        "test/together/public-*.test.tsx",
      ]),
];

/** What hosts write when something fails: many tests are about that. PERDURE_LOG=all shows it. */
const hostLog = /^\[[^\]]+\] .* failed( \(request \S+\))?: /;

/** A worker runs many files: to start one for each takes longer than most tests. */
const sharedWorkers = { isolate: false, setupFiles: ["./test/support/fresh-file.ts"] };

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: [condition] } },
  test: {
    pool: "forks",
    execArgv: [`--conditions=${condition}`],
    // More than there are processors: many tests wait for processes, sockets and pages most of their time.
    maxWorkers: 4,
    // An eleventh of the points of most crash matrices: no number of commits that belong together is a divisor of it.
    // PERDURE_CRASH=all leaves none out.
    env: { PERDURE_CRASH_STEP: process.env.PERDURE_CRASH === "all" ? (process.env.PERDURE_CRASH_STEP ?? "1") : "11" },
    // Generous, for busy machines: nothing waits longer than it must.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: PATIENCE_MS, interval: 20 } },
    globalSetup: ["./test/support/run-folder.ts"],
    sequence: { sequencer: SlowFirst },
    allowOnly: false,
    onConsoleLog: (text) => process.env.PERDURE_LOG === "all" || !hostLog.test(text),
    reporters: ["default", "./scripts/count-reporter.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "main",
          ...filesOf(["{src,test,examples}/**/*.test.ts", "scripts/**/*.test.ts"], (pattern) => !isPage(pattern)),
          ...sharedWorkers,
        },
      },
      {
        // The public hooks keep what they have fetched, by address (each test has its own), and React the window that it
        // was loaded with (see test/clients/dom.ts).
        extends: true,
        test: { name: "pages", ...filesOf(["test/**/*.test.tsx"], isPage), ...sharedWorkers },
      },
      {
        // What clients see of an agent that streams by itself (pages), they see of one that runs step by step.
        extends: true,
        test: {
          name: "public-suite-think",
          include: publicSuite,
          exclude: [...configDefaults.exclude, ...publicDone],
          ...sharedWorkers,
          env: { PERDURE_TALK: "think" },
        },
      },
      {
        // What the public hooks pass, ours pass too: the same files, with another meaning of these two imports.
        extends: true,
        resolve: { alias: { "@cloudflare/ai-chat/react": ownHooks, "agents/react": ownHooks } },
        test: {
          name: "own-hook-think",
          include: ownSuite,
          exclude: [...configDefaults.exclude, ...publicDone],
          ...sharedWorkers,
          env: { PERDURE_TALK: "think" },
        },
      },
    ],
  },
});
