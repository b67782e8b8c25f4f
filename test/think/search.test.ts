// What a model can look up: the tool is there when the app asks for it, or when a summary stands for messages.
import type { ToolSet } from "ai";
import type { Think } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { openThink, outputsSent, serverTool } from "./harness.ts";

async function open(script: Script, options: { scope?: "session" | "agent"; own?: boolean } = {}) {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override configureSession(session: Parameters<Think["configureSession"]>[0]) {
          return options.scope === undefined ? session : session.withSearch(options.scope);
        }
        override getModel() {
          return model;
        }
        override getTools(): ToolSet {
          return options.own === true ? { session_search: serverTool(() => "my own") } : {};
        }
      },
  );
  const offered = (call: number) => (model.calls[call]?.tools ?? []).map(({ name }) => name);
  return Object.assign(kit, { model, offered });
}

const look = (input: object) => ({ toolCalls: [{ toolName: "session_search", input }] });

test("without being asked for, and with nothing summarised, there is no such tool and no index", async () => {
  const kit = await open(["Hello."]);
  await kit.ask("Hi");
  expect(kit.offered(0)).not.toContain("session_search");
  expect(await kit.rows("SELECT name FROM sqlite_master WHERE name = 'perdure_search'")).toEqual([]);
});

test("a model that may search finds what was said, and reads it", async () => {
  const kit = await open(["Noted.", look({ query: "badge" }), look({ read: "ask-1" }), "It is 4711."], {
    scope: "session",
  });
  await kit.ask("My badge has the number 4711.");
  await kit.ask("Which number?");
  expect(kit.offered(0)).toContain("session_search");
  const outputs = Object.values({ ...outputsSent(kit.model, 2), ...outputsSent(kit.model, 3) });
  expect(outputs).toHaveLength(2);
  expect(JSON.stringify(outputs[0])).toContain("My **badge** has the number 4711.");
  expect(JSON.stringify(outputs[1])).toContain("My badge has the number 4711.");
});

test("what was compacted can be found again", async () => {
  // No number or name: sentences with those are carried below a summary, and need no search.
  const long = `The code of the vault is a word, and that is periwinkle. ${"And so on. ".repeat(600)}`;
  const kit = await open([long, "Fine.", look({ query: "code vault" }), "Periwinkle."]);
  const agent = await kit.agent();
  await kit.ask("Tell me about the vault.");
  const [, answer] = await kit.stored();
  await agent.applyCompaction({ summary: "The vault was explained.", messageId: answer?.id ?? "" });
  await kit.ask("Go on.");
  expect(kit.offered(0)).not.toContain("session_search");
  expect(kit.offered(1)).toContain("session_search");
  expect(JSON.stringify(kit.model.calls[1]?.prompt)).not.toContain("periwinkle");
  await kit.ask("Which code?");
  expect(JSON.stringify(outputsSent(kit.model, 3))).toContain(
    "The **code** of the **vault** is a word, and that is periwinkle.",
  );
  expect((await agent.search("vault code")).map(({ messageId }) => messageId)).toEqual([answer?.id]);
});

test("a tool of the app with the same name is the app's", async () => {
  const kit = await open([look({ query: "x" }), "Done."], { scope: "agent", own: true });
  await kit.ask("Hi");
  expect(JSON.stringify(outputsSent(kit.model, 1))).toContain("my own");
});
