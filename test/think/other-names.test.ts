// Options under the names that they have in the public packages: refused with what to use, never left unread.
import { jsonSchema } from "ai";
import { agentTool, type AgentHost, skills, Think } from "perdure";
import { ExtensionManager } from "perdure/extensions";
import { scriptedModel } from "perdure/testing";
import { createExecuteTool, Workspace } from "perdure/tools";
import { expect, test } from "vitest";
import { openThink, systemOf } from "./harness.ts";

const LOADER = { get: () => undefined };

test.each<[string, () => unknown, RegExp]>([
  // @ts-expect-error there are no loaders
  ["createExecuteTool({ loader })", () => createExecuteTool({ tools: {}, loader: LOADER }), /sandbox/],
  [
    "createExecuteTool({ globalOutbound })",
    // @ts-expect-error it is `network`
    () => createExecuteTool({ tools: {}, globalOutbound: null }),
    /network: createEgress/,
  ],
  // @ts-expect-error it is a limit
  ["createExecuteTool({ timeout })", () => createExecuteTool({ tools: {}, timeout: 1000 }), /limits: \{ wallMs \}/],
  // @ts-expect-error it is `fromBucket`
  ["skills.r2", () => skills.r2(LOADER, { prefix: "skills/" }), /skills\.fromBucket\(bucket, \{ prefix \}\)/],
  // @ts-expect-error there are no loaders
  ["skills.runner({ loader })", () => skills.runner({ loader: LOADER }), /Leave it out/],
  // @ts-expect-error no sandbox
  ["ExtensionManager({ loader })", () => new ExtensionManager({ loader: LOADER }), /loader must be true/],
  // @ts-expect-error it belongs to an agent
  ["Workspace({ sql })", () => new Workspace({ sql: {} }), /this\.createWorkspace/],
  // @ts-expect-error it is `largeFiles`
  ["Workspace({ r2 })", () => new Workspace({ host: {} as AgentHost, r2: {} }), /bucketFiles\(bucket\)/],
  // @ts-expect-error it needs its agent
  ["Workspace({})", () => new Workspace({}), /host is missing/],
])("%s is refused with what to use", (_, use, words) => {
  expect(use).toThrow(expect.objectContaining({ code: "bad_config", message: expect.stringMatching(words) }) as Error);
});

test("a model is told which agents it can hand work to", async () => {
  const model = scriptedModel(["Fine."]);
  class Researcher extends Think {}
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          const inputSchema = jsonSchema<{ query: string }>({ type: "object" });
          return { research: agentTool(Researcher, { description: "Look into one topic.", inputSchema }) };
        }
      },
    { children: { Researcher } },
  );
  await kit.ask("Hi.");
  expect(systemOf(model)).toContain("other agents, which know only what you tell them: Researcher (research).");
});
