import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { tool, type ToolSet } from "ai";
import { Think } from "perdure";
import {
  diffTapes,
  parseTape,
  promptLock,
  readTape,
  replay,
  type ScriptedModel,
  scriptedModel,
  type Tape,
  tapeModel,
} from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { eventually, openHost, tempDir } from "../host/open-host.ts";
import { SECRET_KEY } from "../admin/desk.ts";

const program = fileURLToPath(new URL("../../src/cli/perdure.ts", import.meta.url));
const TOKEN = "t".repeat(32);

/** Runs the command as a process of its own. */
function perdure(args: readonly string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    const all = ["--conditions=perdure-source", "--disable-warning=ExperimentalWarning", program, ...args];
    const child = execFile(process.execPath, all, { env: { PATH: "", ...env } }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

let finds = 0;

function deskOf(model: ScriptedModel, description = "Finds an order.", prompt = "You help with orders.") {
  return class Desk extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return model;
    }
    override getSystemPrompt() {
      return prompt;
    }
    override getTools(): ToolSet {
      const find = tool({
        description,
        inputSchema: z.object({ order: z.string() }),
        execute: ({ order }) => ({ order, at: "the harbour", nth: ++finds }),
      });
      const pay = tool({
        description: "Pays.",
        inputSchema: z.object({ amount: z.number() }),
        needsApproval: true,
        execute: ({ amount }) => `paid ${amount}`,
      });
      const fail = tool({
        inputSchema: z.object({ why: z.string().optional() }),
        execute: (): string => {
          throw new Error("No such thing.");
        },
      });
      return { find, pay, fail };
    }
  };
}

const call = (toolName: string, input: object, toolCallId: string) => ({ toolName, input, toolCallId });

/** A conversation with tools, one that fails, and a question that a person says yes to. */
async function talked() {
  const dir = tempDir();
  const model = scriptedModel([
    {
      reasoning: "Hm.",
      text: "Let me see.",
      toolCalls: [call("find", { order: "A-1" }, "c1"), call("fail", {}, "c2")],
    },
    "It is at the harbour.",
    { toolCalls: [call("pay", { amount: 7 }, "c3")] },
    `Paid. My key is ${SECRET_KEY}.`,
  ]);
  const Desk = deskOf(model);
  const host = await openHost({ agents: { Desk }, dir, admin: { token: TOKEN } });
  const desk = host.getAgentByName(Desk, "anna");
  await desk.runTurn({ input: "Where is A-1?" });
  await desk.runTurn({ input: "Pay 7." });
  await desk.answerApproval("c3", true);
  await eventually(() => model.calls.length === 4, "the last answer");
  await desk.waitUntilStable();
  return { dir, host };
}

test("a tape is made of rows alone, alike of a host, over its URL and of a directory at rest, and replays equal", async () => {
  const { dir, host } = await talked();
  const file = join(tempDir(), "pay.tape.jsonl");
  expect(await perdure(["tape", "Desk/anna", "-o", file, "--dir", dir])).toMatchObject({ code: 0, out: "" });
  const text = readFileSync(file, "utf8");
  const far = await perdure(["tape", "Desk/anna", "--url", host.url], { PERDURE_TOKEN: TOKEN });
  expect(far).toEqual({ code: 0, out: text, err: "" });
  await host.stop();
  expect(await perdure(["tape", "Desk/anna", "--dir", dir])).toEqual({ code: 0, out: text, err: "" });
  expect(text).not.toContain(SECRET_KEY);
  expect(await perdure(["tape", "Desk/anna", "--session", "no", "--dir", dir])).toMatchObject({ code: 1, out: "" });

  const tape = readTape(file);
  expect(tape.events.map(({ t, turn }) => `${t} ${turn}`)).toEqual([
    ...["turn 1", "call 1", "said 1", "tool 1", "tool 1", "call 1", "said 1", "end 1"],
    ...["turn 2", "call 2", "said 2", "end 2"],
    ...["answer 3", "turn 3", "tool 3", "call 3", "said 3", "end 3"],
  ]);
  const before = finds;
  const again = await replay(tape, { agents: { Desk: deskOf(scriptedModel([])) } });
  expect(again.text).toBe("");
  expect(again.difference).toBeUndefined();
  // Nothing ran: the tape had the outputs.
  expect(finds).toBe(before);
  expect(diffTapes(again.tape, tape)).toBeUndefined();
  // The tool ran again, and has counted on.
  const live = await replay(tape, { agents: { Desk: deskOf(scriptedModel([])) }, tools: "live", match: "drift" });
  expect(live.text).toContain("nth");

  const other = join(tempDir(), "other.tape.jsonl");
  writeFileSync(other, text.replaceAll("the harbour", "the airport"));
  expect(await perdure(["diff", file, file])).toMatchObject({ code: 0, out: "equal\n" });
  const parts = await perdure(["diff", file, other]);
  expect(parts).toMatchObject({ code: 1, err: expect.stringContaining("differ") });
  expect(parts.out).toContain('"the harbour" became "the airport"');
  expect(await perdure(["diff", file, dir])).toMatchObject({ code: 2, out: "" });
  expect(await perdure(["diff", file, program])).toMatchObject({ code: 2, err: expect.stringContaining("line 1") });
});

async function recorded(): Promise<Tape> {
  const { dir, host } = await talked();
  const { out } = await perdure(["tape", "Desk/anna", "--dir", dir]);
  await host.stop();
  return parseTape(out);
}

test("a changed tool or prompt is named by its first difference, and nobody is asked", async () => {
  const tape = await recorded();
  const model = scriptedModel([]);
  const changed = await replay(tape, { agents: { Desk: deskOf(model, "Finds an order by its number.") } });
  expect(changed.text).toBe(
    'call of turn 1, step 0, tools.0.description: "Finds an order." became "Finds an order by its number."',
  );
  const first = changed.tape.events.find(({ t }) => t === "end");
  expect(first).toMatchObject({ status: "error" });
  const drift = await replay(tape, {
    agents: { Desk: deskOf(model, "Finds an order by its number.") },
    match: "drift",
  });
  expect(drift.text).toBe(
    'call of turn 1, step 0, tools.find.description: "Finds an order." became "Finds an order by its number."',
  );
  expect(drift.changes).toHaveLength(4);
  expect(drift.changes[0]).toContain('"Finds an order." became "Finds an order by its number."');
  const prompt = await replay(tape, { agents: { Desk: deskOf(model, undefined, "You sell boats.") }, match: "drift" });
  expect(prompt.text).toContain("call of turn 1, step 0, instructions");
  expect(model.calls).toHaveLength(0);
  await expect(replay(tape, { agents: {} })).rejects.toMatchObject({ code: "bad_config" });
});

test("a tape as a model answers what it has, and refuses what it has not with the first difference", async () => {
  const tape = await recorded();
  const model = tapeModel(tape);
  const Desk = deskOf(model);
  const host = await openHost({ agents: { Desk }, dir: tempDir() });
  // The tool counts on, so the request after it is another one than the tape has.
  const { status } = await host.getAgentByName(Desk, "ben").runTurn({ input: "Where is A-1?" });
  expect(status).toBe("error");
  expect(model.changes).toEqual([
    expect.stringMatching(/^call of turn 1, step 1, prompt\.\d+\.content.*nth: \d became \d$/),
  ]);
  expect(() => parseTape('{"tape":2}')).toThrow("no tape of this version");
});

test("a prompt that grows at its end alone is locked, and one that changes is named", async () => {
  const tape = await recorded();
  promptLock(tape);
  const events = tape.events.map((event, i) =>
    event.t === "call" && i > 3 ? { ...event, instructions: `Now ${i}.` } : event,
  );
  expect(() => promptLock({ ...tape, events })).toThrow("instructions");
});
