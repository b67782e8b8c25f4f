import type { UIMessage } from "ai";
import { expect, test, vi } from "vitest";
import type { ModelPrompt } from "../../examples/start/model/model-types.ts";
import { researcherReply, tidierReply } from "../../examples/start/model/helper-reply.ts";
import { connectTo } from "../chat/client.ts";
import { connect } from "../host/open-host.ts";
import { openTalk, settings, startAgents, type Talk } from "./talk.ts";
import { PATIENCE_MS } from "../support/until.ts";

const TALK = "/agents/conversations/main/sub/assistant/first";

interface RunFrame {
  readonly parentToolCallId?: string;
  readonly event: { readonly kind: string; readonly runId: string; readonly agentType?: string };
}

async function start(env: Readonly<Record<string, string>> = {}) {
  settings(env);
  const host = await startAgents();
  const talk = await openTalk(host);
  return { host, talk };
}

/** Looks again until it does not fail. */
const soon = <T>(look: () => T | Promise<T>) => vi.waitFor(look, { timeout: PATIENCE_MS, interval: 10 });

const events = (talk: Talk) => (talk.ofType("agent-tool-event") as unknown as RunFrame[]).map(({ event }) => event);

/** The id of the run of this class. */
function runOf(talk: Talk, agentType: string): Promise<string> {
  return soon(() => {
    const found = events(talk).find((event) => event.agentType === agentType);
    if (found === undefined) throw new Error(`No ${agentType} yet.`);
    return found.runId;
  });
}

test("two helpers work side by side; one asks in its own conversation, and both results reach the answer", async () => {
  const { host, talk } = await start();
  const answer = talk.ask("Show me helpers");
  const tidier = await runOf(talk, "Tidier");
  const path = `${TALK}/sub/tidier/${tidier}`;
  const child = await connectTo(host.url + path);
  const stored = async () => (await (await fetch(`${host.url}${path}/get-messages`)).json()) as UIMessage[];
  const asked = await soon(async () => {
    const part = (await stored()).at(-1)?.parts.find(({ type }) => type === "tool-deleteFiles");
    expect(part).toMatchObject({ state: "approval-requested" });
    return part as { toolCallId: string };
  });
  child.approve(asked.toolCallId, true);
  const { text, message } = await answer;
  expect(text).toMatch(/The researcher is back\.[^]*The tidier is back\. You approved/);
  expect(message?.parts.filter(({ type }) => type.startsWith("tool-"))).toMatchObject([
    { type: "tool-research", input: { topic: "durable agents" }, state: "output-available" },
    { type: "tool-tidyUp", input: { folder: "drafts" }, state: "output-available" },
  ]);
});

test("one that is stopped brings nothing, and the answer goes on", async () => {
  const { host, talk } = await start({ PERDURE_GUIDE_DELAY: "5" });
  const answer = talk.ask("Research the sea");
  const runId = await runOf(talk, "Researcher");
  const caller = await connect(host, TALK);
  await caller.call("stopRun", runId);
  const { text, error } = await answer;
  expect(error).toBeUndefined();
  expect(text).toContain("The researcher brought nothing: You stopped it.");
  expect(events(talk).at(-1)).toMatchObject({ kind: "aborted", reason: "You stopped it." });
});

test("in the background: an answer at once, and another one when it is done", async () => {
  const { talk } = await start();
  const { text } = await talk.ask("Research tea in the background");
  expect(text).toContain("I am free again");
  await soon(async () => {
    const messages = await talk.stored();
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect(JSON.stringify(messages.at(-1))).toContain("Researcher has finished in the background");
  });
});

test("only helpers that were asked for have an address", async () => {
  const { host, talk } = await start();
  await talk.ask("Hello");
  for (const path of ["researcher/run_none", "researcher/x", "assistant/first", "tidier/first"]) {
    expect((await fetch(`${host.url}${TALK}/sub/${path}/get-messages`)).status).toBe(404);
  }
});

test("helpers go on behind what was said before a crash, and answer more than their task", () => {
  const prompt = (text: string, ...more: ModelPrompt): ModelPrompt => [
    { role: "user", content: [{ type: "text", text }] },
    ...more,
  ];
  const task = prompt("Research: tea");
  const { text, calls } = researcherReply(task);
  expect(calls).toEqual([{ toolName: "lookUp", input: { topic: "tea" } }]);
  const cut: ModelPrompt[number] = { role: "assistant", content: [{ type: "text", text: text.slice(0, 9) }] };
  expect(researcherReply([...task, cut])).toEqual({ text: text.slice(9), calls });
  expect(researcherReply([...task, ...prompt("and more?")]).text).toContain("nothing more");
  expect(tidierReply(prompt("Tidy up the folder: attic")).calls).toEqual([
    { toolName: "deleteFiles", input: { files: ["attic/draft-1.md", "attic/old-notes.txt"] } },
  ]);
});
