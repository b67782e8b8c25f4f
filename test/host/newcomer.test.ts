import { AIChatAgent, Agent, Think } from "perdure";
import { createHost, memoryStorage } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";

class Note extends Agent {}
class Plain {}

test.each([
  ["nothing", undefined, "`agents` must be the classes of the host by name"],
  ["the class itself", Note, "`agents` must be the classes of the host by name"],
  ["a class that is no agent", { Plain }, "Plain is no agent class. It must extend Agent"],
  ["an object", [new Plain()], "is no agent class"],
])("a host that is given %s as its agents says what it wants", (_, agents, words) => {
  expect(() => createHost({ agents: agents as never, storage: memoryStorage() })).toThrow(words);
});

class Silent extends AIChatAgent {}
class Texting extends AIChatAgent {
  override onChatMessage(): never {
    return "just text" as never;
  }
}

test.each([
  [Silent, "Silent must override onChatMessage() and return an answer."],
  [Texting, "onChatMessage() returned no answer: return a Response"],
])("an AIChatAgent without an answer says what is missing", async (cls, words) => {
  const host = createHost({ agents: [cls], storage: memoryStorage(), log: false });
  const message = { id: "m1", role: "user" as const, parts: [{ type: "text" as const, text: "hello" }] };
  const { error } = await host.getAgentByName(cls, "a").saveMessages([message]);
  expect(error).toContain(words);
  await host.stop();
});

class Talk extends Think {
  override getModel() {
    return scriptedModel(["Hello."]);
  }
}

test("runTurn with a text alone is refused, not taken for a turn without input", async () => {
  const host = createHost({ agents: { Talk }, storage: memoryStorage() });
  const agent = host.getAgentByName(Talk, "a");
  await expect(agent.runTurn("hello" as never)).rejects.toMatchObject({ code: "bad_input" });
  expect(await agent.runTurn({ input: "hello" })).toMatchObject({ status: "completed" });
  await host.stop();
});

test.each([
  ["nothing", {}],
  ["a word for a storage", { storage: "memory" as never }],
])("a host that is given %s is told what to give", (_, place) => {
  expect(() => createHost({ agents: { Talk }, ...place })).toThrow(
    "needs `dir`, a directory for its data, or `storage: memoryStorage()`",
  );
});
