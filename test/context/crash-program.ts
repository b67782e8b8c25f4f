// A Think agent with a small window, for the crash matrix: it is told a few long things, reads files in the middle of a
// turn, and has to make room again and again. With NO_SUMMARY there is no model that summarises until all was read, and it
// is the provider that says what is too long.
import { flushCompileCache } from "node:module";
import { APICallError, jsonSchema, tool } from "ai";
import type { Fact } from "perdure/testing";
import { Think } from "../../src/agent/think.ts";
import { contextOf } from "../../src/turn/step/step-run.ts";
import { parts } from "../../src/parts/part.ts";
import { subscribe } from "../../src/host/node/publish-events.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { crashPoint, onCommand, programDir, report } from "../../src/testing/crash/child.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";
import { durableTool } from "../../src/tool/define.ts";

export type CrashCommand = { readonly type: "tell" };

export interface CrashCompaction {
  readonly kind: string;
  readonly status: string;
  readonly trigger: string;
  readonly error: string | null;
}

/** How things stand when all was told. */
export interface CrashLook extends Fact {
  readonly texts: readonly string[];
  /** What the model would read next, without ids. */
  readonly shown: readonly string[];
  readonly compactions: readonly CrashCompaction[];
  readonly openCalls: number;
}

const long = (words: string, tokens: number) => `${words} ${"abc ".repeat(tokens)}`.trim();
const SAME = ["same one", "same two", "same three", "same four"];
const INPUTS = [long("one", 900), long("two", 900), long("three", 900), "read them", ...SAME, "done?"];

const NO_SUMMARY = process.env["NO_SUMMARY"] === "1";
/**
 * What the provider takes then, in characters: none of the requests comes near it, since the notes have a line for each
 * message that waits, and how many do is a matter of when.
 */
const MOST = 9_000;

function refusal(statusCode: number, message: string) {
  const error = new APICallError({ message, url: "https://model.example", requestBodyValues: {}, statusCode });
  return { error };
}

const mute = scriptedModel(() => refusal(401, "bad key"));

const model = scriptedModel(({ userText, prompt, step }) => {
  const text = JSON.stringify(prompt);
  if (NO_SUMMARY && !text.includes("You write the notes") && text.length > MOST) {
    return refusal(400, "This model's maximum context length is 4000 tokens.");
  }
  if (text.includes("You write the notes")) return "## State of the work\nIt went well.";
  // The same file again and again: what was read of it before is out of date.
  if (userText.startsWith("same"))
    return step === 0 ? { toolCalls: [{ toolName: "read", input: { path: "notes" } }] } : `Yes, ${userText}.`;
  if (userText.startsWith("done")) return "Yes, done.";
  if (!userText.startsWith("read") && !text.includes('"read them"')) return `Yes, ${userText.slice(0, 5)}.`;
  const results = prompt.flatMap((message) => (message.role === "tool" ? message.content : [])).length;
  // What was read before a summary is not seen any more: the last output is.
  const seen = [5, 4, 3, 2].find((file) => text.includes(`contents of file-${file}`)) ?? Math.min(results, 1);
  return seen >= 5 ? "All read." : { toolCalls: [{ toolName: "read", input: { path: `file-${seen + 1}` } }] };
});

class Small extends Think {
  override workspaceTools = false as const;
  override contextOverflow = { background: false };
  override modelLimits = { "scripted/*": { window: 100_000, input: NO_SUMMARY ? 90_000 : 3_000 } };
  override getModel() {
    return model;
  }
  override getCompactionModel() {
    return NO_SUMMARY && !JSON.stringify(this.messages).includes("All read.") ? mute : undefined;
  }
  override getSystemPrompt() {
    return "You help.";
  }
  override getTools() {
    return {
      read: durableTool(
        tool({
          inputSchema: jsonSchema<{ path: string }>({ type: "object" }),
          execute: ({ path }) => long(`contents of ${path}`, path === "notes" ? 650 : 800),
        }),
        { replay: "safe" },
      ),
    };
  }
  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }

  async tell(): Promise<void> {
    for (const [at, text] of INPUTS.entries()) {
      const message = { id: `u${at}`, role: "user" as const, parts: [{ type: "text" as const, text }] };
      await this.submitMessages([message], { idempotencyKey: `u${at}` });
    }
  }

  async look(): Promise<CrashLook> {
    await this.waitUntilStable();
    const { chat } = this[parts].chat.room;
    const { base } = contextOf(chat, this[parts].think.window.reader, "main", 0);
    return {
      type: "look",
      texts: this.messages.map(({ parts }) =>
        parts.map((part) => (part.type === "text" ? part.text.slice(0, 20) : "")).join(""),
      ),
      shown: base.map(({ role, parts }) =>
        JSON.stringify([role, parts]).replaceAll(/"toolCallId":"[^"]*"|(?:msg|call)_[\w-]+/g, ""),
      ),
      // What a call has used is known to the life that made it; the next one finds by itself that it would not fit.
      compactions: this.listCompactions().map(({ kind, status, trigger, error }) => ({
        ...{ kind, status, error, trigger: trigger === "usage" ? "before" : trigger },
      })),
      openCalls: this.listUsage().filter(({ status }) => status === "open").length,
    };
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
flushCompileCache();
const host = createHost({ agents: { Small }, dir: programDir(), idleMs: 1e9, onCommit: crashPoint() });

onCommand(async () => {
  const agent = host.getAgentByName(Small, "one");
  await agent.tell();
  report({ ...(await agent.look()) });
});
report({ type: "ready" });
