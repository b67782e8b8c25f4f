// A Think agent with a small window, for the crash matrix: its conversation is made shorter in a turn, by hand, and again
// without that. What each model call was sent, all lives write into one file.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { jsonSchema, tool, type UIMessage } from "ai";
import { durableTool } from "perdure";
import type { Fact, ScriptedCall } from "perdure/testing";
import type { CompactionInfo } from "../../src/wire/session-types.ts";
import { Think } from "../../src/agent/think.ts";
import { subscribe } from "../../src/host/node/publish-events.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { crashPoint, onCommand, programDir, report } from "../../src/testing/crash/child.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";
import { asksForSummary, decent, readAssignment } from "./summariser.ts";

/** What is done with the conversation. */
export type CrashCommand = { readonly type: "overflow" | "split" | "manual" | "undo" | "fork" };

/** How things stand at the end. */
export interface CrashLook extends Fact {
  readonly messages: readonly string[];
  readonly compactions: readonly CompactionInfo[];
  /** What was sent for the last answer: each message, then the tools. */
  readonly sent: readonly string[];
  readonly tools: string;
  /** Calls of all lives. */
  readonly answers: number;
  readonly summaries: number;
  readonly ran: number;
  /** Model calls that nobody knows the end of. */
  readonly open: number;
  readonly sessions: readonly string[];
}

const USABLE = 3_000;
const dir = programDir();
const file = (name: string) => join(dir, name);
const linesOf = (name: string) =>
  existsSync(file(name)) ? readFileSync(file(name), "utf8").trimEnd().split("\n") : [];

const facts = [
  { key: "code", from: "user", pattern: /the code is (\w+)/ },
  { key: "found", from: { tool: "look_up", in: "output" }, pattern: /"found":"(\w+)"/ },
  { key: "more", from: { tool: "look_up", in: "output" }, pattern: /"more":(\w+)/ },
] as const;
const summarises = decent(facts);

const model = scriptedModel((call) => {
  if (asksForSummary(call)) {
    appendFileSync(file("summaries"), "asked\n");
    return summarises(readAssignment(call), call);
  }
  appendFileSync(file("sent"), `${JSON.stringify({ prompt: call.prompt, tools: call.tools })}\n`);
  const known = call.prompt.some(({ role }) => role === "tool") || JSON.stringify(call.prompt).includes("found = F12");
  const { userText } = call;
  const lookUps = (...parts: number[]) => ({
    toolCalls: parts.map((part) => ({
      toolName: "look_up",
      toolCallId: `call-${part}`,
      input: { path: "list.txt", lines: userText, part },
    })),
  });
  if (userText.startsWith("Look up") && !known) return lookUps(1);
  const knowsMore = /call-2|more = /.test(JSON.stringify(call.prompt));
  if (userText.includes("then more") && !knowsMore) return lookUps(2, 3);
  return { text: `Answered ${call.userText}` };
});

/** Enough to be summarised, and not yet too much. */
function history(): UIMessage[] {
  return Array.from({ length: 24 }, (_, n) => ({
    id: `m${n}`,
    role: n % 2 === 0 ? ("user" as const) : ("assistant" as const),
    parts: [
      { type: "text", text: `${n === 4 ? "Remember, the code is K77." : "So it goes."} ${`word ${n} `.repeat(50)}` },
    ],
  }));
}

/** As long as one output may be, of those that come later. */
const MORE_LINES = 160;

function lookUp({ lines, part }: { readonly lines: string; readonly part: number }) {
  appendFileSync(file("ran"), "ran\n");
  if (part > 1) return { more: part, text: "line of the list ".repeat(MORE_LINES) };
  return { found: "F12", text: "line of the list ".repeat(Number(/\d+/.exec(lines)?.[0])) };
}

class Shrinking extends Think {
  override workspaceTools = false as const;
  override titles = false;
  override contextOverflow = { background: false };
  override modelLimits = { "scripted/*": { window: 10 * USABLE, input: USABLE } };

  override getModel() {
    return model;
  }

  override getTools() {
    return {
      look_up: durableTool(
        tool({ inputSchema: jsonSchema<{ lines: string; part: number }>({ type: "object" }), execute: lookUp }),
        {
          replay: "safe",
        },
      ),
    };
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }

  /** Told again in every life, as a queue would: it happens once all the same. */
  async play(type: CrashCommand["type"]): Promise<void> {
    await this.addMessages(history(), { mode: "append" });
    if (this.messages.length === 24) this.session.pin("m2");
    if (type === "overflow") return this.#ask("q1", "Look up 220 lines.");
    // More than what is kept whole: the answer itself is cut between two of its steps.
    if (type === "split") return this.#ask("q1", "Look up 5 lines, then more.");
    // What happened to the conversation before another life is known by what it says now.
    const [made] = this.listCompactions();
    const done = made?.status === "done" || made?.status === "undone" ? made : undefined;
    const first = done ?? (await this.compact());
    if (type === "manual") return this.#ask("q1", "What is the code?");
    await this.#ask("q1", "What is the code?");
    if (type === "undo") {
      if (first.status === "done") await this.undoCompaction(first.id);
      return this.#ask("q2", "And all of it?");
    }
    if (!this.getSessions().some(({ id }) => id === "fork")) this.forkSession("main", { id: "fork" });
    return this.#ask("q2", "And here?", "fork");
  }

  async #ask(id: string, text: string, session = "main"): Promise<void> {
    const message: UIMessage = { id, role: "user", parts: [{ type: "text", text }] };
    await this.submitMessages([message], { idempotencyKey: id, session });
    await this.waitUntilStable();
  }

  look(): CrashLook {
    const last = JSON.parse(linesOf("sent").at(-1) ?? "{}") as Pick<ScriptedCall, "prompt" | "tools">;
    return {
      type: "look",
      messages: this.getSessions().flatMap(({ id }) =>
        this.getHistory(undefined, { session: id }).map(({ role, parts }) =>
          JSON.stringify({ session: id, role, parts }),
        ),
      ),
      compactions: this.listCompactions(),
      sent: last.prompt.map((message) => JSON.stringify(message)),
      tools: JSON.stringify(last.tools),
      answers: linesOf("sent").length,
      summaries: linesOf("summaries").length,
      ran: linesOf("ran").length,
      open: this.listUsage().filter(({ status }) => status === "open").length,
      sessions: this.getSessions().map(({ id }) => id),
    };
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
flushCompileCache();
const host = createHost({ agents: { Shrinking }, dir, idleMs: 1e9, onCommit: crashPoint() });

onCommand(async (command) => {
  const agent = host.getAgentByName(Shrinking, "one");
  await agent.play((command as CrashCommand).type);
  report({ ...(await agent.look()) });
});
report({ type: "ready" });
