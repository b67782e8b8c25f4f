import { expect, test } from "vitest";
import { startHost } from "../clients/harness.ts";
import { readyTab } from "./harness.tsx";
import { talk } from "./talk.ts";

test("sendMessage() without a message, after an error, asks for an answer to the last one: there is one", async () => {
  const { Talk } = talk({ script: ({ index }) => (index === 0 ? { error: new Error("broken") } : "fine") });
  const host = await startHost({ agents: { Talk } });
  const tab = await readyTab(host);
  tab.send("hi");
  await tab.waitFor(({ status }) => status === "error");
  void tab.chat().sendMessage();
  await tab.settles(["user: hi", "assistant: fine"]);
  await tab.matches(host.getAgentByName(Talk, "x"));
});

test("a tab that sends the message of another tab again, while that is answered, shows the one answer", async () => {
  const { Talk, say, model } = talk({ script: () => ({ text: ["One ", "answer."], delayMs: 1 }) });
  const host = await startHost({ agents: { Talk } });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("hi");
  await say(1);
  await other.waitFor(({ lines }) => lines[1] === "assistant: One ");
  const [question] = other.chat().messages;
  // An edit into the same words: the hook cuts its list behind it.
  void other.chat().sendMessage({ text: "hi", messageId: question?.id ?? "" });
  await other.waitFor(({ status }) => status === "ready");
  await say(1);
  for (const one of [tab, other]) await one.settles(["user: hi", "assistant: One answer."]);
  expect(model.calls).toHaveLength(1);
  await other.matches(host.getAgentByName(Talk, "x"));
});

test("an edit into the same words after the answer gets another answer in its place", async () => {
  const { Talk } = talk({ script: ({ index }) => `answer ${index + 1}` });
  const host = await startHost({ agents: { Talk } });
  const tab = await readyTab(host);
  tab.send("hi");
  await tab.settles(["user: hi", "assistant: answer 1"]);
  void tab.chat().sendMessage({ text: "hi", messageId: tab.chat().messages[0]?.id ?? "" });
  await tab.settles(["user: hi", "assistant: answer 2"]);
  await tab.matches(host.getAgentByName(Talk, "x"));
});
