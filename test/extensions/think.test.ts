// Extensions in an agent on a real host, over restarts.
import type { ToolSet } from "ai";
import { type AgentHost, createExtensionTools, ExtensionManager } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { toolName, toolParts } from "../../src/message/types.ts";
import { openThink } from "../think/harness.ts";
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
  const kit = await openThink((Base) => {
    class Writer extends Base {
      readonly manager: ExtensionManager;
      constructor(host: AgentHost) {
        super(host);
        const bridge = () => ({ getMessages: () => this.messages });
        this.manager = new ExtensionManager({ loader: sandbox, host, bridge });
      }
      override getModel() {
        return model;
      }
      override getTools(): ToolSet {
        return { ...createExtensionTools({ manager: this.manager }), ...this.manager.getTools() };
      }
    }
    return Writer;
  });
  const outputs = async () =>
    Object.fromEntries(
      (await kit.stored())
        .flatMap((message) => toolParts(message))
        .map((part) => [part.toolCallId, part.output ?? part.state]),
    );
  await kit.ask("load");
  const agent = await kit.agent();
  expect(agent.manager.list()).toEqual([]);
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
  // The same permissions were agreed to; others were not.
  await kit.ask("reload");
  expect((await kit.agent()).manager.list()).toMatchObject([{ name: "voice", version: "2" }]);
  await kit.ask("more");
  expect((await kit.agent()).pendingApprovals()).toHaveLength(1);
  expect((await kit.agent()).manager.list()).toMatchObject([{ version: "2" }]);
  (await kit.agent()).answerApproval("call-more", false);
  await kit.stable();
  await kit.ask("unload");
  await kit.restart();
  expect((await kit.agent()).manager.list()).toEqual([]);
});
