import { getToolName, isToolUIPart } from "ai";
import type { AgentChat } from "perdure/client";
import { expect, test } from "vitest";
import { eventually, tempDir } from "../host/open-host.ts";
import { lastText, loadPage, openChat, startExample } from "./run-example.ts";

/** The tool calls of the last message. */
function calls(chat: AgentChat) {
  return (chat.messages.at(-1)?.parts ?? []).filter(isToolUIPart);
}

/** Asks for a file to be deleted, and waits for the question. */
async function askToDelete(chat: AgentChat, name: string): Promise<string> {
  await chat.sendMessage({ text: `delete ${name}` });
  return waitingQuestion(chat);
}

function waitingQuestion(chat: AgentChat): Promise<string> {
  return eventually(() => {
    const [call] = calls(chat);
    return call?.state === "approval-requested" ? call.approval.id : undefined;
  }, "a question for approval");
}

test("a tool of the server runs and is shown", async () => {
  const { url } = await startExample(tempDir(), "tools-and-approvals");
  const { modules } = await loadPage(url);
  expect(modules.join("")).toContain("localTime");
  const chat = await openChat(url, "tool-agent");
  await chat.sendMessage({ text: "which files are there?" });
  expect(calls(chat)).toMatchObject([
    { type: "tool-listFiles", state: "output-available", output: ["notes.txt", "draft.md", "photo.jpg"] },
  ]);
  expect(lastText(chat)).toContain("draft.md");
  await chat.sendMessage({ text: "hello" });
  expect(lastText(chat)).toMatch(/^I am a script/);
});

test("a tool that asks first runs when it is approved, and not before", async () => {
  const { url } = await startExample(tempDir(), "tools-and-approvals");
  const [chat, other] = [await openChat(url, "tool-agent"), await openChat(url, "tool-agent")];
  await askToDelete(chat, "draft.md");
  // Any tab may answer.
  const id = await waitingQuestion(other);
  other.addToolApprovalResponse({ id, approved: true });
  for (const tab of [chat, other]) {
    await eventually(() => lastText(tab).endsWith('"draft.md is deleted".'), "the tool ran");
    expect(calls(tab)).toMatchObject([{ type: "tool-deleteFile", output: "draft.md is deleted" }]);
  }
  await chat.sendMessage({ text: "my files" });
  expect(calls(chat)).toMatchObject([{ output: ["notes.txt", "photo.jpg"] }]);
});

test("a tool that is denied does not run", async () => {
  const { url } = await startExample(tempDir(), "tools-and-approvals");
  const chat = await openChat(url, "tool-agent");
  chat.addToolApprovalResponse({ id: await askToDelete(chat, "photo.jpg"), approved: false });
  await eventually(() => lastText(chat).endsWith("leave it as it is."), "the answer goes on");
  expect(calls(chat)).toMatchObject([{ state: "output-denied" }]);
  await chat.sendMessage({ text: "my files" });
  expect(lastText(chat)).toContain("photo.jpg");
});

test("a question waits through a kill and a restart", async () => {
  const dir = tempDir();
  const first = await startExample(dir, "tools-and-approvals");
  await askToDelete(await openChat(first.url, "tool-agent"), "notes.txt");
  first.child.kill("SIGKILL");
  await first.exited;
  const chat = await openChat((await startExample(dir, "tools-and-approvals")).url, "tool-agent");
  chat.addToolApprovalResponse({ id: await waitingQuestion(chat), approved: true });
  await eventually(() => lastText(chat).includes("notes.txt is deleted"), "the tool ran");
});

test("a tool without code on the server is run by the page", async () => {
  const { url } = await startExample(tempDir(), "tools-and-approvals");
  const chat = await openChat(url, "tool-agent", {
    onToolCall: ({ toolCall, addToolOutput }) =>
      addToolOutput({ toolCallId: toolCall.toolCallId, output: `${toolCall.toolName}: noon` }),
  });
  await chat.sendMessage({ text: "what time is it?" });
  await eventually(() => lastText(chat).includes("localTime: noon"), "the answer goes on with the result");
  expect(calls(chat).map(getToolName)).toEqual(["localTime"]);
});
