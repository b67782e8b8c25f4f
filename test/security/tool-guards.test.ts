// Guards of tools: what they must answer is a plain yes or no. Anything else is an error, and the safe answer is taken.
import { jsonSchema } from "ai";
import {
  action,
  type ActionAuthorization,
  type ToolCallDecision,
  type ToolResultDecision,
  type TurnConfig,
} from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { openThink, outputsSent, serverTool } from "../think/harness.ts";

const callPay: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "pay", input: { amount: 5 }, toolCallId: "c1" }] } : "Done.";

interface Setup {
  readonly needsApproval?: unknown;
  readonly toolApproval?: unknown;
  readonly before?: () => unknown;
  readonly after?: () => unknown;
}

async function paying({ needsApproval, toolApproval, before, after }: Setup) {
  const model = scriptedModel(callPay);
  const paid: unknown[] = [];
  const pay = Object.assign(
    serverTool((input) => {
      paid.push(input);
      return "the secret";
    }),
    needsApproval === undefined ? {} : { needsApproval },
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { pay };
        }
        override beforeTurn(): TurnConfig {
          return toolApproval === undefined ? {} : { toolApproval: toolApproval as never };
        }
        override beforeToolCall() {
          return before?.() as ToolCallDecision | undefined;
        }
        override afterToolCall() {
          return after?.() as ToolResultDecision | undefined;
        }
      },
  );
  await kit.ask("Pay.");
  return Object.assign(kit, { model, paid });
}

const ODD: readonly (readonly [string, unknown])[] = [
  ["undefined", undefined],
  ["null", null],
  ["0", 0],
  ["an empty object", {}],
  ["a list", []],
  ["1", 1],
];

test.each([...ODD, ["NaN", Number.NaN] as const])(
  "a needsApproval that answers %s asks a person, and onError hears why",
  async (_name, said) => {
    const kit = await paying({ needsApproval: () => said });
    expect(kit.paid).toEqual([]);
    expect((await kit.agent()).pendingApprovals()).toHaveLength(1);
    expect(kit.takeErrors()).toEqual([expect.stringContaining("needsApproval")]);
  },
);

test.each([
  ["a word that is none", "deny"],
  ["a no", false],
  ["a yes", true],
  ["an object of another type", { type: "refused" }],
])("a toolApproval that answers %s asks a person, and onError hears why", async (_name, said) => {
  for (const toolApproval of [{ pay: said }, { pay: () => said }, () => said]) {
    const kit = await paying({ toolApproval });
    expect(kit.paid).toEqual([]);
    expect((await kit.agent()).pendingApprovals()).toHaveLength(1);
    expect(kit.takeErrors()).toEqual([expect.stringContaining("toolApproval")]);
  }
});

test.each([
  ["an action that is none", { action: "deny" }],
  ["a no", false],
  ["a yes", true],
  ["an object without an action", { allowed: false }],
  ["a word", "block"],
])("a beforeToolCall that answers %s lets nothing run, and the model reads so", async (_name, said) => {
  const kit = await paying({ before: () => said });
  expect(kit.paid).toEqual([]);
  expect(JSON.stringify(outputsSent(kit.model, 1).c1)).toContain("beforeToolCall");
});

test.each([
  ["an object without an action", { output: "less" }],
  ["a yes", true],
  ["a no", false],
  ["a word", "withhold"],
  ["a list", []],
])("an afterToolCall that answers %s withholds the result, and onError hears why", async (_name, said) => {
  const kit = await paying({ after: () => said });
  expect(kit.paid).toHaveLength(1);
  expect(JSON.stringify(await kit.stored())).not.toContain("the secret");
  expect(kit.takeErrors()).toEqual([expect.stringContaining("afterToolCall")]);
});

test("an afterToolCall that throws withholds the result: it may have been about to", async () => {
  const kit = await paying({
    after: () => {
      throw new Error("cannot read what the tool gave");
    },
  });
  expect(JSON.stringify(await kit.stored())).not.toContain("the secret");
  expect(kit.takeErrors()).toEqual(["cannot read what the tool gave"]);
});

interface ActionSetup {
  readonly turn?: () => unknown;
  readonly one?: () => unknown;
  readonly permissions?: unknown;
  readonly approval?: () => unknown;
}

async function acting({ turn, one, permissions, approval }: ActionSetup) {
  const model = scriptedModel(callPay);
  const paid: unknown[] = [];
  const pay = action({
    description: "Pays.",
    inputSchema: jsonSchema<{ amount: number }>({ type: "object" }),
    ...(permissions !== undefined && { permissions: permissions as readonly string[] }),
    ...(approval !== undefined && { approval: approval as () => boolean }),
    execute: (input) => {
      paid.push(input);
      return "paid";
    },
  });
  const kit = await openThink((Base) => {
    class Acting extends Base {
      override getModel() {
        return model;
      }
      override getActions() {
        return { pay };
      }
    }
    if (turn !== undefined) Object.assign(Acting.prototype, { authorizeTurn: () => turn() as ActionAuthorization });
    if (one !== undefined) Object.assign(Acting.prototype, { authorizeAction: () => one() as ActionAuthorization });
    return Acting;
  });
  await kit.ask("Pay.");
  return Object.assign(kit, { model, paid });
}

test.each([
  ["undefined", undefined],
  ["null", null],
  ["a word", "yes"],
  ["1", 1],
  ["a truthy `allowed`", { allowed: "yes" }],
  ["permissions that are one text", { allowed: true, grantedPermissions: "pay-all" }],
])("an authorizeTurn that answers %s grants nothing, and onError hears why", async (_name, said) => {
  const kit = await acting({ turn: () => said, permissions: ["pay"] });
  expect(kit.paid).toEqual([]);
  expect(JSON.stringify(outputsSent(kit.model, 1).c1)).toContain("did not run");
  expect(kit.takeErrors().join()).toContain("authorizeTurn");
});

test.each([
  ["null", null],
  ["a word", "yes"],
  ["1", 1],
  ["a truthy `allowed`", { allowed: 1 }],
  ["permissions that are one text", { allowed: true, grantedPermissions: "pay-all" }],
])("an authorizeAction that answers %s denies, and onError hears why", async (_name, said) => {
  const kit = await acting({ one: () => said, permissions: ["pay"] });
  expect(kit.paid).toEqual([]);
  expect(kit.takeErrors().join()).toContain("authorizeAction");
});

test.each([
  ["nothing", () => undefined],
  ["one text", () => "pay"],
  ["a list of other things", () => [1]],
])("an action whose permissions are %s does not run", async (_name, permissions) => {
  const kit = await acting({ permissions });
  expect(kit.paid).toEqual([]);
  expect(kit.takeErrors().join()).toContain("permissions");
});

test.each([
  ["undefined", undefined],
  ["null", null],
  ["0", 0],
  ["1", 1],
])("an action whose approval answers %s asks a person, and onError hears why", async (_name, said) => {
  const kit = await acting({ approval: () => said });
  expect(kit.paid).toEqual([]);
  expect((await kit.agent()).pendingApprovals()).toHaveLength(1);
  expect(kit.takeErrors().join()).toContain("approval");
});
