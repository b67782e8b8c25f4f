// Tools that wait for a person in the middle of their work, and tools that call others.
import { jsonSchema, type ToolSet } from "ai";
import { action, type DurableExecutionOptions, type TurnConfig } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { type NestedOutcome, park } from "perdure/tools";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, outputsSent, serverTool } from "./harness.ts";

const travel: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "travel", input: { to: "Rome" }, toolCallId: "c1" }] } : "Done.";

const stateOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const readState = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as { booked: string[] };

/** Books what it needs, one after the other; a person has to agree to each. */
async function travelling(needs: readonly string[] = ["flight", "hotel"]) {
  const model = scriptedModel(travel);
  const booked: string[] = [];
  const calls: (string | undefined)[] = [];
  const kit = await openThink((Base) => {
    class Talk extends Base {
      override getModel() {
        return model;
      }
      override getTools(): ToolSet {
        const book = serverTool((_input, options: DurableExecutionOptions) => {
          const { resumed } = options;
          calls.push(resumed?.approver);
          const state = resumed === undefined ? { booked: [] } : readState(resumed.state);
          const next = needs[state.booked.length];
          if (resumed !== undefined && next !== undefined) {
            booked.push(next);
            state.booked.push(next);
          }
          const then = needs[state.booked.length];
          if (then === undefined) return state.booked.join(" and ");
          return park({ tool: "book", input: { what: then }, summary: `Book the ${then}?`, state: stateOf(state) });
        });
        return { travel: book };
      }
    }
    return Talk;
  });
  return Object.assign(kit, { model, booked, calls });
}

test("a call parks, asks again, and ends; what was asked is listed by what it is about", async () => {
  const kit = await travelling();
  await kit.ask("Rome.");
  const agent = await kit.agent();
  expect(agent.pendingApprovals()).toMatchObject([
    { toolCallId: "c1", tool: "book", input: { what: "flight" }, summary: "Book the flight?" },
  ]);
  expect((await kit.last())?.parts.at(-1)).toMatchObject({
    ...{ type: "tool-travel", state: "approval-requested" },
    approval: { id: "c1:1", requestReason: "Book the flight?" },
  });
  expect(agent.answerApproval("c1", true, { approver: "anna" })).toBe(true);
  await expect.poll(() => kit.booked).toEqual(["flight"]);
  await kit.stable();
  expect(agent.pendingApprovals()).toMatchObject([{ tool: "book", input: { what: "hotel" } }]);
  expect((await kit.last())?.parts.at(-1)).toMatchObject({ state: "approval-requested", approval: { id: "c1:2" } });
  expect(kit.model.calls).toHaveLength(1);
  expect(agent.answerApproval("c1", true, { approver: "ben" })).toBe(true);
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.stable();
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "flight and hotel" } });
  expect(textIn(await kit.last())).toBe("Done.");
  expect(kit.booked).toEqual(["flight", "hotel"]);
  expect(kit.calls).toEqual([undefined, "anna", "ben"]);
  expect(await kit.rows("SELECT status, approver, state, attempts FROM perdure_tool_call")).toEqual([
    { status: "settled", approver: "ben", state: null, attempts: 3 },
  ]);
});

test("a restart while it is parked changes nothing", async () => {
  const kit = await travelling();
  await kit.ask("Rome.");
  await kit.restart();
  const agent = await kit.agent();
  expect(agent.pendingApprovals()).toMatchObject([{ tool: "book", input: { what: "flight" } }]);
  agent.answerApproval("c1", true);
  await expect.poll(() => kit.booked).toEqual(["flight"]);
  await kit.stable();
  await kit.restart();
  (await kit.agent()).answerApproval("c1", true);
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.stable();
  expect(kit.booked).toEqual(["flight", "hotel"]);
  expect(textIn(await kit.last())).toBe("Done.");
});

test("after a no it is not called again, and what it left is gone", async () => {
  const kit = await travelling();
  await kit.ask("Rome.");
  const agent = await kit.agent();
  agent.answerApproval("c1", false, { reason: "Too far." });
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.stable();
  expect(kit.booked).toEqual([]);
  expect(kit.calls).toHaveLength(1);
  expect(await kit.rows("SELECT status, reason, state FROM perdure_tool_call")).toEqual([
    { status: "denied", reason: "Too far.", state: null },
  ]);
});

test("clients answer too; an answer that was meant for the question before counts for nothing", async () => {
  const kit = await travelling();
  const one = await kit.connect();
  one.request("r1", [user("u1", "Rome.")]);
  await one.done("r1");
  one.approve("c1", true);
  await expect.poll(() => kit.booked).toEqual(["flight"]);
  await expect.poll(async () => (await kit.agent()).pendingApprovals()).toHaveLength(1);
  // The second click of the same person, or the same click in another tab.
  one.approve("c1", true);
  await kit.connect();
  expect(kit.booked).toEqual(["flight"]);
  await new Promise((resolve) => setTimeout(resolve, 450));
  one.approve("c1", true);
  await expect.poll(() => kit.booked).toEqual(["flight", "hotel"]);
  await kit.stable();
});

test("what is too large to keep fails the call, and says so", async () => {
  const model = scriptedModel(travel);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return {
            travel: serverTool(() => park({ tool: "x", input: {}, state: new Uint8Array(17 * 1024 * 1024) })),
          };
        }
      },
  );
  await kit.ask("Rome.");
  expect(JSON.stringify(outputsSent(model, 1))).toContain("too large");
});

test("it goes on with the input that it began with, also where a hook had changed that", async () => {
  const model = scriptedModel(travel);
  const given: unknown[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          const travel = serverTool((input, { resumed }: DurableExecutionOptions) => {
            given.push(input);
            return given.length < 3 ? park({ tool: "book", input: {}, state: resumed?.state ?? stateOf(1) }) : "ok";
          });
          return { travel };
        }
        override beforeToolCall({ input }: { input: unknown }) {
          return { action: "allow", input: { ...(input as object), tenant: "acme" } } as const;
        }
      },
  );
  await kit.ask("Rome.");
  for (const runs of [2, 3]) {
    await kit.restart();
    (await kit.agent()).answerApproval("c1", true);
    await expect.poll(() => given.length).toBe(runs);
    await kit.stable();
  }
  expect(given).toEqual(Array.from({ length: 3 }, () => ({ to: "Rome", tenant: "acme" })));
});

test("what is asked about and no row can hold fails the call, not the turn", async () => {
  const model = scriptedModel(travel);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          const input = { text: "x".repeat(2_000_000) };
          return { travel: serverTool(() => park({ tool: "book", input, state: new Uint8Array() })) };
        }
      },
  );
  expect(await kit.ask("Rome.")).toMatchObject({ status: "completed" });
  expect(JSON.stringify(outputsSent(model, 1))).toContain('The input of \\"book\\" is larger than');
});

/** An agent whose tool `both` calls `inner` as given, and keeps what became of each call. */
async function nesting(
  inner: ToolSet,
  calls: readonly { name: string; input: unknown; approved?: boolean }[],
  config: TurnConfig = {},
) {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "both", input: {}, toolCallId: "c1" }] } : "Done.",
  );
  const outcomes: (NestedOutcome | undefined)[] = [];
  const hooks: string[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return {
            ...inner,
            both: serverTool(async (_input, options: DurableExecutionOptions) => {
              for (const [index, { name, input, approved }] of calls.entries()) {
                const tool = inner[name];
                if (tool === undefined) throw new Error("no such tool");
                outcomes.push(
                  await options.turn?.runNested({ toolName: name, tool, input, index, ...(approved && { approved }) }),
                );
              }
              return "ok";
            }),
          };
        }
        override beforeTurn() {
          return config;
        }
        override beforeToolCall({ toolName, toolCallId }: { toolName: string; toolCallId: string }) {
          hooks.push(`before ${toolName} ${toolCallId}`);
          if (toolName === "blocked") return { action: "block", reason: "Not today." } as const;
          if (toolName === "replaced") return { action: "substitute", output: 7 } as const;
          return undefined;
        }
        override afterToolCall({ toolName, success }: { toolName: string; success: boolean }) {
          hooks.push(`after ${toolName} ${success}`);
        }
      },
  );
  await kit.ask("Go.");
  return { outcomes, hooks, kit };
}

test("calls inside of a call run by the turn's rules and hooks, each with its own key", async () => {
  const keys: (string | undefined)[] = [];
  const add = serverTool<{ a: number }>((input, options: DurableExecutionOptions) => {
    keys.push(options.idempotencyKey);
    return input.a + 1;
  });
  const fail = serverTool(() => {
    throw new Error("broken");
  });
  const { outcomes, hooks, kit } = await nesting({ add, fail, blocked: add, replaced: add }, [
    { name: "add", input: { a: 1 } },
    { name: "fail", input: {} },
    { name: "blocked", input: { a: 1 } },
    { name: "replaced", input: { a: 1 } },
  ]);
  expect(outcomes).toEqual([
    { kind: "output", output: 2 },
    { kind: "error", errorText: "broken" },
    { kind: "error", errorText: "Not today." },
    { kind: "output", output: 7 },
  ]);
  const id = (await kit.last())?.id;
  expect(keys).toEqual([`${id}:c1/0`]);
  expect(hooks).toEqual([
    "before both c1",
    "before add c1/0",
    "after add true",
    "before fail c1/1",
    "after fail false",
    "before blocked c1/2",
    "after blocked false",
    "before replaced c1/3",
    "after replaced true",
    "after both true",
  ]);
});

test("who needs approval outside needs it inside, by the tool's rule and by the turn's", async () => {
  let ran = 0;
  const run = () => ++ran;
  const own = serverTool(run, { needsApproval: true });
  const ruled = serverTool(run);
  const { outcomes } = await nesting(
    { own, ruled, denied: ruled },
    [
      { name: "own", input: {} },
      { name: "ruled", input: {} },
      { name: "denied", input: {} },
      { name: "own", input: {}, approved: true },
    ],
    { toolApproval: { ruled: { type: "user-approval", reason: "Money." }, denied: "denied" } as never },
  );
  expect(outcomes).toEqual([
    { kind: "ask", reason: undefined },
    { kind: "ask", reason: "Money." },
    { kind: "error", errorText: 'The call of "denied" was denied.' },
    { kind: "output", output: 1 },
  ]);
});

test("a tool of the client, a tool that parks, and a rule that throws are errors inside", async () => {
  const parks = serverTool(() => park({ tool: "x", input: {}, state: new Uint8Array() }));
  const client = { ...serverTool(() => 1), execute: undefined } as unknown as ToolSet[string];
  const unsure = serverTool(() => 1, {
    needsApproval: () => {
      throw new Error("cannot tell");
    },
  });
  const { outcomes } = await nesting({ parks, client, unsure }, [
    { name: "parks", input: {} },
    { name: "client", input: {} },
    { name: "unsure", input: {} },
  ]);
  expect(outcomes).toMatchObject([
    { kind: "error", errorText: expect.stringContaining("cannot do so inside") as string },
    { kind: "error", errorText: expect.stringContaining("on the user's device") as string },
    { kind: "error", errorText: "cannot tell" },
  ]);
});

test("arguments that are nested too deeply are an error of the call, not the end of the turn", async () => {
  let ran = 0;
  const model = scriptedModel(({ step }) =>
    step === 0
      ? {
          toolCalls: [
            { toolName: "any", input: JSON.parse(`{"a":${"[".repeat(3_000)}${"]".repeat(3_000)}}`), toolCallId: "c1" },
          ],
        }
      : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { any: serverTool(() => ++ran) };
        }
      },
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(JSON.stringify(outputsSent(model, 1))).toContain("nested deeper than 256 levels");
  expect(ran).toBe(0);
});

test("a question waits as long as the tool says, whatever the agent's settings are", async () => {
  const waitMs = 30 * 24 * 3_600_000;
  const model = scriptedModel(travel);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override approvalTimeoutMs = 60_000;
        override getModel() {
          return model;
        }
        override getTools() {
          return { travel: serverTool(() => park({ tool: "book", input: {}, waitMs, state: new Uint8Array([1]) })) };
        }
      },
  );
  await kit.ask("Rome.");
  const [question] = (await kit.agent()).pendingApprovals();
  // A moment passes between the two.
  expect((question?.expiresAt ?? 0) - (question?.askedAt ?? 0)).toBeGreaterThan(waitMs - 60_000);

  const pay = action({
    description: "Pays.",
    inputSchema: jsonSchema<object>({ type: "object" }),
    durablePause: true,
    execute: () => "paid",
  });
  const { outcomes } = await nesting({ pay } as unknown as ToolSet, [{ name: "pay", input: {} }]);
  expect(outcomes).toMatchObject([{ kind: "ask", waitMs }]);
});
