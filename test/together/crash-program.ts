// Three layers of Think agents, each the tool of the one above, for the crash matrix. The last message of the user says
// what happens in the first layer, and the task of a call what happens below it; see SCRIPTS.
import { appendFileSync, existsSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { jsonSchema, tool, type ToolSet } from "ai";
import { type AgentHost, agentTool, durableTool, type DurableToolOptions, Think } from "perdure";
import type { AgentToolLifecycleResult, AgentToolRunInfo } from "perdure";
import type { LedgerEntry } from "perdure/chat";
import { serve, subscribe } from "perdure/node";
import { countCalls, crashPoint, onCommand, programDir, report, scriptedModel } from "perdure/testing";
import type { ScriptedReply } from "perdure/testing";
import type { DurableExecutionOptions } from "../../src/tool/define.ts";
import { fastClock } from "../crash/fast-clock.ts";
import { type AgentLook, type Asked, type Background, type Layer, LAYERS, type TreeCommand } from "./crash-types.ts";

const dir = programDir();
const isLaterLife = existsSync(join(dir, "host.db"));
const { HOLD, KILL_AFTER, STOP_AT, SLOW_STOP, BUDGETS } = process.env;
/** Slow enough that a chunk is a commit of its own. */
const DELAY_MS = 2;
const LOOK_EVERY_MS = 5;
const SLOW_STOP_MS = 60;

/** In a later life the driver may want to look before anything goes on. */
const gate = Promise.withResolvers<void>();
if (!isLaterLife || HOLD !== "1") gate.resolve();

// Tools

interface Task {
  readonly task?: string;
}

const inputSchema = jsonSchema<Task>({ type: "object" });
const forever = () => new Promise<never>(() => {});

/** Notes every execution before it does anything: that is its effect. */
function noted(name: string, execute: () => unknown, durable: DurableToolOptions, needsApproval = false) {
  const run = (_: unknown, { toolCallId, idempotencyKey }: DurableExecutionOptions) => {
    appendFileSync(join(dir, "tools"), `${name} ${toolCallId} ${idempotencyKey}\n`);
    report({ type: "ran", name, call: toolCallId });
    return execute();
  };
  return durableTool(tool({ inputSchema, needsApproval, execute: run }), durable);
}

const own: ToolSet = {
  spade: noted("spade", () => "spade result", { replay: "never" }),
  send: noted("send", () => "send result", { replay: "never" }, true),
  stuck: noted("stuck", forever, { replay: "safe" }),
};

// Models

const call = (toolName: string, task?: string) => ({ toolName, input: task === undefined ? {} : { task } });
const HANG: ScriptedReply = { text: ["Well, ", "let me"], hang: true };

/** What the models of each layer say in each step, by the last message of the user. */
const SCRIPTS: Readonly<Record<Layer, Readonly<Record<string, readonly ScriptedReply[]>>>> = {
  Talk: {
    dig: [{ text: "On it. ", toolCalls: [call("help", "dig")] }, { text: ["It is ", "done."] }],
    note: [{ text: "On it. ", toolCalls: [call("help", "note")] }, { text: "It is done." }],
    ask: [{ text: "On it. ", toolCalls: [call("help", "ask")] }, { text: "It is done." }],
    later: [{ text: "Soon. ", toolCalls: [call("later", "note")] }, { text: "It is under way." }],
    "hang here": [HANG],
    "hang below": [{ text: "On it. ", toolCalls: [call("help", "hang here")] }],
    "hang at the end": [{ text: "On it. ", toolCalls: [call("help", "hang below")] }],
    "get stuck": [{ text: "On it. ", toolCalls: [call("help", "get stuck")] }],
    "hang after": [{ text: "On it. ", toolCalls: [call("help", "note")] }, HANG],
    hello: [{ text: "Hello." }],
  },
  Helper: {
    dig: [{ text: "Asking. ", toolCalls: [call("dig", "dig")] }, { text: "They found it." }],
    ask: [{ text: "May I? ", toolCalls: [call("send")] }, { text: "It is sent." }],
    note: [{ text: "Noted." }],
    "hang here": [HANG],
    "hang below": [{ text: "Asking. ", toolCalls: [call("dig", "hang here")] }],
    "get stuck": [{ text: "Asking. ", toolCalls: [call("dig", "get stuck")] }],
  },
  Digger: {
    dig: [{ text: "Digging. ", toolCalls: [call("spade")] }, { text: ["Gold ", "here."] }],
    "hang here": [HANG],
    "get stuck": [{ text: "Trying. ", toolCalls: [call("stuck")] }],
  },
};

function replyOf(layer: Layer, userText: string, step: number): ScriptedReply {
  if (userText.startsWith("The background work")) return { text: "Good to know." };
  const reply = SCRIPTS[layer][userText]?.[step];
  if (reply === undefined) throw new Error(`There is no step ${step} of "${userText}" in ${layer}.`);
  return reply;
}

function modelOf(layer: Layer) {
  const counter = countCalls({ file: join(dir, `calls-${layer}`) });
  const model = scriptedModel(async ({ userText, step }) => {
    report({ type: "asked", layer, userText, step });
    await gate.promise;
    return { delayMs: DELAY_MS, ...replyOf(layer, userText, step) };
  });
  return { counter, model: counter.wrap(model) };
}

const models = { Talk: modelOf("Talk"), Helper: modelOf("Helper"), Digger: modelOf("Digger") };

// The agents

/** All agents that are in memory. Looking at one there is no use of it that could wake it. */
const alive = new Map<string, Layered>();

abstract class Layered extends Think {
  override workspaceTools = false as const;
  /** By the fast clock, a few seconds between two lives on a busy machine are minutes without progress. */
  override chatRecovery = { noProgressTimeoutMs: 1e9, maxAgeMs: 1e9 };
  abstract readonly layer: Layer;
  override prices = { "scripted/*": { input: 1, output: 5 } };
  readonly #port: AgentHost;

  constructor(port: AgentHost) {
    super(port);
    this.#port = port;
  }

  override getModel() {
    return models[this.layer].model;
  }

  override formatAgentToolInput(input: unknown): string {
    return (input as Task).task ?? "";
  }

  /** In a later life a stop may be slow to come down: whoever goes on must have asked whether it should. */
  override async cancelAgentToolRun(runId: string, reason?: string): Promise<void> {
    if (isLaterLife && SLOW_STOP === "1") await delay(SLOW_STOP_MS);
    super.cancelAgentToolRun(runId, reason);
  }

  override onStart(): void {
    alive.set(this.#port.id, this);
    const { turns, toolCalls, runs } = this.look();
    report({ type: "woken", layer: this.layer, turns, toolCalls, runs });
  }

  override onError(error: unknown): void {
    report({ type: "failed", layer: this.layer, error: error instanceof Error ? error.message : String(error) });
  }

  /** All calls, newest first. They come in pages. */
  ledger(): LedgerEntry[] {
    const rows: LedgerEntry[] = [];
    for (;;) {
      const page = this.listUsage({ limit: 1000, before: rows.at(-1)?.seq });
      if (page.length === 0) return rows;
      rows.push(...page);
    }
  }

  look(): AgentLook {
    const rows = <T>(query: string): T[] => this.#port.sql<T>(query);
    const ledger = this.ledger();
    const turns = [...new Set(ledger.flatMap(({ turnId }) => (turnId === null ? [] : [turnId])))];
    return {
      id: this.#port.id,
      layer: this.layer,
      messages: this.messages,
      ledger,
      totals: this.usage(),
      turnTotals: turns.map((turn) => ({ turn, totals: this.usage({ turn }) })),
      turns: rows("SELECT id, status, cancelled, attempts, error FROM perdure_turn ORDER BY seq"),
      toolCalls: rows("SELECT tool_call_id AS id, tool, status FROM perdure_tool_call ORDER BY seq"),
      runs: rows(
        `SELECT run_id AS runId, status, cancelled, output, summary, error, chunks, tool_call_id AS toolCallId
         FROM perdure_agent_run ORDER BY seq`,
      ),
      asked: rows<Asked>(
        "SELECT run_id AS runId, status, output, summary, error, ended_at AS endedAt FROM perdure_run",
      ),
      children: this.listSubAgents().map(({ className, name }) => `${className}/${name}`),
      queued: rows("SELECT 1 FROM perdure_queue WHERE status IN ('pending', 'running')").length,
      questions: this.pendingApprovals().map(({ toolCallId }) => toolCallId),
    };
  }
}

class Digger extends Layered {
  readonly layer = "Digger";

  override getTools() {
    return own;
  }
}

class Helper extends Layered {
  readonly layer = "Helper";

  override getTools() {
    return { ...own, dig: agentTool(Digger, { description: "Digs.", inputSchema }) };
  }
}

class Talk extends Layered {
  readonly layer = "Talk";
  override budgets = JSON.parse(BUDGETS ?? "{}") as Think["budgets"];

  override getTools() {
    return {
      help: agentTool(Helper, { description: "Helps.", inputSchema }),
      later: agentTool(Helper, { description: "Helps, later.", inputSchema, detached: true }),
    };
  }

  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS delivered (run TEXT NOT NULL, status TEXT NOT NULL)`;
    super.onStart();
  }

  /** Server code that has something done which nobody waits for. It may do so twice. */
  async background(how: Background): Promise<string> {
    const onFinish = how === "sync" ? "noteAtOnce" : "noteSlowly";
    const detached = { onFinish } as const;
    const { status } = await this.runAgentTool(Helper, { input: { task: "note" }, runId: `bg-${how}`, detached });
    return status;
  }

  noteAtOnce({ runId }: AgentToolRunInfo, { status }: AgentToolLifecycleResult): void {
    this.sql`INSERT INTO delivered (run, status) VALUES (${runId}, ${status})`;
  }

  async noteSlowly({ runId }: AgentToolRunInfo, { status }: AgentToolLifecycleResult): Promise<void> {
    await delay(DELAY_MS);
    this.noteAtOnce({ runId } as AgentToolRunInfo, { status });
    await delay(DELAY_MS);
  }

  /** Has something done that takes a task, and does not wait for it in a turn. */
  async begin(task: string, runId: string): Promise<string> {
    const { status } = await this.runAgentTool(Helper, { input: { task }, runId, detached: true });
    return status;
  }

  delivered(): { run: string; status: string }[] {
    return this.sql<{ run: string; status: string }>`SELECT run, status FROM delivered`;
  }
}

subscribe("agent:failed", ({ id, payload }) => report({ type: "failed", agent: id, ...payload }));

// The host

const point = crashPoint();
/** Commits since the moment that a test counts from: the commit that stores a stop, or a command. */
let since: number | undefined;
let commits = 0;

const root = (): Talk | undefined => [...alive.values()].find((agent): agent is Talk => agent instanceof Talk);

function isStopped(): boolean {
  return (
    root()
      ?.look()
      .turns.some(({ cancelled }) => cancelled === 1) === true
  );
}

/**
 * With STOP_AT=n the turns of the first agent are stopped after n commits; with KILL_AFTER=n the first life ends n
 * commits after the moment that is counted from.
 */
function onCommit(): void {
  point();
  if (KILL_AFTER === undefined || isLaterLife) return;
  if (++commits === Number(STOP_AT)) setImmediate(() => root()?.abortAllRequests());
  if (since !== undefined) since++;
  else if (isStopped()) since = 0;
  if (since === Number(KILL_AFTER)) process.kill(process.pid, "SIGKILL");
}

// Lives are killed, so none would leave its compiled modules behind for the next.
flushCompileCache();
const classes = { agents: { Talk }, subAgents: { Helper, Digger } };
const host = await serve({ ...classes, dir, port: 0, signals: false, idleMs: 1e9, onCommit, clock: fastClock });

/** Every agent that has rows, once all of them are awake. */
function tree(): AgentLook[] | undefined {
  try {
    const looks = host.listAgents().map((id) => alive.get(id)?.look());
    return looks.some((look) => look === undefined) ? undefined : (looks as AgentLook[]);
  } catch {
    // The life of one is over: it is being deleted.
    return undefined;
  }
}

const isOpen = ({ status }: { status: string }) => ["held", "accepted", "running"].includes(status);

function isQuiet(looks: readonly AgentLook[]): boolean {
  // Those above one that waits for a person wait with it.
  if (looks.some(({ questions, turns }) => questions.length > 0 && !turns.some(isOpen))) return true;
  return !looks.some(({ turns, runs, asked, queued }) => queued > 0 || [...turns, ...runs, ...asked].some(isOpen));
}

/** Tells how things stand once nothing runs, without waking anybody. */
async function look(id: number): Promise<void> {
  for (let quiet = 0; quiet < 2;) {
    await delay(LOOK_EVERY_MS);
    const looks = tree();
    // Twice: what an end leaves to be done is done by then.
    quiet = looks !== undefined && isQuiet(looks) ? quiet + 1 : 0;
  }
  const calls = Object.fromEntries(LAYERS.map((layer) => [layer, models[layer].counter.count()]));
  report({ type: "look", id, agents: tree() ?? [], calls, delivered: root()?.delivered() ?? [], since: since ?? -1 });
}

const one = () => host.getAgentByName(Talk, "one");

async function obey(command: TreeCommand): Promise<unknown> {
  switch (command.type) {
    case "look":
      return look(command.id);
    case "release":
      return gate.resolve();
    case "submit": {
      const message = { id: "u1", role: "user" as const, parts: [{ type: "text" as const, text: command.text }] };
      return one().submitMessages([message], { idempotencyKey: "the one" });
    }
    case "background":
      return one().background(command.how);
    case "begin":
      return one().begin(command.task, command.runId);
    case "approve":
      for (const agent of alive.values())
        for (const { toolCallId } of agent.pendingApprovals()) agent.answerApproval(toolCallId, true);
      return undefined;
    case "cancel":
      since ??= 0;
      return one().cancelAgentTool(command.runId, "Not needed any more.");
    case "clear":
      since ??= 0;
      return one().clearAgentToolRuns();
  }
}

onCommand((message) => {
  const command = message as TreeCommand;
  obey(command).then(
    (value) => report({ type: "did", command: command.type, value: value ?? null }),
    (error: unknown) => report({ type: "failed", command: command.type, error: String(error) }),
  );
});
report({ type: "ready", url: host.url });
