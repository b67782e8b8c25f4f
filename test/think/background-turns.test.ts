// Tools in the background and the rules of turns: identity, approvals, hooks, progress, summaries, restarts of the wire.
import { type DurableExecutionOptions, durableTool, getCurrentAgent, type ToolCallResultContext } from "perdure";
import { expect, test } from "vitest";
import { until } from "../support/until.ts";
import { calling, gate, lastOf, openBackground, told } from "./background-kit.ts";
import { serverTool } from "./harness.ts";

test("the tool, the hook and the later turn are for whoever began it, also after a restart", async () => {
  const who: (string | undefined)[] = [];
  const turns: (string | undefined)[] = [];
  const end = Promise.withResolvers<void>();
  const work = durableTool(
    serverTool(async (_: object, handed: DurableExecutionOptions) => {
      who.push(handed.identity?.id, getCurrentAgent().identity?.id);
      await end.promise;
      return "done";
    }),
    { background: true, replay: "safe" },
  );
  const kit = await openBackground(
    { work },
    {},
    (Base) =>
      class extends Base {
        override beforeTurn({ identity }: { identity?: { id: string } }) {
          turns.push(identity?.id);
        }
        override afterToolCall({ identity }: ToolCallResultContext) {
          who.push(identity?.id, getCurrentAgent().identity?.id);
        }
      },
  );
  await (await kit.agent()).runTurn({ input: "go c1", identity: { id: "anna" } });
  await until(() => who.length === 2);
  await kit.restart();
  await until(() => who.length === 4);
  expect((await kit.agent()).listBackgroundCalls()).toMatchObject([{ attempts: 2, identity: { id: "anna" } }]);
  end.resolve();
  await kit.ended();
  await kit.stable();
  expect(who).toEqual(Array.from({ length: 6 }, () => "anna"));
  expect(turns).toEqual(["anna", "anna"]);
});

test("a person is asked before it starts, and a no starts nothing", async () => {
  const { work, runs, begun } = gate({ background: true, needsApproval: true });
  const kit = await openBackground({ work });
  await kit.ask("go c1");
  const agent = await kit.agent();
  expect(runs).toEqual([]);
  expect(agent.listBackgroundCalls()).toEqual([]);
  agent.answerApproval("c1", true);
  (await begun()).end.resolve("approved");
  await kit.ended();
  await kit.stable();
  expect(lastOf(await kit.stored()).at(-2)).toBe(`user: ${told("c1", "is done. Its output:\n\napproved")}`);
  await kit.ask("go c2");
  agent.answerApproval("c2", false);
  await kit.stable();
  expect(runs).toHaveLength(1);
});

test("afterToolCall decides what of the result is told; what it withholds is kept", async () => {
  const { work, begun } = gate();
  const kit = await openBackground(
    { work },
    {},
    (Base) =>
      class extends Base {
        override afterToolCall() {
          return { action: "withhold", reason: "Not for you." } as const;
        }
      },
  );
  await kit.ask("go c1");
  (await begun()).end.resolve("the secret");
  await kit.ended();
  await kit.stable();
  const texts = lastOf(await kit.stored());
  expect(texts.at(-2)).toBe(`user: ${told("c1", "is done. Its output:\n\nNot for you.")}`);
  expect(JSON.stringify(texts)).not.toContain("the secret");
  expect((await kit.agent()).originalToolResult("c1")).toEqual({ output: "the secret" });
});

test("what a generator yields is its progress, told to clients that want to know and to no other", async () => {
  const end = Promise.withResolvers<void>();
  const work = durableTool(
    serverTool(async function* () {
      yield "half";
      await end.promise;
      yield "whole";
    }),
    { background: true },
  );
  const kit = await openBackground({ work });
  await kit.ask("go c1");
  const agent = await kit.agent();
  await until(() => agent.listBackgroundCalls()[0]?.progress === "half");
  const listed = (await (await fetch(`${kit.url}/chat/background`)).json()) as { calls: object[] };
  expect(listed.calls).toMatchObject([{ toolCallId: "c1", progress: "half" }]);
  const client = await kit.connect();
  end.resolve();
  await kit.ended();
  await kit.stable();
  expect(client.frames.filter(({ type }) => String(type).startsWith("perdure_session"))).toEqual([]);
  expect(lastOf(await kit.stored()).at(-2)).toBe(`user: ${told("c1", "is done. Its output:\n\nwhole")}`);
});

test("a summary lists what goes on, and its end is told behind it", async () => {
  const { work, begun } = gate();
  const script = (call: Parameters<typeof calling>[0]) => {
    const reply = calling(call);
    return typeof reply === "string" ? "noted" : reply;
  };
  const kit = await openBackground({ work }, { script });
  await kit.ask("go c1");
  await kit.ask("something else ".repeat(2_000));
  await kit.ask("short");
  const agent = await kit.agent();
  await agent.compact();
  await kit.ask("and now?");
  const asked = JSON.stringify(kit.model.calls.at(-1)?.prompt);
  expect(asked).toContain("go on in the background (do not make them again");
  expect(asked).toContain("work, call c1");
  (await begun()).end.resolve("after the summary");
  await kit.ended();
  await kit.stable();
  expect(JSON.stringify(kit.model.calls.at(-1)?.prompt)).toContain("after the summary");
});

test("a picture in a result is kept as a file, and the text says where", async () => {
  const { work, begun } = gate();
  const kit = await openBackground({ work });
  await kit.ask("go c1");
  const data = Buffer.from("picture".repeat(200)).toString("base64");
  (await begun()).end.resolve({ content: [{ type: "image", data, mimeType: "image/png" }] });
  await kit.ended();
  await kit.stable();
  const text = lastOf(await kit.stored()).at(-2) ?? "";
  expect(text).not.toContain(data);
  expect(text).toMatch(/image\/png.*left out of this text; it is in /s);
});
