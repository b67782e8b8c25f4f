import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { AIChatAgent } from "perdure";
import type { AgentHost, ChatTurnOptions } from "perdure";
import type { Clock, SqlValue } from "perdure/host";
import { serve } from "perdure/node";
import { scriptedModel, type Script } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { connectTo, textIn, textOf, user } from "./client.ts";

/*
 * What is measured is the size of the values that the agent hands to SQL statements that write: the texts and blobs
 * in UTF-8, numbers as 8 bytes. What SQLite makes of them (pages, log frames) depends on how many commits the
 * machine's speed makes of a stream, and is no promise of ours.
 */
interface Written {
  bytes: number;
  statements: number;
}

function sizeOf(value: SqlValue): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.byteLength : 8;
}

/** The same port, with everything counted that is written through it. */
function counting(host: AgentHost, written: Written): AgentHost {
  return new Proxy(host, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      if (key !== "sql") return value.bind(target) as unknown;
      return (query: string, ...args: SqlValue[]) => {
        if (!/^\s*SELECT/i.test(query)) {
          written.statements++;
          for (const arg of args) written.bytes += sizeOf(arg);
        }
        return target.sql(query, ...args);
      };
    },
  });
}

/** Most waits are over at once; every twentieth takes a real timer. */
let waits = 0;
const hurried: Clock = {
  now: () => Date.now(),
  after(ms, work) {
    if (++waits % 20 === 0) {
      const timer = setTimeout(work, ms);
      return () => clearTimeout(timer);
    }
    const immediate = setImmediate(work);
    return () => clearImmediate(immediate);
  },
};

const look = tool({
  inputSchema: jsonSchema<{ n: number }>({ type: "object" }),
  execute: ({ n }) => ({ n, text: "z".repeat(200) }),
});

/** Runs one turn of a model that plays `script`, and measures it. */
async function measure(script: Script) {
  const dir = mkdtempSync(join(tmpdir(), "perdure-writes-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const written: Written = { bytes: 0, statements: 0 };
  class Talk extends AIChatAgent {
    constructor(host: AgentHost) {
      super(counting(host, written));
    }
    override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
      const messages = await convertToModelMessages(this.messages);
      const model = scriptedModel(script, { clock: hurried });
      return streamText({
        model,
        messages,
        tools: { look },
        stopWhen: isStepCount(50),
        abortSignal,
      }).toUIMessageStreamResponse();
    }
  }
  const host = await serve({ agents: { Talk }, dir, port: 0, signals: false });
  onTestFinished(() => host.stop());
  const client = await connectTo(`${host.url}/agents/talk/one`);
  client.request("r1", [user("u1", "Go on.")]);
  await client.done("r1");
  const stored = await (await fetch(`${host.url}/agents/talk/one/get-messages`)).json();
  const [, answer] = stored as Parameters<typeof textIn>[0][];
  await client.close();
  return { written, answer, client };
}

const MEGABYTE = 1_000_000;
const DELTAS = 4_000;
const deltas = Array.from({ length: DELTAS }, (_, n) => `word${n} `);

test("an answer of 4,000 deltas writes less than a megabyte", async () => {
  // Timers now and then, so that it becomes many commits.
  const { written, answer, client } = await measure(() => ({ text: deltas, delayMs: 1 }));
  expect(textIn(answer)).toBe(deltas.join(""));
  expect(textOf(client.of("r1"))).toBe(deltas.join(""));
  expect(written.statements, "commits").toBeGreaterThan(20);
  expect(written.bytes).toBeLessThan(MEGABYTE);
});

test("an answer in many steps is not written again and again", async () => {
  const STEPS = 40;
  const { written, answer } = await measure(({ step }) =>
    step < STEPS
      ? { text: `Step ${step}. ${"x".repeat(400)}`, toolCalls: [{ toolName: "look", input: { n: step } }] }
      : { text: "Done." },
  );
  expect(textIn(answer)).toContain("Step 39.");
  const size = JSON.stringify(answer).length;
  // Saved as it grows, each time it is half as large again, and once in the log.
  expect(written.bytes).toBeLessThan(size * 8);
});
