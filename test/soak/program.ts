// The host of a soak, in a process of its own that is killed again and again.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import v8 from "node:v8";
import vm from "node:vm";
import { convertToModelMessages, jsonSchema, streamText, tool } from "ai";
import { Agent, agentTool, AIChatAgent, callable, type ChatTurnOptions, Think } from "perdure";
import { serve } from "perdure/node";
import { onCommand, programDir, report, scriptedModel } from "perdure/testing";
import type { RecordedCall, ScriptedCall, ScriptedModel, ScriptedReply } from "perdure/testing";

/** Those that may be under way. */
const MOST_RECORDED = 100;

function reply({ userText, step, prompt }: ScriptedCall): string | ScriptedReply {
  if (step > 0 || prompt.at(-1)?.role === "tool") return { text: ["It ", "is ", "done."], delayMs: 2 };
  const [toolName = ""] = userText.split(" ");
  if (["look", "pay"].includes(toolName)) return { toolCalls: [{ toolName, input: {} }] };
  if (toolName === "help") return { toolCalls: [{ toolName, input: { query: userText } }] };
  return { text: Array.from({ length: 12 }, (_, word) => `word ${word} `), delayMs: 2 };
}
const model: ScriptedModel = scriptedModel((call) => {
  // It keeps a record of every call, for tests that are short.
  (model.calls as RecordedCall[]).splice(0, model.calls.length - MOST_RECORDED);
  return reply(call);
});
const anything = jsonSchema<{ query?: string }>({ type: "object" });

/** Keeps keys: what was asked for and has happened. */
class Box extends Agent {
  static {
    callable(this, "put");
    callable(this, "found");
  }
  put(key: string): string {
    this.sql`CREATE TABLE IF NOT EXISTS done (key TEXT, at INTEGER)`;
    this.sql`INSERT INTO done VALUES (${key}, ${Date.now()})`;
    return key;
  }
  found(): string[] {
    this.sql`CREATE TABLE IF NOT EXISTS done (key TEXT, at INTEGER)`;
    return this.sql<{ key: string }>`SELECT key FROM done`.map(({ key }) => key);
  }
}

class Desk extends Box {
  static {
    callable(this, "put");
    callable(this, "found");
    callable(this, "later");
    callable(this, "enqueue");
    callable(this, "child");
    callable(this, "childFound");
    callable(this, "rows");
  }
  override getCollections() {
    return { notes: {} };
  }
  async later(key: string): Promise<string> {
    await this.schedule(1, "fire", { key });
    return key;
  }
  async enqueue(key: string): Promise<string> {
    await this.queue("fire", { key });
    return key;
  }
  fire({ key }: { key: string }): void {
    this.put(key);
  }
  async child(name: string, key: string): Promise<string> {
    return (await this.subAgent(Box, name)).put(key);
  }
  async childFound(name: string): Promise<string[]> {
    return (await this.subAgent(Box, name)).found();
  }
  rows(): string[] {
    return this.collection<{ id: string }>("notes")
      .list()
      .map(({ id }) => id);
  }
}

class Helper extends Think {
  override workspaceTools = false as const;
  override getModel() {
    return model;
  }
}

class Mind extends Think {
  static {
    callable(this, "answered");
    callable(this, "paid");
    callable(this, "unpaid");
  }
  override workspaceTools = false as const;
  override getModel() {
    return model;
  }
  override getTools() {
    return {
      look: tool({ inputSchema: anything, execute: () => "seen" }),
      pay: tool({
        inputSchema: anything,
        needsApproval: true,
        execute: (_input, { toolCallId }) => {
          this.sql`CREATE TABLE IF NOT EXISTS paid (call TEXT)`;
          this.sql`INSERT INTO paid VALUES (${toolCallId})`;
          return "paid";
        },
      }),
      help: agentTool(Helper, { description: "Helps.", inputSchema: anything, displayName: "Helper" }),
    };
  }
  answered(): string[] {
    return answeredIn(this.getHistory(null));
  }
  paid(): string[] {
    this.sql`CREATE TABLE IF NOT EXISTS paid (call TEXT)`;
    return this.sql<{ call: string }>`SELECT call FROM paid`.map(({ call }) => call);
  }
  /** Calls that were cut off or never began, and say so. */
  unpaid(): string[] {
    return this.getHistory(null).flatMap(({ parts }) =>
      parts.flatMap((part) => ("toolCallId" in part && part.state === "output-error" ? [part.toolCallId] : [])),
    );
  }
}

class Talk extends AIChatAgent {
  static {
    callable(this, "answered");
  }
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const messages = await convertToModelMessages(this.messages.slice(-4));
    return streamText({
      model,
      messages,
      abortSignal,
      maxRetries: 0,
      onError: () => undefined,
    }).toUIMessageStreamResponse();
  }
  answered(): string[] {
    return answeredIn(this.messages);
  }
}

function answeredIn(messages: readonly { readonly id: string; readonly role: string }[]): string[] {
  return messages.flatMap(({ id, role }, at) =>
    role === "user" && messages[at + 1]?.role === "assistant" ? [id] : [],
  );
}

v8.setFlagsFromString("--expose-gc");
const collect = vm.runInNewContext("gc") as () => void;
const lag = monitorEventLoopDelay({ resolution: 5 });
lag.enable();

function filesBelow(dir: string): { files: number; bytes: number } {
  const all = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const bytes = all.reduce(
    (sum, one) => sum + (statSync(join(one.parentPath, one.name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
  return { files: all.length, bytes };
}

const port = Number(process.env.PORT ?? 0);
const host = await serve({
  agents: { Desk, Mind, Talk },
  subAgents: { Box, Helper },
  dir: programDir(),
  port,
  signals: false,
  idleMs: 5_000,
  log: false,
});

onCommand((command) => {
  if (command !== "measure") return;
  collect();
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  report({
    type: "measure",
    rss,
    heapTotal,
    heapUsed,
    external,
    arrayBuffers,
    handles: process.getActiveResourcesInfo().length,
    fds: readdirSync("/proc/self/fd").length,
    lagMs: Math.round(lag.percentile(99) / 1e4) / 100,
    worstMs: Math.round(lag.max / 1e6),
    ...host.status(),
    ...filesBelow(programDir()),
  });
  lag.reset();
});
report({ type: "listening", port: host.port });
