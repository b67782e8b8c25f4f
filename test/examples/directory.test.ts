import { isToolUIPart } from "ai";
import { expect, test } from "vitest";
import { connect, tempDir } from "../host/open-host.ts";
import { lastText, loadPage, openChat, startExample } from "./run-example.ts";

test("the agents of the directory are there, the sub-agent below its parent", async () => {
  const { url } = await startExample(tempDir(), "directory");
  const { html, modules } = await loadPage(url);
  expect(html).toContain("<title>Agents directory</title>");
  expect(modules.join("")).toContain("cf_agent_use_chat_request");

  const poet = await openChat(url, "poet");
  await poet.sendMessage({ text: "hello" });
  expect(lastText(poet)).toMatch(/^Roses are red, you said "hello"/);

  const support = await openChat(url, "support");
  await support.sendMessage({ text: "What are your hours?" });
  expect(lastText(support)).toBe("The handbook says: We are open from nine to five.");
  expect(support.messages.at(-1)?.parts.filter(isToolUIPart)).toMatchObject([
    { type: "tool-lookUp", state: "output-available", input: { word: "hours" } },
  ]);

  const handbook = await connect({ url }, "/agents/support/main/sub/handbook/shop");
  await handbook.call("write", "parking", "Behind the house.");
  await support.sendMessage({ text: "And parking?" });
  expect(lastText(support)).toBe("The handbook says: Behind the house.");
  expect((await fetch(`${url}/agents/handbook/shop`)).status).toBe(400);
});
