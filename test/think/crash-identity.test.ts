import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { UIMessage } from "ai";
import type { CallApproval } from "perdure";
import { crashMatrix, type CrashOutcome, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { allFacts, env, every, MATRIX_MS, ofType } from "../crash/drive.ts";
import { textIn, user } from "../chat/client.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./crash-identity-program.ts", import.meta.url));

interface Noted {
  readonly where: string;
  readonly identity?: { readonly id: string };
  readonly current?: { readonly id: string };
  readonly approval?: CallApproval;
}

/** Anna asks, Ben approves; both say it again in every life, as clients do that had no answer. */
async function goThrough(child: Program): Promise<Noted[]> {
  const { url } = await child.waitFor("ready");
  const agent = `${String(url)}/agents/talk/one`;
  const post = (path: string, body: unknown) =>
    fetch(`${agent}/${path}`, { method: "POST", body: JSON.stringify(body) });
  await post("chat?token=anna", { messages: [user("m1", "Go.")], requestId: "r1" });
  for (let text = ""; !text.endsWith("Done."); await delay(5)) {
    const messages = (await (await fetch(`${agent}/get-messages`)).json()) as UIMessage[];
    const last = messages.at(-1);
    for (const part of last?.parts ?? []) {
      if ("state" in part && part.state === "approval-requested" && "toolCallId" in part)
        await post(`chat/tools/${part.toolCallId}?token=ben`, { approved: true });
    }
    text = textIn(last);
  }
  const lines = readFileSync(join(child.dir, "noted"), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Noted);
}

function check(outcome: CrashOutcome<readonly Noted[]>): void {
  expect(ofType(allFacts(outcome), "failed")).toEqual([]);
  const noted = outcome.after.result;
  for (const { where, identity, current } of noted) {
    expect(identity?.id, where).toBe("u1");
    expect(current?.id, where).toBe("u1");
  }
  const tools = noted.filter(({ where }) => where === "tool");
  for (const { approval } of tools) expect(approval).toMatchObject({ by: "Ben", identity: { id: "u2", name: "Ben" } });
  const places = new Set(noted.map(({ where }) => where));
  expect([...places].toSorted()).toEqual(["child's tool", "child's turn", "tool", "turn"]);
}

test(
  "whenever it is killed, hooks, tools and children know for whom the turn is, and tools who approved them",
  { timeout: MATRIX_MS },
  async () => {
    const scenario = { program, env, drive: goThrough, finish: goThrough, check, slack: 8 };
    const matrix = await crashMatrix<readonly Noted[]>({ ...scenario, points: every(3, 1) });
    expect(matrix.killed.length).toBeGreaterThan(1);
  },
);
