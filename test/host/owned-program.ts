// A host whose agents do all that agents can do at once, and whose life is ended in the middle of it, again and again. A
// promise without an owner would end the process: here it is told instead, with what was being done.
import { jsonSchema, tool } from "ai";
import { agentTool, type AgentHost, callable, Think } from "perdure";
import { AgentClient } from "perdure/client";
import { agentMcpServer, createMcpHandler } from "perdure/mcp";
import { serve } from "perdure/node";
import { onCommand, programDir, report, scriptedModel } from "perdure/testing";
import { createExecuteTool } from "perdure/tools";
import { join } from "node:path";
import { WebSocket } from "ws";
import { z } from "zod";

/** How a life ends: of the host, of its agents, or of one agent for good. */
export type Ending = "stop" | "replace" | "delete";
/** What is to be played: the ending comes after this many commits. `null`: not at all. */
export interface Scene {
  readonly ending: Ending;
  readonly after: number | null;
  readonly sandbox: boolean;
}

let scene = "";
process.on("unhandledRejection", (reason) => {
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
  report({ type: "unowned", scene, error: text });
});

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const long = (words: string) => `${words} ${"abc ".repeat(1_000)}`;

const model = scriptedModel(({ prompt, step, userText }) => {
  const text = JSON.stringify(prompt);
  if (text.includes("You write the notes")) return { text: "## Goal\nAll at once.", delayMs: 3 };
  if (text.includes("title")) return { text: "A title", delayMs: 2 };
  if (step > 0 || !userText.startsWith("work")) return { text: "Yes. It is done.", delayMs: 1 };
  const code = userText.includes("sandbox")
    ? [{ toolName: "execute", input: { code: "return await tools.slow({})" } }]
    : [];
  return {
    delayMs: 1,
    toolCalls: [
      { toolName: "slow", input: {} },
      { toolName: "help", input: { prompt: "child" } },
      { toolName: "later", input: { prompt: "child" } },
      { toolName: "asked", input: {} },
      ...code,
    ],
  };
});

const FILE = { type: "file" as const, mediaType: "image/png", url: `data:image/png;base64,${"iVBO".repeat(3_000)}` };

class Helper extends Think {
  override workspaceTools = false as const;
  override getModel() {
    return model;
  }
}

const anything = jsonSchema<Record<string, unknown>>({ type: "object" });
const slow = tool({
  inputSchema: anything,
  execute: async (_input, { abortSignal }) => {
    await pause(5);
    abortSignal?.throwIfAborted();
    return "slow";
  },
});

/** What the newest life was given. */
let last: AgentHost | undefined;

class Busy extends Think {
  static {
    callable(this, "everything");
    callable(this, "greet");
  }
  override contextOverflow = { background: true };
  override modelLimits = { "scripted/*": { window: 100_000, input: 4_000 } };
  override chatRecovery = false;
  constructor(host: AgentHost) {
    super(host);
    last = host;
    this.initialState = { count: 0 };
  }
  override getModel() {
    return model;
  }
  override getTitleModel() {
    return model;
  }
  override getCollections() {
    return { notes: {} };
  }
  override getTools() {
    const child = { inputSchema: z.object({ prompt: z.string() }), description: "Helps." };
    return {
      slow,
      help: agentTool(Helper, child),
      later: agentTool(Helper, { ...child, detached: true }),
      asked: tool({ inputSchema: anything, needsApproval: true, execute: () => "asked" }),
      execute: createExecuteTool({ tools: { slow } }),
    };
  }
  readonly #mcp = createMcpHandler(agentMcpServer(this, { methods: "callable" }));
  override onRequest(request: Request) {
    return this.#mcp(request);
  }
  greet() {
    return "hello";
  }
  async tick() {
    await pause(2);
    this.setState({ count: 1 });
  }
  async fiber() {
    await pause(2);
    this.stash({ at: 1 });
    await pause(2);
  }

  /** @param url where this host is, to be its own MCP server. */
  async everything(url: string, sandbox: boolean): Promise<string[]> {
    // Each has an owner at once: what this code itself leaves behind would be its own fault.
    const works = [
      () => this.schedule(0, "tick"),
      () => this.scheduleEvery(0.01, "tick"),
      () => this.queue("tick", {}),
      () => this.startFiber("own", () => pause(4)),
      () => this.runFiber("other", () => pause(4)),
      () => this.addMcpServer("self", `${url}/agents/busy/other`),
      () => this.addMcpServer("nobody", "http://127.0.0.1:9/mcp"),
      () => this.keepAliveWhile(() => pause(5)),
      () => this.retry(() => this.tick()),
      () => this.workspace.writeFile("/a.txt", "a"),
      () => this.runAgentTool(Helper, { input: "child" }),
      () => this.spawnFiber("fiber", {}),
      () => this.collection("notes").upsert({ id: "1", text: "note" }),
      () => this.addMessages([{ id: "file", role: "user", parts: [FILE, { type: "text", text: "look" }] }]),
      async () => {
        for (const text of [long("one"), long("two"), long("three"), sandbox ? "work in the sandbox" : "work"])
          await this.runTurn({ input: text });
        for (const { toolCallId } of this.pendingApprovals()) this.answerApproval(toolCallId, true);
        await this.compact().catch(() => {});
        await this.chat("streamed", { onEvent: () => {}, onDone: () => {} });
        await this.submitMessages("submitted");
      },
    ];
    const ends = await Promise.allSettled(works.map(async (work) => work()));
    return ends.flatMap((end) => (end.status === "rejected" ? [String(end.reason)] : []));
  }
}

let number = 0;

async function play({ ending, after, sandbox }: Scene) {
  let commits = 0;
  const due = Promise.withResolvers<void>();
  const onCommit = () => {
    if (++commits === after) due.resolve();
  };
  const dir = join(programDir(), String(++number));
  const log = { error: () => {}, warn: () => {}, info: () => {} } as never;
  const agents = { Busy, Helper };
  const host = await serve({ agents, dir, port: 0, hostname: "127.0.0.1", graceMs: 20, onCommit, log });
  const client = new AgentClient({ agent: "Busy", name: "one", host: host.url, WebSocket: WebSocket as never });
  client.addEventListener?.("error", () => {});
  const busy = host.getAgentByName(Busy, "one");
  const work = Promise.allSettled([
    busy.everything(host.url, sandbox),
    client.call("greet", []),
    fetch(`${host.url}/agents/busy/one/get-messages`).then((response) => response.text()),
    fetch(`${host.url}/agents/busy/one/chat`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ messages: [{ id: "h", role: "user", parts: [{ type: "text", text: "by http" }] }] }),
    }).then((response) => response.text()),
  ]);
  await Promise.race([due.promise, work]);
  if (ending === "replace")
    host.replaceAgents({ agents: { Busy: class extends Busy {}, Helper: class extends Helper {} } });
  else if (ending === "delete") await busy.destroy().catch(() => {});
  if (ending !== "stop") await pause(30);
  client.close();
  await host.stop();
  try {
    void last?.keepAwake(Promise.reject(new Error("Given away after the end of its life.")));
  } catch {
    // That it is over.
  }
  const failed = (await work).flatMap((end) => {
    if (end.status === "rejected") return [String(end.reason)];
    return Array.isArray(end.value) ? (end.value as string[]) : [];
  });
  return { commits, failed };
}

onCommand(async (command) => {
  const asked = command as Scene;
  scene = JSON.stringify(asked);
  const { commits, failed } = await play(asked);
  // What was left without an owner is told by now.
  await pause(20);
  report({ type: "played", scene, commits, failed });
});
report({ type: "ready" });
