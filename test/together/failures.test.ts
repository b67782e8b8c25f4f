import { jsonSchema } from "ai";
import { Agent } from "perdure";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { refusal } from "../think/harness.ts";
import { childClass, connectChild, given, newGate, openTogether, runFrames, runsAre, storedRuns } from "./harness.ts";

test("a child whose turn fails: the model reads a failure that is not worth another try", async () => {
  const { Researcher } = childClass(() => ({ error: refusal(400, "The library is closed.") }));
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1", "Research tea.")]);
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(given(kit.model, 1)).toEqual({
    ok: false,
    status: "error",
    error: expect.stringContaining("library is closed") as unknown,
    retryable: false,
  });
  expect(await storedRuns(kit)).toMatchObject([
    { status: "error", error: expect.stringContaining("library") as unknown },
  ]);
  expect(runFrames(client).at(-1)?.event).toMatchObject({ kind: "error" });
});

test("a child that is stopped at its own address: the parent's turn goes on with that", async () => {
  const { Researcher, model } = childClass([{ text: ["One ", "two"], hang: true }]);
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  const [run] = await runsAre(kit, "running");
  await eventually(() => runFrames(client).some(({ event }) => event.body?.includes("two")), "the child's words");
  const child = await connectChild(kit, run?.runId ?? "");
  const turn = await child.probe();
  child.cancel(turn.id ?? "");
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "aborted", retryable: false });
  expect(model.calls.map(({ status }) => status)).toEqual(["aborted"]);
  expect(runFrames(client).at(-1)).toMatchObject({ event: { kind: "aborted" } });
});

test("a class without a conversation is refused, and nothing is noted", async () => {
  class Plain extends Agent {}
  const { Researcher } = childClass(["unused"]);
  const kit = await openTogether(Researcher, ["unused"], { children: { Plain } });
  const agent = await kit.agent();
  await expect(agent.runAgentTool(Plain, { input: "x" })).rejects.toMatchObject({ code: "bad_config" });
  class Stranger extends Researcher {}
  await expect(agent.runAgentTool(Stranger, { input: "x" })).rejects.toMatchObject({ code: "unknown_agent" });
  expect(agent.listAgentToolRuns()).toEqual([]);
  expect(agent.listSubAgents()).toEqual([]);
});

test("the same id for another class is refused", async () => {
  const { Researcher } = childClass(({ userText }) => `About ${userText}`);
  const { Researcher: Writer } = childClass(["unused"]);
  const kit = await openTogether(Researcher, ["unused"], { children: { Writer } });
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "tea", runId: "one" });
  await expect(agent.runAgentTool(Writer, { input: "tea", runId: "one" })).rejects.toMatchObject({ code: "conflict" });
  expect(agent.hasAgentToolRun(Researcher, "one")).toBe(true);
  expect(agent.hasAgentToolRun(Writer, "one")).toBe(false);
  expect(agent.hasAgentToolRun("Researcher", "two")).toBe(false);
});

test("a child that cannot read what it is asked for", async () => {
  const { Researcher, model } = childClass(["unused"], {}, (Base) => {
    return class extends Base {
      override formatAgentToolInput(): string {
        throw new Error("I do not read that.");
      }
    };
  });
  const kit = await openTogether(Researcher);
  await kit.ask("Research tea.");
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "error", error: "I do not read that." });
  expect(model.calls).toHaveLength(0);
  const client = await kit.connect();
  await eventually(() => runFrames(client).length === 2, "the replay of a run");
  expect(runFrames(client).map(({ event }) => event.kind)).toEqual(["started", "error"]);
});

test("a child that makes no message of what it is asked for", async () => {
  const { Researcher, model } = childClass(["unused"], {}, (Base) => {
    return class extends Base {
      override formatAgentToolInput(input: unknown) {
        return input as string;
      }
    };
  });
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  for (const input of [5, null, { id: "x", role: "user" }, { id: "", role: "user", parts: [] }]) {
    const { status, error } = await agent.runAgentTool(Researcher, { input });
    expect([status, error]).toEqual(["error", expect.stringContaining("formatAgentToolInput()")]);
  }
  expect(model.calls).toHaveLength(0);
});

const badOutputs: [what: string, make: () => unknown, error: string][] = [
  ["that throws", () => Promise.reject(new Error("No result.")), "No result."],
  ["that is no JSON", () => ({ count: 1n }), "JSON"],
  ["that refers to itself", selfish, "JSON"],
];

function selfish(): unknown {
  const one: Record<string, unknown> = {};
  one.one = one;
  return one;
}

for (const [what, make, error] of badOutputs) {
  test(`a child with an output ${what} fails its run`, async () => {
    const { Researcher, errors } = childClass(["Three."], {}, (Base) => {
      return class extends Base {
        override getAgentToolOutput() {
          return make();
        }
      };
    });
    const kit = await openTogether(Researcher);
    await kit.ask("Research tea.");
    expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "error", retryable: false });
    expect(JSON.stringify(given(kit.model, 1))).toContain(error);
    expect(errors).toHaveLength(1);
  });
}

test("a summary that throws fails the run too", async () => {
  const { Researcher, errors } = childClass(["Three."], {}, (Base) => {
    return class extends Base {
      override getAgentToolSummary(): string {
        throw new Error("No words.");
      }
    };
  });
  const kit = await openTogether(Researcher);
  await kit.ask("Research tea.");
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "error", error: "No words." });
  expect(errors).toEqual(["No words."]);
});

test("hooks of the child shape what is asked, what is brought and what is shown", async () => {
  const seen: unknown[] = [];
  const { Researcher, model } = childClass(
    ({ userText }) => `Read: ${userText}`,
    {},
    (Base) => {
      return class extends Base {
        override formatAgentToolInput(input: unknown, { runId }: { runId: string }) {
          seen.push(input, runId);
          return `Please look up ${(input as { query: string }).query}.`;
        }
        override async getAgentToolOutput(request: { input: unknown }, messages: readonly unknown[]) {
          seen.push(request.input, messages.length);
          return { found: 3, about: request.input };
        }
        override getAgentToolSummary(_request: unknown, output: unknown) {
          return `${(output as { found: number }).found} found`;
        }
      };
    },
  );
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.done("r1");
  const [run] = await storedRuns(kit);
  expect(model.calls[0]?.userText).toBe("Please look up tea.");
  expect(seen).toEqual([{ query: "tea" }, run?.runId, { query: "tea" }, 2]);
  expect(given(kit.model, 1)).toEqual({ found: 3, about: { query: "tea" } });
  expect(runFrames(client).at(-1)?.event).toMatchObject({ kind: "finished", summary: "3 found" });
});

test("an output that is not what the schema asks for is a failure for the model; the run itself is done", async () => {
  const outputSchema = jsonSchema<{ found: number }>(
    { type: "object" },
    {
      validate: (value) =>
        typeof (value as { found?: unknown }).found === "number"
          ? { success: true, value: value as { found: number } }
          : { success: false, error: new Error("`found` is missing.") },
    },
  );
  const outputs: unknown[] = [{ lost: 1 }, { found: 2 }];
  const { Researcher } = childClass(["One.", "Two."], {}, (Base) => {
    return class extends Base {
      override getAgentToolOutput() {
        return outputs.shift();
      }
    };
  });
  const kit = await openTogether(
    Researcher,
    ({ step }) =>
      step < 2 ? { toolCalls: [{ toolName: "research", input: { query: "tea" }, toolCallId: `c${step}` }] } : "Done.",
    { tool: { outputSchema } },
  );
  await kit.ask("Research tea.");
  expect(given(kit.model, 1, "c0")).toMatchObject({ ok: false, status: "error", retryable: false });
  expect(JSON.stringify(given(kit.model, 1, "c0"))).toContain("`found` is missing.");
  expect(given(kit.model, 2, "c1")).toEqual({ found: 2 });
  expect((await storedRuns(kit)).map(({ status }) => status)).toEqual(["completed", "completed"]);
});

test("more runs than may be open at a time end with an error at once", async () => {
  const gate = newGate();
  const { Researcher, model, lives } = childClass(async () => gate.opened.then(() => "Three."));
  const ended: string[] = [];
  const kit = await openTogether(
    Researcher,
    ({ step }) =>
      step === 0
        ? {
            toolCalls: ["c1", "c2", "c3"].map((toolCallId) => ({
              toolName: "research",
              input: { query: toolCallId },
              toolCallId,
            })),
          }
        : "Done.",
    {
      make: (Base) =>
        class extends Base {
          override maxConcurrentAgentTools = 2;
          override onAgentToolFinish({ runId }: { runId: string }, { status }: { status: string }) {
            ended.push(`${runId} ${status}`);
          }
        },
    },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  const error = await client.frame((frame) => (frame as { event?: { kind: string } }).event?.kind === "error");
  expect(error).toMatchObject({
    parentToolCallId: "c3",
    sequence: 1,
    event: { kind: "error", error: "maxConcurrentAgentTools (2) exceeded" },
  });
  const third = runFrames(client).filter(({ parentToolCallId }) => parentToolCallId === "c3");
  expect(third.map(({ event }) => event.kind)).toEqual(["started", "error"]);
  gate.open();
  await client.done("r1");
  expect(given(kit.model, 1, "c3")).toEqual({
    ok: false,
    status: "error",
    error: "maxConcurrentAgentTools (2) exceeded",
    retryable: false,
  });
  expect(given(kit.model, 1, "c1")).toBe("Three.");
  expect(model.calls).toHaveLength(2);
  const agent = await kit.agent();
  expect(agent.listSubAgents()).toHaveLength(2);
  // Whoever comes later hears the same of it, and it is not brought to life for that.
  const late = await kit.connect();
  await eventually(() => runFrames(late).filter(({ event }) => event.kind === "finished").length === 2, "a replay");
  const again = runFrames(late).filter(({ parentToolCallId }) => parentToolCallId === "c3");
  expect(again.map(({ event, sequence }) => [event.kind, sequence])).toEqual([
    ["started", 0],
    ["error", 1],
  ]);
  expect(agent.listSubAgents()).toHaveLength(2);
  expect(lives).toHaveLength(2);
  expect(ended).toHaveLength(3);
});
