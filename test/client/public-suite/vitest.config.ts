import { fileURLToPath } from "node:url";
import { mergeConfig } from "vitest/config";
import base from "../../../vitest.config.ts";

/*
 * The tests of the public hook, with ours in its place:
 *
 *   npx vitest run --config test/client/public-suite/vitest.config.ts
 */

const hooks = fileURLToPath(new URL("hooks.ts", import.meta.url));

export default {
  ...mergeConfig(base, { resolve: { alias: { "@cloudflare/ai-chat/react": hooks, "agents/react": hooks } } }),
  root: fileURLToPath(new URL("../../..", import.meta.url)),
  test: { ...base.test, name: "public-suite", include: ["test/chat-client/**/*.test.tsx"] },
};
