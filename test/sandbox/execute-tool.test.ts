import { jsonSchema, tool, type Tool } from "ai";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import type { DurableExecutionOptions } from "perdure";
import { createExecuteTool, createQuickJsSandbox, type ExecuteToolOptions } from "perdure/tools";
import type { ParkedCall, NestedCall, NestedOutcome } from "perdure/tools";

const sandbox = createQuickJsSandbox();
afterAll(async () => sandbox.dispose());

const sent: unknown[] = [];
const tools = {
  add: tool({
    description: "Adds two numbers.",
    inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
    execute: ({ a, b }) => a + b,
  }),
  send: tool({
    description: "Sends a mail.",
    inputSchema: z.object({ to: z.string() }),
    needsApproval: true,
    execute: (input) => {
      sent.push(input);
      return { sent: input.to };
    },
  }),
  "list-files": tool({ inputSchema: jsonSchema({ type: "object", properties: {} }), execute: () => ["a.txt"] }),
  fail: tool({
    inputSchema: z.object({}),
    execute: (): string => {
      throw new Error("the disk is full");
    },
  }),
  onDevice: tool({ description: "Runs elsewhere.", inputSchema: z.object({}) }),
} satisfies Record<string, Tool>;

const make = (more: Partial<ExecuteToolOptions> = {}) => createExecuteTool({ tools, sandbox, ...more });

/** Calls the tool as an engine would. */
async function call(made: Tool, code: string, more: Partial<DurableExecutionOptions> = {}): Promise<unknown> {
  const handed: DurableExecutionOptions = { toolCallId: "c1", messages: [], context: undefined, ...more };
  return made.execute?.({ code } as never, handed as never);
}

/** A turn with the rule that `send` has to be asked about. Writes down what it is asked to run. */
function fakeTurn() {
  const calls: NestedCall[] = [];
  return {
    calls,
    turn: {
      runNested: async (nested: NestedCall): Promise<NestedOutcome> => {
        calls.push(nested);
        if (nested.toolName === "send" && nested.approved !== true)
          return { kind: "ask", reason: "It leaves the house." };
        try {
          const output: unknown = await nested.tool.execute?.(
            nested.input as never,
            { toolCallId: "n", messages: [], context: undefined } as never,
          );
          return { kind: "output", output };
        } catch (thrown) {
          return { kind: "error", errorText: (thrown as Error).message };
        }
      },
    },
  };
}

function parkedOf(output: unknown): ParkedCall {
  if (typeof output !== "object" || output === null || !("question" in output)) throw new Error(JSON.stringify(output));
  return output as ParkedCall;
}

test("the description declares the tools that code can call", () => {
  const description = String(make().description);
  expect(description).toContain("/** Adds two numbers. */\n  add(args: { a: number; b?: number }): Promise<unknown>;");
  expect(description).toContain('"list-files"(args?: {}): Promise<unknown>;');
  expect(description).not.toContain("onDevice");
  expect(description).not.toContain("tools.search");
  expect(description).toContain("There is no network.");
});

test("code calls tools, and its result and what it printed come back", async () => {
  const output = await call(
    make(),
    "const n: number = await tools.add({ a: 2, b: 3 }); console.log('n', n); console.error('e'); return { n, files: await codemode['list-files']() }",
  );
  expect(output).toEqual({ result: { n: 5, files: ["a.txt"] }, logs: "n 5\n[error] e" });
});

test("code without a return is told how to see a value", async () => {
  expect(await call(make(), "const a = 1;")).toEqual({
    result: null,
    note: expect.stringContaining("return") as string,
  });
});

test.each<[string, string, RegExp]>([
  [
    "an unknown tool",
    "await tools.remove({})",
    /There is no tools\.remove\. There are: add, send, list-files, fail\. \(line 1/,
  ],
  ["an input that does not fit", "await tools.add({ a: 'x' })", /The input of "add" does not fit its schema/],
  ["a tool that fails", "await tools.fail({})", /the disk is full/],
  [
    "an approval without a turn",
    "await tools.send({ to: 'x' })",
    /"send" needs a person's approval, and there is no way to wait for one from inside of code here/,
  ],
  ["a mistake in the code", "const a = 1;\nreturn a.b.c;", /^TypeError: .*\(line 2, column \d+\)$/],
  ["a mistake in the syntax", "const a = 1;\nconst b = ;", /^SyntaxError: .*\(line 2, column 11\)$/],
  ["too much output", "return 'x'.repeat(2e6)", /limit: output/],
  ["a loop", "for (;;) {}", /limit: (cpu|wall)/],
])("%s is said to the model", async (_name, code, expected) => {
  const output = (await call(make({ limits: { cpuMs: 200 } }), code)) as { error?: string };
  expect(output.error).toMatch(expected);
});

test("inputs are checked before the code runs", () => {
  const schema = make().inputSchema as { validate(value: unknown): { success: boolean } };
  expect(schema.validate({ code: "return 1" })).toMatchObject({ success: true });
  for (const bad of [{}, { code: "" }, { code: 1 }, null, "return 1", { code: "x".repeat(300_000) }]) {
    expect(schema.validate(bad)).toMatchObject({ success: false });
  }
});

test("with a turn each call goes through it, under its number", async () => {
  const { turn, calls } = fakeTurn();
  expect(
    await call(make(), "return [await tools.add({ a: 1, b: 1 }), await tools['list-files']()]", { turn }),
  ).toMatchObject({ result: [2, ["a.txt"]] });
  expect(calls.map(({ toolName, input, index, approved }) => [toolName, input, index, approved])).toEqual([
    ["add", { a: 1, b: 1 }, 0, undefined],
    ["list-files", {}, 1, undefined],
  ]);
});

test("who is asked sees what would be sent, also behind a long text", async () => {
  const { turn } = fakeTurn();
  const code = "return tools.send({ to: 'a@b.example', text: 'z'.repeat(50_000), copy: 'mallory@c.example' })";
  const { summary = "" } = parkedOf(await call(make(), code, { turn })).question;
  expect(summary).toContain('"to":"a@b.example"');
  expect(summary).toContain('"copy":"mallory@c.example"');
  expect(summary.length).toBeLessThan(2_000);
});

test("a call that has to be asked about parks the code, and it goes on after the yes", async () => {
  sent.length = 0;
  const { turn, calls } = fakeTurn();
  const code =
    "const n = await tools.add({ a: 1, b: 1 }); console.log('before'); const mail = await tools.send({ to: 'a@b.example' }); console.log('after'); return { n, mail, last: await tools.add({ a: n, b: 40 }) }";
  const { question } = parkedOf(await call(make(), code, { turn }));
  expect(question).toMatchObject({
    tool: "send",
    input: { to: "a@b.example" },
    summary: 'The code wants to call "send" (It leaves the house.) with {"to":"a@b.example"}',
  });
  expect(sent).toEqual([]);
  // Another copy of the tool, as after a restart.
  const again = createExecuteTool({ tools, sandbox: createQuickJsSandbox() });
  const output = await call(again, code, { turn, resumed: { state: question.state, approver: "ann" } });
  expect(output).toEqual({ result: { n: 2, mail: { sent: "a@b.example" }, last: 42 }, logs: "before\nafter" });
  expect(sent).toEqual([{ to: "a@b.example" }]);
  expect(calls.map(({ toolName, index, approved }) => [toolName, index, approved])).toEqual([
    ["add", 0, undefined],
    ["send", 1, undefined],
    ["send", 1, true],
    ["add", 2, undefined],
  ]);
});

test("several that have to be asked about are asked about one after the other", async () => {
  sent.length = 0;
  const { turn } = fakeTurn();
  const code = "return await Promise.all(['x', 'y'].map((to) => tools.send({ to })))";
  const first = parkedOf(await call(make(), code, { turn })).question;
  expect(first.input).toEqual({ to: "x" });
  const second = parkedOf(
    await call(make(), code, { turn, resumed: { state: first.state, approver: undefined } }),
  ).question;
  expect(second).toMatchObject({
    input: { to: "y" },
    summary: expect.stringContaining("It leaves the house.") as string,
  });
  expect(sent).toEqual([{ to: "x" }]);
  expect(await call(make(), code, { turn, resumed: { state: second.state, approver: undefined } })).toEqual({
    result: [{ sent: "x" }, { sent: "y" }],
  });
});

test("an approved call that fails is an error in the code", async () => {
  const { turn } = fakeTurn();
  const code = "try { await tools.send({ to: 'x' }) } catch (e) { return 'caught: ' + e.message }";
  const { question } = parkedOf(await call(make(), code, { turn }));
  const broken = {
    ...tools,
    send: {
      ...tools.send,
      execute: () => {
        throw new Error("no mail server");
      },
    },
  } as Record<string, Tool>;
  expect(
    await call(make({ tools: broken }), code, { turn, resumed: { state: question.state, approver: undefined } }),
  ).toEqual({ result: "caught: no mail server" });
  const { send: _gone, ...without } = tools;
  expect(
    await call(make({ tools: without }), code, { turn, resumed: { state: question.state, approver: undefined } }),
  ).toEqual({ result: 'caught: There is no tool "send" any more.' });
});

test("code that cannot go on says what was done", async () => {
  sent.length = 0;
  const { turn } = fakeTurn();
  const { question } = parkedOf(await call(make(), "await tools.send({ to: 'x' })", { turn }));
  const state = Uint8Array.from(question.state);
  state[state.length - 1] = (state.at(-1) ?? 0) ^ 1;
  expect(await call(make(), "", { turn, resumed: { state, approver: undefined } })).toEqual({
    error: expect.stringMatching(
      /"send" was approved and has run \(it gave: \{"sent":"x"\}\), but the code cannot go on: The snapshot was damaged/,
    ) as string,
  });
  await expect(
    call(make(), "", { turn, resumed: { state: new Uint8Array([1, 2]), approver: undefined } }),
  ).rejects.toMatchObject({ code: "bad_input" });
});

test("a sandbox that cannot park makes it an error in the code", async () => {
  const { turn } = fakeTurn();
  const { resume: _none, ...simple } = sandbox;
  const output = await call(
    make({ sandbox: { ...simple, supports: { ...sandbox.supports, suspend: false } } }),
    "await tools.send({ to: 'x' })",
    { turn },
  );
  expect(output).toMatchObject({ error: expect.stringContaining("this sandbox cannot wait for one") as string });
});

test("a stop of the turn stops the code", async () => {
  const stop = new AbortController();
  const slow = {
    ...tools,
    wait: tool({
      inputSchema: z.object({}),
      execute: async () => {
        stop.abort(new Error("stopped by the user"));
        return new Promise<string>(() => undefined);
      },
    }),
  };
  await expect(call(make({ tools: slow }), "await tools.wait()", { abortSignal: stop.signal })).rejects.toThrow(
    "stopped by the user",
  );
});

test("many tools are not all declared, but can be found", async () => {
  const many = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [
      `tool_${at}`,
      tool({
        description: `Does thing number ${at}${at === 250 ? " with invoices" : ""}.`,
        inputSchema: z.object({ id: z.string() }),
        execute: () => at,
      }),
    ]),
  );
  const made = make({ tools: many, maxDeclarationChars: 3_000 });
  const description = String(made.description);
  expect(description.length).toBeLessThan(5_000);
  expect(description).toContain("tools.search");
  const output = await call(
    made,
    "const [found] = await tools.search('invoices'); return [found, await tools.describe(found.name), await tools[found.name]({ id: 'x' })]",
  );
  expect(output).toMatchObject({
    result: [
      { name: "tool_250", description: "Does thing number 250 with invoices." },
      "  /** Does thing number 250 with invoices. */\n  tool_250(args: { id: string }): Promise<unknown>;",
      250,
    ],
  });
  expect(await call(made, "return await tools.describe('nope')")).toMatchObject({
    error: expect.stringContaining('There is no tool "nope"') as string,
  });
});

test("the tool does not offer itself", async () => {
  const all: Record<string, Tool> = { add: tools.add };
  const made = createExecuteTool({ tools: () => all, sandbox });
  all.execute = made as Tool;
  expect(await call(made, "return Object.keys(tools)")).toEqual({ result: ["add"] });
});

test("packages are bundled, and what they refuse is said to the model", async () => {
  const packages = {
    names: ["left"],
    bundle: async (code: string) => {
      if (code.includes("evil")) throw new Error('"evil" cannot be imported here. There are: left.');
      return { code, modules: { left: "export default (text) => text.padStart(5)" } };
    },
  };
  const made = make({ packages });
  expect(String(made.description)).toContain("Packages that can be imported: left.");
  expect(await call(made, "import left from 'left'; return left('x')")).toEqual({ result: "    x" });
  expect(await call(made, "import e from 'evil'")).toEqual({
    error: '"evil" cannot be imported here. There are: left.',
  });
});

test.each<[string, Partial<ExecuteToolOptions>]>([
  ["no tools", { tools: undefined as never }],
  ["limits", { limits: { wallMs: -1 } }],
  ["room", { maxDeclarationChars: Number.NaN }],
  [
    "a sandbox of another kind",
    { sandbox: { ...sandbox, kind: "bash", supports: { ...sandbox.supports, languages: ["bash"] } } },
  ],
])("options that cannot work are refused: %s", (_name, more) => {
  expect(() => make(more)).toThrow(expect.objectContaining({ code: "bad_config" }) as Error);
});
