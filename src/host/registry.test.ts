import { expect, test } from "vitest";
import { Agent } from "../agent/agent.ts";
import { Registry } from "./registry.ts";

class Chat extends Agent {}
class Task extends Agent {}

test("by name or as a list; roots and children", () => {
  for (const roots of [{ Chat }, [Chat]]) {
    const registry = new Registry(roots, { Task });
    expect([registry.get("Chat"), registry.get("Task")]).toEqual([Chat, Task]);
    expect([registry.nameOf(Chat), registry.nameOf(Task)]).toEqual(["Chat", "Task"]);
    expect([registry.has("Task"), registry.has("Other"), registry.has("constructor")]).toEqual([true, false, false]);
  }
});

test("the name that a class is registered under counts, not its own", () => {
  const registry = new Registry({ Support: Chat, Sales: Task }, {});
  expect(registry.get("Support")).toBe(Chat);
  expect(registry.nameOf(Chat)).toBe("Support");
  expect(() => registry.get("Chat")).toThrow('No agent class is called "Chat". This host knows: Support, Sales.');
});

test("a class that is registered under two names, or listed twice, is refused", () => {
  const words = /One class is registered as "Support" and as "Sales"/;
  expect(() => new Registry({ Support: Chat, Sales: Chat }, {})).toThrow(words);
  expect(() => new Registry({ Support: Chat }, { Sales: Chat })).toThrow(words);
  expect(() => new Registry([Chat, Task, Chat], {})).toThrow("`agents`: Chat is listed twice.");
});

test.each([
  [{ X: class {} }, "X is no agent class. It must extend Agent, AIChatAgent or Think."],
  [{ X: {} }, "X is no agent class."],
  [[() => Chat], "One of `agents` is no agent class."],
  [[undefined], "One of `agents` is no agent class."],
  [undefined, "`agents` must be the classes of the host by name"],
  [Chat, "`agents` must be the classes of the host by name"],
])("%j is refused with words", (agents, words) => {
  const refusal = { code: "bad_config", message: expect.stringContaining(words) as string };
  expect(() => new Registry(agents as never, {})).toThrow(expect.objectContaining(refusal));
});

test("two classes of one name are refused; one that is a root and a child too is not", () => {
  expect(() => new Registry({ Chat }, { Chat: Task })).toThrow(/Two agent classes are called "Chat"/);
  expect(new Registry({ Chat }, { Chat }).get("Chat")).toBe(Chat);
});

test("a class that is not registered is told what to do", () => {
  expect(() => new Registry({ Chat }, {}).nameOf(Task)).toThrow(/The class Task is not registered. Add it to `agents`/);
  expect(() => new Registry({}, {}).get("x")).toThrow("This host knows: none.");
});

test("replaced: what changed is told, and an old class reaches what took its place", () => {
  class NewChat extends Agent {}
  class Extra extends Agent {}
  class Other extends Agent {}
  const registry = new Registry({ Chat, Other }, { Task });
  expect(registry.isRootClass("chat")).toBe("Chat");
  expect([...registry.replace({ Chat: NewChat }, { Task, Extra })].sort()).toEqual(["Chat", "Extra", "Other"]);
  expect([registry.get("Chat"), registry.nameOf(NewChat), registry.nameOf(Chat)]).toEqual([NewChat, "Chat", "Chat"]);
  expect([registry.isRootClass("other"), registry.isClass("extra")]).toEqual([undefined, "Extra"]);
  expect([...registry.replace({ Chat: NewChat }, { Task, Extra })]).toEqual([]);
  registry.replace({ Task }, {});
  expect(() => registry.nameOf(Chat)).toThrow("The class Chat is not registered.");
});

test("replaced by what clashes: nothing changes", () => {
  const registry = new Registry({ Chat }, { Task });
  expect(() => registry.replace({ Chat: Task }, { Chat })).toThrow(/Two agent classes are called "Chat"/);
  expect(() => registry.replace({ sub: Task }, {})).toThrow(/marks child agents/);
  expect([registry.get("Chat"), registry.nameOf(Task), registry.isRootClass("chat")]).toEqual([Chat, "Task", "Chat"]);
});
