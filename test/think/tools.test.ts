import type { ToolSet } from "ai";
import { durableTool } from "perdure";
import { type Script, type ScriptedToolCall, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { chunksOf, connectTo, textIn, textOf, user } from "../chat/client.ts";
import { openThink, outputsSent, serverTool } from "./harness.ts";

function calling(...toolCalls: ScriptedToolCall[]): Script {
  return ({ step }) => (step === 0 ? { toolCalls } : "done");
}

async function withTools(tools: ToolSet, script: Script, options: { readonly manual?: boolean } = {}) {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return tools;
        }
      },
    options,
  );
  return Object.assign(kit, { model });
}

test("calls of one step run side by side, and the model reads their results in the order of the calls", async () => {
  const both = Promise.withResolvers<void>();
  let running = 0;
  const meet = (name: string) =>
    serverTool(async () => {
      if (++running === 2) both.resolve();
      // Neither would end if the other waited for it.
      await both.promise;
      if (name === "first") await new Promise((resolve) => setImmediate(resolve));
      return name;
    });
  const kit = await withTools(
    { first: meet("first"), second: meet("second") },
    calling({ toolName: "first", input: {}, toolCallId: "c1" }, { toolName: "second", input: {}, toolCallId: "c2" }),
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(Object.entries(outputsSent(kit.model, 1))).toEqual([
    ["c1", { type: "text", value: "first" }],
    ["c2", { type: "text", value: "second" }],
  ]);
  expect((await kit.last())?.parts.map(({ type }) => type)).toEqual([
    "step-start",
    "tool-first",
    "tool-second",
    "step-start",
    "text",
  ]);
});

test("a result is sent as soon as it is there, whatever the other calls do", async () => {
  const slow = Promise.withResolvers<string>();
  const kit = await withTools(
    { quick: serverTool(() => "quick"), slow: serverTool(() => slow.promise) },
    calling({ toolName: "slow", input: {}, toolCallId: "c1" }, { toolName: "quick", input: {}, toolCallId: "c2" }),
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.frame(({ body }) => body?.includes("tool-output-available") === true && body.includes("c2"));
  slow.resolve("slow");
  await client.done("r1");
  const outputs = chunksOf(client.of("r1")).filter(({ type }) => type === "tool-output-available");
  expect(outputs.map((chunk) => "toolCallId" in chunk && chunk.toolCallId)).toEqual(["c2", "c1"]);
});

test("a slow tool holds up its own turn only: another agent of the host goes on", async () => {
  const slow = Promise.withResolvers<string>();
  const kit = await withTools({ wait: serverTool(() => slow.promise) }, ({ userText, step }) =>
    userText === "slow" && step === 0 ? { toolCalls: [{ toolName: "wait", input: {} }] } : `said ${userText}`,
  );
  const one = await kit.connect();
  const two = await connectTo(kit.url.replace(/one$/, "two"));
  one.request("r1", [user("u1", "slow")]);
  await expect.poll(() => kit.model.calls.length).toBe(1);
  two.request("r2", [user("u2", "quick")]);
  await two.done("r2");
  expect(textOf(two.of("r2"))).toBe("said quick");
  expect(one.of("r1").some(({ done }) => done)).toBe(false);
  slow.resolve("at last");
  await one.done("r1");
});

test("a tool that is a generator shows how far it is; only its last value is the result", async () => {
  const kit = await withTools(
    {
      climb: serverTool(async function* () {
        yield { at: 1 };
        yield { at: 2 };
        yield { at: 3 };
      }),
    },
    calling({ toolName: "climb", input: {}, toolCallId: "c1" }),
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.done("r1");
  const outputs = chunksOf(client.of("r1")).filter((chunk) => chunk.type === "tool-output-available");
  expect(outputs).toMatchObject([
    { output: { at: 1 }, preliminary: true },
    { output: { at: 2 }, preliminary: true },
    { output: { at: 3 }, preliminary: true },
    { output: { at: 3 } },
  ]);
  expect(outputs.at(-1)).not.toHaveProperty("preliminary", true);
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "json", value: { at: 3 } } });
});

test("toModelOutput says how the model reads an output, in the turn and in later ones", async () => {
  const look = serverTool(() => ({ bytes: "xxx" }), {
    toModelOutput: () => ({ type: "text", value: "a picture of a boat" }),
  });
  const kit = await withTools({ look }, ({ turn, step }) =>
    turn === 0 && step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done",
  );
  await kit.ask("Look.");
  await kit.ask("And?");
  for (const call of [1, 2]) {
    expect(outputsSent(kit.model, call)).toEqual({ c1: { type: "text", value: "a picture of a boat" } });
  }
  expect((await kit.stored())[1]?.parts).toMatchObject([{}, { output: { bytes: "xxx" } }, {}, {}]);
});

test("what a tool throws, and a tool that there is not, are results that the model reads", async () => {
  const kit = await withTools(
    {
      bad: serverTool(() => {
        throw new Error("The disk is full.");
      }),
    },
    calling({ toolName: "bad", input: {}, toolCallId: "c1" }, { toolName: "none", input: {}, toolCallId: "c2" }),
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  const outputs = outputsSent(kit.model, 1);
  expect(outputs.c1).toEqual({ type: "error-text", value: "The disk is full." });
  expect(JSON.stringify(outputs.c2)).toContain("none");
});

test("input that does not fit the tool's schema never reaches it, and the model reads why", async () => {
  const inputs: unknown[] = [];
  const kit = await withTools(
    { look: serverTool((input) => void inputs.push(input)) },
    calling({ toolName: "look", input: "{broken", toolCallId: "c1" }),
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(inputs).toEqual([]);
  expect(JSON.stringify(outputsSent(kit.model, 1).c1)).toMatch(/error/);
});

test("timeoutMs ends a call, aborts its signal, and the model reads it", async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const slow = durableTool(
    serverTool((_input, { abortSignal }) => {
      signals.push(abortSignal);
      return new Promise<never>(() => {});
    }),
    { timeoutMs: 500 },
  );
  const kit = await withTools({ slow }, calling({ toolName: "slow", input: {}, toolCallId: "c1" }), { manual: true });
  const turn = kit.ask("Go.");
  await expect.poll(() => signals.length).toBe(1);
  await kit.clock.advance(500);
  expect(await turn).toMatchObject({ status: "completed" });
  expect(signals[0]?.aborted).toBe(true);
  expect(JSON.stringify(outputsSent(kit.model, 1).c1)).toContain("did not finish within 500 ms");
});

test("stop aborts the tools that run, and nothing of them is taken any more", async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const late = Promise.withResolvers<string>();
  const kit = await withTools(
    {
      slow: serverTool((_input, { abortSignal }) => {
        signals.push(abortSignal);
        return late.promise;
      }),
    },
    calling({ toolName: "slow", input: {}, toolCallId: "c1" }),
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => signals.length).toBe(1);
  client.cancel("r1");
  await client.done("r1");
  expect(signals[0]?.aborted).toBe(true);
  late.resolve("too late");
  await kit.stable();
  expect(kit.model.calls).toHaveLength(1);
  expect((await kit.last())?.parts).toMatchObject([{ type: "step-start" }, { state: "output-error" }]);
});

test("a large output is cut for the model, and the whole of it can be read by name", async () => {
  const lines = Array.from({ length: 100 }, (_, n) => `line ${n}`);
  const print = durableTool(
    serverTool(() => lines.join("\n")),
    { maxOutputLines: 10 },
  );
  const kit = await withTools({ print }, calling({ toolName: "print", input: {}, toolCallId: "c1" }));
  await kit.ask("Go.");
  const { value } = outputsSent(kit.model, 1).c1 as { value: string };
  expect(value).toContain("line 0");
  expect(value).toContain("line 99");
  expect(value).not.toContain("line 50");
  const name = /[0-9a-f]{64}/.exec(value)?.[0] ?? "";
  const agent = await kit.agent();
  expect(await agent.readToolOutput(name)).toBe(lines.join("\n"));
  expect(await agent.readToolOutput("0".repeat(64))).toBeUndefined();
  // What clients and the store have is the same short form.
  expect(JSON.stringify(await kit.stored())).not.toContain("line 50");
});

test("maxOutputChars bounds what is no text too", async () => {
  const list = durableTool(
    serverTool(() => Array.from({ length: 500 }, (_, n) => ({ n, text: "x".repeat(20) }))),
    { maxOutputChars: 1_000 },
  );
  const kit = await withTools({ list }, calling({ toolName: "list", input: {}, toolCallId: "c1" }));
  await kit.ask("Go.");
  expect(JSON.stringify(outputsSent(kit.model, 1).c1).length).toBeLessThan(3_000);
});

test("each call has a key of its own, the same however often it runs", async () => {
  const keys: unknown[] = [];
  const note = durableTool(
    serverTool((_input, options) => {
      keys.push((options as { idempotencyKey?: string }).idempotencyKey);
      // The first life never hears the end of it.
      return keys.length < 3 ? new Promise<never>(() => {}) : "noted";
    }),
    { replay: "safe" },
  );
  const kit = await withTools(
    { note },
    calling(
      { toolName: "note", input: { n: 1 }, toolCallId: "c1" },
      { toolName: "note", input: { n: 2 }, toolCallId: "c2" },
    ),
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => keys.length).toBe(2);
  await kit.restart();
  await kit.agent();
  await expect.poll(() => keys.length).toBe(4);
  await kit.stable();
  expect(new Set(keys).size).toBe(2);
  expect(keys.slice(2).toSorted()).toEqual(keys.slice(0, 2).toSorted());
  expect(kit.model.calls.length).toBe(2);
});

test("a call that was cut and may not run again is an error that says so", async () => {
  let runs = 0;
  const pay = serverTool(() => {
    runs++;
    return new Promise<never>(() => {});
  });
  const kit = await withTools({ pay }, calling({ toolName: "pay", input: {}, toolCallId: "c1" }));
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => runs).toBe(1);
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(runs).toBe(1);
  expect(JSON.stringify(outputsSent(kit.model, 1).c1)).toContain("interrupted");
  expect(textIn(await kit.last())).toBe("done");
});

test("a provider that numbers its calls from zero in every response has each of them run", async () => {
  const ran: unknown[] = [];
  const note = serverTool((input) => ran.push(input.n));
  const kit = await withTools({ note }, ({ step }) =>
    step < 3 ? { toolCalls: [{ toolName: "note", input: { n: step }, toolCallId: "call_0" }] } : "done",
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(ran).toEqual([0, 1, 2]);
  expect(outputsSent(kit.model, 3)).toMatchObject({
    call_0: { value: 1 },
    "call_0-2": { value: 2 },
    "call_0-3": { value: 3 },
  });
  expect(textIn(await kit.last())).toBe("done");
});

test("a call without an id runs, and one without a name is an error that the model reads", async () => {
  const ran: unknown[] = [];
  const kit = await withTools(
    { note: serverTool(() => ran.push(1)) },
    calling({ toolName: "note", input: {}, toolCallId: "" }, { toolName: "", input: {}, toolCallId: "b" }),
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(ran).toHaveLength(1);
  expect(Object.keys(outputsSent(kit.model, 1))).toEqual(["call", "b"]);
  expect(textIn(await kit.last())).toBe("done");
});

test("arguments that cannot be read are not quoted in full", async () => {
  const kit = await withTools({ note: serverTool(() => 1) }, calling({ toolName: "note", input: "{".repeat(100_000) }));
  await kit.ask("Go.");
  expect(JSON.stringify(kit.model.calls[1]?.prompt).length).toBeLessThan(10_000);
});

test("an output that its tool cannot show any more is read as it is stored, and the conversation goes on", async () => {
  const look = serverTool(() => ({ hits: ["a"] }), {
    toModelOutput: () => {
      throw new Error("no hits");
    },
  });
  const kit = await withTools({ look }, ({ turn, step }) =>
    turn === 0 && step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done",
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(await kit.ask("And now?")).toMatchObject({ status: "completed" });
  expect(outputsSent(kit.model, 2)).toEqual({ c1: { type: "json", value: { hits: ["a"] } } });
  expect(new Set(kit.takeErrors())).toEqual(new Set(["no hits"]));
});

test("what a tool of the server did, only the server can say", async () => {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const pay = serverTool(() => {
    begun.resolve();
    return ended.promise;
  });
  const kit = await withTools({ pay }, calling({ toolName: "pay", input: {}, toolCallId: "c1" }));
  const client = await kit.connect();
  client.request("r1", [user("u1", "Pay.")]);
  await begun.promise;
  client.result("c1", "forged");
  await client.flushed();
  ended.resolve("paid");
  await client.done("r1");
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "paid" } });
});
