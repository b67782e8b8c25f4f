// Extensions in an agent on a real host, over restarts.
import type { Session } from "perdure";
import { createExtensionTools } from "perdure/extensions";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { toolName, toolParts } from "../../src/message/types.ts";
import { openThink, serverTool, systemOf } from "../think/harness.ts";
import { sandbox } from "./kit.ts";

const source = `({ tools: { shout: {
  description: "Makes a text loud.",
  parameters: { text: { type: "string" } },
  required: ["text"],
  execute: async ({ text }, host) => text.toUpperCase() + " " + (await host.getMessages()).length,
} } })`;

const script: Script = ({ userText, step }) => {
  if (step > 0) return "Done.";
  const [toolName, input] = {
    load: ["load_extension", { name: "voice", version: "1", permissions: { messages: "read" }, source }] as const,
    reload: ["load_extension", { name: "voice", version: "2", permissions: { messages: "read" }, source }] as const,
    more: ["load_extension", { name: "voice", version: "3", permissions: { workspace: "read" }, source }] as const,
    use: ["voice_shout", { text: "hello" }] as const,
    unload: ["unload_extension", { name: "voice" }] as const,
  }[userText] ?? ["list_extensions", {}];
  return { toolCalls: [{ toolName, input, toolCallId: `call-${userText}` }] };
};

test("the model writes an extension, a person agrees, and it is there in every later life", async () => {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override extensionLoader = sandbox;
        override getModel() {
          return model;
        }
        override getTools() {
          return createExtensionTools({ manager: this.extensions });
        }
      },
  );
  const outputs = async () =>
    Object.fromEntries(
      (await kit.stored())
        .flatMap((message) => toolParts(message))
        .map((part) => [part.toolCallId, part.output ?? part.state]),
    );
  await kit.ask("load");
  const agent = await kit.agent();
  expect(agent.extensions.list()).toEqual([]);
  expect(agent.pendingApprovals()).toMatchObject([
    { tool: "load_extension", input: { permissions: { messages: "read" } } },
  ]);
  await kit.restart();
  (await kit.agent()).answerApproval("call-load", true);
  await kit.stable();
  expect((await outputs())["call-load"]).toMatchObject({ loaded: "voice", tools: ["voice_shout"] });
  await kit.ask("use");
  expect((await outputs())["call-use"]).toMatch(/^HELLO \d+$/);
  await kit.restart();
  await kit.ask("use");
  const uses = (await kit.stored())
    .flatMap((message) => toolParts(message))
    .filter((part) => toolName(part) === "voice_shout");
  expect(uses.map(({ output }) => String(output).slice(0, 5))).toEqual(["HELLO", "HELLO"]);
  // What is loaded was agreed to; each change of it is asked about.
  await kit.ask("load");
  expect((await kit.agent()).pendingApprovals()).toEqual([]);
  await kit.ask("reload");
  expect((await kit.agent()).extensions.list()).toMatchObject([{ name: "voice", version: "1" }]);
  (await kit.agent()).answerApproval("call-reload", true);
  await kit.stable();
  expect((await kit.agent()).extensions.list()).toMatchObject([{ name: "voice", version: "2" }]);
  await kit.ask("more");
  expect((await kit.agent()).pendingApprovals()).toHaveLength(1);
  expect((await kit.agent()).extensions.list()).toMatchObject([{ version: "2" }]);
  (await kit.agent()).answerApproval("call-more", false);
  await kit.stable();
  await kit.ask("unload");
  await kit.restart();
  expect((await kit.agent()).extensions.list()).toEqual([]);
});

const watching = {
  manifest: {
    name: "watch",
    version: "1",
    permissions: { workspace: "read-write" as const, context: { write: "own" as const } },
    context: [{ label: "seen", description: "What it saw" }],
    hooks: ["beforeTurn", "beforeToolCall", "afterToolCall", "onStepFinish", "onChunk"] as const,
  },
  source: `(() => { let text = ""; return { hooks: {
    beforeTurn: (snapshot) => ({ system: snapshot.system + " Be brief.", maxSteps: 2 }),
    beforeToolCall: async (snapshot, host) => { await host.writeFile("before.json", JSON.stringify(snapshot)); },
    afterToolCall: async (snapshot, host) => { await host.writeFile("after.json", JSON.stringify(snapshot)); },
    onChunk: (snapshot) => { text += snapshot.text ?? ""; },
    onStepFinish: async (snapshot, host) => {
      await host.setContext("seen", snapshot.finishReason);
      await host.writeFile("step-" + snapshot.stepNumber + ".txt", text);
    },
  } }; })()`,
};

test("an extension that the app declares is told of a turn, and has its say before it", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0
      ? { text: "Let me see. ", toolCalls: [{ toolName: "look", input: { at: 1 }, toolCallId: "c1" }] }
      : "Done.",
  );
  const broken = {
    manifest: { name: "broken", version: "1", hooks: ["beforeToolCall"] as const },
    source: `({ hooks: { beforeToolCall: () => { throw new Error("no"); } } })`,
  };
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override extensionLoader = sandbox;
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(() => "looked") };
        }
        override getExtensions() {
          return [watching, broken];
        }
      },
  );
  // What an extension does wrong is reported, and costs the turn nothing.
  expect(await kit.ask("Look.")).toMatchObject({ status: "completed" });
  expect(kit.takeErrors()).toEqual([expect.stringContaining('"broken" failed: Error: no')]);
  const agent = await kit.agent();
  await agent.extensions.hooks.idle();
  expect(systemOf(model)).toContain("Be brief.");
  const file = async (name: string) => JSON.parse((await agent.workspace.readFile(name)) ?? "null") as unknown;
  expect(await file("/before.json")).toMatchObject({ toolName: "look", toolCallId: "c1", input: { at: 1 } });
  expect(await file("/after.json")).toMatchObject({ toolName: "look", success: true, output: "looked" });
  expect(await agent.workspace.readFile("/step-1.txt")).toMatch(/^Let me see\./);
  expect(agent.extensions.contextBlocks()).toMatchObject([{ label: "watch_seen", extension: "watch" }]);
  expect(agent.extensions.list()).toMatchObject([{ name: "watch", from: "code" }, { name: "broken" }]);
});

test("an extension may ask for fewer steps than the agent allows, and not for more", async () => {
  for (const [asked, steps] of [
    [1_000, 3],
    [2, 2],
  ] as const) {
    let call = 0;
    const model = scriptedModel(() => ({
      toolCalls: [{ toolName: "look", input: {}, toolCallId: `c${++call}` }],
    }));
    const greedy = {
      manifest: { name: "greedy", version: "1", hooks: ["beforeTurn"] as const },
      source: `({ hooks: { beforeTurn: () => ({ maxSteps: ${asked} }) } })`,
    };
    const kit = await openThink(
      (Base) =>
        class extends Base {
          override extensionLoader = sandbox;
          override maxSteps = 3;
          override getModel() {
            return model;
          }
          override getTools() {
            return { look: serverTool(() => "looked") };
          }
          override getExtensions() {
            return [greedy];
          }
        },
    );
    await kit.ask("Look.");
    expect(model.calls).toHaveLength(steps);
  }
});

test("a block of the app is nobody's own, whatever an extension calls itself", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "user_write", input: {}, toolCallId: "c1" }] } : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override extensionLoader = sandbox;
        override getModel() {
          return model;
        }
        override configureSession(session: Session) {
          return session.withContext("user_profile", { initial: "what the app knows" });
        }
        override getExtensions() {
          const permissions = { context: { write: "own" as const } };
          const write =
            'try { await host.setContext(label, "forged"); return "written"; } catch (e) { return e.message; }';
          const source = `({ tools: { write: { description: "W.", execute: async (_, host) => {
            const attempt = async (label) => { ${write} };
            return [await attempt("profile"), await attempt("pad")];
          } } } })`;
          const context = [{ label: "profile" }, { label: "pad" }];
          return [{ manifest: { name: "user", version: "1", permissions, context }, source }];
        }
      },
  );
  await kit.ask("write");
  const [part] = toolParts((await kit.last()) as never);
  expect(part?.output).toEqual([expect.stringContaining("may not write"), "written"]);
});
