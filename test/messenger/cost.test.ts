// What an answer at a messenger costs in commits, beside one that is given to a client.
import { expect, test } from "vitest";
import { tempDir } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { ADA_THERE, openTelegram } from "./kit.ts";

/** The fewest commits of a turn whose conversation there is already: a busy machine may store a stream in more pieces. */
async function commitsOf(asks: "a client" | "a messenger", first: "text" | "whole"): Promise<number> {
  let commits = 0;
  let asked = 0;
  const shown = () => asks === "a client" || first === "whole" || kit.texts().length === asked;
  const waits = async () => {
    while (!shown()) await new Promise((resolve) => setTimeout(resolve, 5));
    return "done";
  };
  const kit = await openTelegram({
    ...{ conversation: "self", delivery: { first }, tools: { wait: serverTool(waits) } },
    script: ({ step }) => (step === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it."),
    host: { storage: undefined, dir: tempDir(), onCommit: () => void commits++ },
  });
  const [agent] = kit.lives;
  const counts: number[] = [];
  for (asked = 1; asked <= 40; asked++) {
    const before = commits;
    const text = `hi ${asked}`;
    if (asks === "a messenger") kit.telegram.says(7, ADA_THERE, text);
    else await agent?.saveMessages([{ id: `m${asked}`, role: "user", parts: [{ type: "text", text }] }]);
    await kit.until(() => {
      expect(agent?.messages.filter(({ role }) => role === "assistant")).toHaveLength(asked);
      expect(agent?.listDeliveries({ state: "done" })).toHaveLength(asks === "a messenger" ? asked : 0);
    });
    counts.push(commits - before);
  }
  return Math.min(...counts.slice(1));
}

test("an answer of one message costs some two commits more at Telegram than at a client when it comes whole, and some three when it grows", async () => {
  const client = await commitsOf("a client", "text");
  // A stream may be stored in one piece more or less, even the fewest times that it was.
  const more = async (first: "text" | "whole") => (await commitsOf("a messenger", first)) - client;
  expect(Math.abs((await more("whole")) - 2)).toBeLessThanOrEqual(1);
  expect(Math.abs((await more("text")) - 3)).toBeLessThanOrEqual(1);
});
