import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

/** `import … from "perdure"` means `src` in tests, not what was last built. */
const condition = "perdure-source";
const conditions = [condition, ...defaultServerConditions];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: [condition] } },
  test: {
    include: ["src/**/*.test.{ts,tsx}", "test/**/*.test.{ts,tsx}", "scripts/**/*.test.ts"],
    pool: "forks",
    execArgv: [`--conditions=${condition}`],
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    allowOnly: false,
    reporters: ["default", "./scripts/count-reporter.ts"],
  },
});
