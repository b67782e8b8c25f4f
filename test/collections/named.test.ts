import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** What collections are asked to do, by name. */
const requirements = [
  "Generation effects",
  "Chunk streaming",
  "Tool execution effects",
  "Runner lifecycle primitives",
  "Webhook runtime modes",
  "Persistent agents",
  "Worker agents",
  "Agent composition",
  "Multi-agent sessions",
  "Agent persistence",
  "Multi-tab sync",
  "Tool execution model",
  "Cancellation",
  "Idempotency",
  "Approvals",
  "Recovery",
  "Option factories",
  "Durable Streams webhook integration",
  "Agent sleep/wake",
];

/** What always holds: docs/collections.md, "What is promised". */
const invariants = Array.from({ length: 10 }, (_, index) => index + 1);

const here = "test/collections";
const tests = globSync(`${here}/**/*.test.{ts,tsx}`)
  .filter((path) => !path.endsWith("named.test.ts"))
  .map((path) => readFileSync(path, "utf8"))
  .join("\n");

test.each(requirements)("there is a test that names the requirement %s", (name) => {
  expect(tests).toContain(`requirement: ${name}: `);
});

test.each(invariants)("there is a test that names invariant %i", (number) => {
  expect(tests).toContain(`invariant ${number}: `);
});
