import { jsonSchema, type Tool, type ToolSet } from "ai";
import { action, durableTool, type Think, type ToolCallResultContext, type ToolResultDecision } from "perdure";
import { subscribe } from "perdure/node";
import { createExecuteTool } from "perdure/tools";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { user } from "../chat/client.ts";
import { until } from "../support/until.ts";
import { openThink, outputsSent, serverTool } from "./harness.ts";

const SECRET = "hunter2-is-the-password";
const callThenSay: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done";

type Judge = (context: ToolCallResultContext) => ReturnType<Think["afterToolCall"]>;

/** An agent whose results are judged. `lookups` counts how often its tool has run. */
async function judged(judge: Judge, given: Tool = serverTool(() => ({ password: SECRET })), script = callThenSay) {
  const model = scriptedModel(script);
  let lookups = 0;
  const run = given.execute as (...args: unknown[]) => unknown;
  const look = { ...given, execute: (...args: unknown[]) => (lookups++, run(...args)) } as Tool;
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override getModel() {
          return model;
        }
        override getTools(): ToolSet {
          return { look };
        }
        override afterToolCall(context: ToolCallResultContext) {
          return judge(context);
        }
      },
  );
  const part = async () => toolParts((await kit.last()) ?? { id: "", role: "assistant", parts: [] })[0];
  return Object.assign(kit, { model, part, lookups: () => lookups });
}

test.each<[string, ToolResultDecision, unknown]>([
  ["replaces", { action: "replace", output: { password: "***" } }, { password: "***" }],
  ["withholds", { action: "withhold", reason: "Not for you." }, "Not for you."],
  ["withholds without words", { action: "withhold" }, "The result was withheld."],
])("afterToolCall %s a result: the model, the message and clients have what it says", async (_name, said, output) => {
  const changed: unknown[] = [];
  onTestFinished(subscribe("chat:result:changed", ({ payload }) => changed.push(payload)));
  const kit = await judged(() => said);
  const client = await kit.connect();
  client.request("r1", [user("u1", "Look.")]);
  await client.done("r1");
  expect(outputsSent(kit.model, 1)).toMatchObject({ c1: { value: output } });
  expect(await kit.part()).toMatchObject({ state: "output-available", output });
  expect(JSON.stringify(client.frames)).not.toContain(SECRET);
  expect(JSON.stringify(await kit.stored())).not.toContain(SECRET);
  expect(JSON.stringify(await kit.rows("SELECT * FROM perdure_message"))).not.toContain(SECRET);
  // Server code may read what it was.
  const agent = await kit.agent();
  const messageId = (await kit.last())?.id;
  expect(agent.originalToolResult("c1")).toEqual({ output: { password: SECRET } });
  expect(agent.originalToolResult("c1", messageId)).toEqual({ output: { password: SECRET } });
  expect(agent.originalToolResult("c1", "other")).toBe(undefined);
  expect(changed).toMatchObject([{ toolCallId: "c1", toolName: "look", action: said.action }]);
  // It goes with its message.
  client.clear();
  await client.flushed();
  expect(agent.originalToolResult("c1")).toBe(undefined);
});

test("a result that stays what it is has no original beside it", async () => {
  const kit = await judged(() => undefined);
  await kit.ask("Look.");
  expect(await kit.part()).toMatchObject({ output: { password: SECRET } });
  expect((await kit.agent()).originalToolResult("c1")).toBe(undefined);
  expect((await kit.agent()).originalToolResult("nobody")).toBe(undefined);
});

test("the error of a tool can be replaced, and is kept", async () => {
  const broken = serverTool(() => {
    throw new Error(`No access with ${SECRET}`);
  });
  const kit = await judged(({ success }) => (success ? undefined : { action: "replace", output: "later" }), broken);
  await kit.ask("Look.");
  expect(await kit.part()).toMatchObject({ state: "output-available", output: "later" });
  expect((await kit.agent()).originalToolResult("c1")).toEqual({ errorText: `No access with ${SECRET}` });
});

test("a result that replaces another is bounded as any output", async () => {
  const small = durableTool(serverTool(() => SECRET) as Tool, { maxOutputChars: 1_000 });
  const kit = await judged(() => ({ action: "replace", output: "x".repeat(50_000) }), small);
  await kit.ask("Look.");
  expect(String((await kit.part())?.output).length).toBeLessThan(2_000);
});

test.each<[string, (text: string) => Tool]>([
  ["a tool", (text) => durableTool(serverTool(() => text) as Tool, { maxOutputChars: 1_000 })],
  [
    "an action",
    (text) =>
      action({
        description: "Looks.",
        inputSchema: jsonSchema<object>({ type: "object" }),
        maxOutputChars: 1_000,
        execute: () => text,
      }) as unknown as Tool,
  ],
])("what is replaced in a long result of %s is not in what is kept of it", async (_name, made) => {
  const whole = `${"x".repeat(2_000)} ${SECRET} ${"z".repeat(2_000)}`;
  const kit = await judged(
    ({ output }) => ({ action: "replace", output: String(output).replaceAll(SECRET, "***") }),
    made(whole),
  );
  await kit.ask("Look.");
  const shown = JSON.stringify(await kit.part());
  expect(shown.length).toBeLessThan(3_000);
  const names = shown.match(/[0-9a-f]{64}/g) ?? [];
  for (const name of names) expect(await (await fetch(`${kit.url}/files/${name}`)).text()).not.toContain(SECRET);
});

test("a long result that the hook lets be is cut as in any other class, and kept whole", async () => {
  const whole = `${"x".repeat(2_000)} ${SECRET} ${"z".repeat(2_000)}`;
  const seen: unknown[] = [];
  const kit = await judged(
    ({ output }) => void seen.push(output),
    durableTool(serverTool(() => whole) as Tool, { maxOutputChars: 1_000 }),
  );
  await kit.ask("Look.");
  expect(seen).toEqual([whole]);
  const [name = ""] = String((await kit.part())?.output).match(/[0-9a-f]{64}/) ?? [];
  expect(await (await fetch(`${kit.url}/files/${name}`)).text()).toBe(whole);
});

test.each<[string, unknown, string]>([
  ["an action that is none", { action: "witholds" }, "witholds"],
  ["an output that no message can hold", { action: "replace", output: () => 1 }, "cannot be written as JSON"],
])("%s withholds the result, and onError hears why", async (_name, said, error) => {
  const kit = await judged(() => said as ToolResultDecision);
  await kit.ask("Look.");
  expect(await kit.part()).toMatchObject({ state: "output-available", output: "The result was withheld." });
  expect(kit.takeErrors()).toEqual([expect.stringContaining(error)]);
});

test("what a generator yields is not shown before the hook has seen the result, unless the tool says so", async () => {
  const yields = async function* () {
    yield `first ${SECRET}`;
    await Promise.resolve();
    yield `second ${SECRET}`;
  };
  for (const preview of [undefined, "always"] as const) {
    const tool = durableTool(serverTool(yields as never), preview === undefined ? {} : { preview });
    const kit = await judged(() => ({ action: "withhold" }), tool);
    const client = await kit.connect();
    client.request("r1", [user("u1", "Look.")]);
    await client.done("r1");
    expect(JSON.stringify(client.frames).includes(SECRET)).toBe(preview === "always");
  }
});

test.each<[string, () => unknown, object]>([
  ["a result", () => SECRET, { success: true, output: SECRET }],
  [
    "an error",
    () => {
      throw new Error(SECRET);
    },
    { success: false, error: new Error(SECRET) },
  ],
])(
  "a crash between %s and the hook: the hook is asked again, and the tool does not run again",
  async (_n, run, told) => {
    const asked: ToolCallResultContext[] = [];
    const kit = await judged((context) => {
      asked.push(context);
      return asked.length === 1 ? new Promise<undefined>(() => {}) : { action: "withhold" };
    }, serverTool(run));
    void kit.ask("Look.").catch(() => {});
    await until(() => asked.length === 1);
    await kit.nextLife();
    await kit.stable();
    expect(kit.lookups()).toBe(1);
    expect(asked).toMatchObject([told, told]);
    expect(await kit.part()).toMatchObject({ state: "output-available", output: "The result was withheld." });
    expect(JSON.stringify(await kit.stored())).not.toContain(SECRET);
  },
);

test("a crash while the hook thinks about a call that was blocked: the hook is asked again", async () => {
  const asked: unknown[] = [];
  const model = scriptedModel(callThenSay);
  const before: string[] = [];
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override getModel() {
          return model;
        }
        override getTools(): ToolSet {
          return { look: serverTool(() => "ran") };
        }
        override beforeToolCall() {
          before.push("asked");
          return { action: "block", reason: "No." } as const;
        }
        override afterToolCall({ output }: ToolCallResultContext): Promise<undefined> | undefined {
          asked.push(output);
          return asked.length === 1 ? new Promise<undefined>(() => {}) : undefined;
        }
      },
  );
  void kit.ask("Look.").catch(() => {});
  await until(() => asked.length === 1);
  await kit.nextLife();
  await kit.stable();
  expect([asked, before]).toEqual([["No.", "No."], ["asked"]]);
  expect(toolParts((await kit.last()) as never)).toMatchObject([{ output: "No." }]);
});

test("a stop while the hook thinks: nobody is shown the result, and server code can read it", async () => {
  const thinking = Promise.withResolvers<undefined>();
  let asked = 0;
  const kit = await judged(() => (asked++, thinking.promise));
  const asking = kit.ask("Look.");
  await until(() => asked === 1);
  (await kit.agent()).abortAllRequests();
  thinking.resolve(undefined);
  expect(await asking).toMatchObject({ status: "aborted" });
  expect(JSON.stringify(await kit.stored())).not.toContain(SECRET);
  expect((await kit.agent()).originalToolResult("c1")).toEqual({ output: { password: SECRET } });
});

test("an action that was done before is judged again when its output is given again", async () => {
  const refund = action({
    description: "Refunds.",
    inputSchema: jsonSchema<object>({ type: "object" }),
    idempotencyKey: "the-one",
    approval: () => kitTurns > 0,
    execute: () => ({ code: SECRET }),
  });
  let kitTurns = 0;
  const kit = await openThink(
    (Base) =>
      class Talk extends Base {
        override getModel() {
          return scriptedModel(({ step }) =>
            step === 0 ? { toolCalls: [{ toolName: "refund", input: {} }] } : "done",
          );
        }
        override getActions() {
          return { refund };
        }
        override afterToolCall() {
          return { action: "withhold" } as const;
        }
      },
  );
  await kit.ask("Refund.");
  kitTurns++;
  await kit.ask("Again.");
  expect(JSON.stringify(await kit.stored())).not.toContain(SECRET);
  expect((await kit.stored()).flatMap(toolParts)).toMatchObject([
    { output: "The result was withheld." },
    { output: "The result was withheld." },
  ]);
});

test("code in the sandbox reads what the hook has left of a result", async () => {
  const execute = createExecuteTool({ tools: { peek: serverTool(() => SECRET) } as ToolSet });
  const kit = await judged(
    ({ toolName }) => (toolName === "peek" ? { action: "replace", output: "hidden" } : undefined),
    execute as Tool,
    ({ step }) =>
      step === 0
        ? { toolCalls: [{ toolName: "look", input: { code: "return await tools.peek({})" }, toolCallId: "c1" }] }
        : "done",
  );
  await kit.ask("Run it.");
  expect(JSON.stringify(await kit.part())).toContain("hidden");
  expect(JSON.stringify(await kit.stored())).not.toContain(SECRET);
});
