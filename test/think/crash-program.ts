// A Think agent whose model follows from its prompt, for the crash matrix. The last message of the user says what
// happens; see SCRIPTS. What a life is to do differently, the test says with the environment.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { APICallError, jsonSchema, tool, type ToolSet } from "ai";
import {
  type AgentHost,
  durableTool,
  type DurableToolOptions,
  runStep,
  Think,
  type ToolCallResultContext,
  type ToolResultDecision,
  type ToolStepContext,
} from "perdure";
import type { LedgerEntry } from "perdure/chat";
import { serve, subscribe } from "perdure/node";
import { countCalls, crashPoint, onCommand, programDir, report, scriptedModel } from "perdure/testing";
import type { ScriptedReply } from "perdure/testing";
import { createExecuteTool } from "perdure/tools";
import type { DurableExecutionOptions } from "../../src/tool/define.ts";
import { fastClock } from "../crash/fast-clock.ts";
import type { StoredCall, StoredTurn, ThinkCommand, ThinkLook } from "./crash-drive.ts";

const dir = programDir();
const isLaterLife = existsSync(join(dir, "host.db"));
const { HOLD, FALLBACK, STEER, REAL_TIME, KILL_AFTER_STOP, BUDGETS, MAX_ATTEMPTS, SLOW_MODEL, JUDGE } = process.env;
/** Slow enough that a chunk is a commit of its own. */
const DELAY_MS = Number(SLOW_MODEL ?? 2);
/** The longest wait that the engine agrees to. */
const LONG_WAIT_S = 60;

/** In a later life the driver may want to look before anything goes on. */
const gate = Promise.withResolvers<void>();
if (!isLaterLife || HOLD !== "1") gate.resolve();
/** What the tool `wait` waits for. */
const released = Promise.withResolvers<void>();

/** Adds a line to a file of the folder, which all lives share. @returns how often that line was there before. */
function addLine(file: string, line: string): number {
  const path = join(dir, file);
  const before = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
  appendFileSync(path, `${line}\n`);
  return before.filter((one) => one === line).length;
}

// Tools

const inputSchema = jsonSchema<Record<string, unknown>>({ type: "object" });
type Execute = (options: DurableExecutionOptions, runs: number) => unknown;

/** Notes every execution before it does anything. */
function noted(name: string, execute: Execute, durable: DurableToolOptions, needsApproval = false) {
  const run = (_: unknown, options: DurableExecutionOptions) => {
    const runs = addLine("tools", `${name} ${options.toolCallId} ${options.idempotencyKey}`);
    report({ type: "ran", name, call: options.toolCallId, key: options.idempotencyKey });
    return execute(options, runs);
  };
  return durableTool(tool({ inputSchema, needsApproval, execute: run }), durable);
}

const never = { replay: "never" } as const;
const safe = { replay: "safe" } as const;
const forever = () => new Promise<never>(() => {});

const tools: ToolSet = {
  once: noted("once", () => "once result", never),
  read: noted("read", () => "read result", safe),
  // Shows how far it is: so there is a commit while it runs.
  slow: noted(
    "slow",
    async function* () {
      yield "half of it";
      await delay(DELAY_MS * 4);
      yield "slow result";
    },
    safe,
  ),
  send: noted("send", () => "send result", never, true),
  wait: noted("wait", () => released.promise.then(() => "wait result"), safe),
  // These two are cut in the middle: the first always, the second twice.
  burn: noted("burn", forever, never),
  fetch: noted("fetch", (_, runs) => (runs < 2 ? forever() : "fetch result"), safe),
  stuck: noted("stuck", forever, safe),
  // Says nothing about being run again: its steps do.
  stepped: noted(
    "stepped",
    async ({ toolCallId, step = runStep }) => {
      const did =
        (name: string) =>
        async ({ idempotencyKey: key }: ToolStepContext) => {
          report({ type: "stepped", call: toolCallId, step: name, key });
          await delay(DELAY_MS);
          return `${name} done`;
        };
      const first = await step("fetch", did("fetch"));
      const both = await Promise.all([step("charge", did("charge")), step("mail", did("mail"))]);
      return [first, ...both, await step("note", did("note"))];
    },
    {},
  ),
};
/** Code that calls a tool, then one that needs a yes, then the first again. */
const code = `const first = await tools.once({});
const sent = await tools.send({ first });
return [first, sent, await tools.once({ sent })];`;
tools.execute = createExecuteTool({ tools: { once: tools.once, send: tools.send } as ToolSet });

// Models

const call = (toolName: string, input: unknown = {}) => ({ toolName, input });
const named = (toolCallId: string, toolName: string, input: unknown = {}) => ({ toolName, input, toolCallId });

/** What the model says in each step, by the last message of the user. */
const SCRIPTS: Readonly<Record<string, readonly ScriptedReply[]>> = {
  work: [
    { text: ["Let me ", "see. "], toolCalls: [call("once"), call("read", { n: 1 }), call("slow")] },
    { text: ["One ", "more. "], toolCalls: [call("read", { n: 2 })] },
    { text: ["All ", "done."] },
  ],
  // As some providers do: calls are counted from zero in every response, or have no ids.
  "same ids": [
    { text: ["Counting. "], toolCalls: [named("", "read", { n: 1 }), named("", "once"), named("call_0", "slow")] },
    { text: ["Again. "], toolCalls: [named("call_0", "read", { n: 2 }), named("", "read", { n: 3 })] },
    { text: ["Counted."] },
  ],
  ask: [{ text: ["May ", "I? "], toolCalls: [call("send")] }, { text: ["It is ", "sent."] }],
  drive: [{ text: ["Going. "], toolCalls: [call("wait")] }, { text: ["Straight on."] }],
  "turn left": [{ text: ["Turning ", "left."] }],
  note: [{ text: ["Looking. "], toolCalls: [call("read")] }, { text: ["Noted ", "it."] }],
  limited: [{ text: ["Here ", "it is."] }],
  cut: [{ text: "Both. ", toolCalls: [call("burn"), call("fetch")] }, { text: "One failed." }],
  compute: [{ text: "Computing. ", toolCalls: [call("execute", { code })] }, { text: ["It is ", "done."] }],
  steps: [{ text: "In steps. ", toolCalls: [call("stepped")] }, { text: ["All ", "steps done."] }],
  "hang on": [{ text: ["Well, ", "let me"], hang: true }],
  "get stuck": [{ text: "Trying. ", toolCalls: [call("stuck")] }, { text: "It worked." }],
  busy: [{ text: "Never said." }],
  hello: [{ text: "Hello." }],
};
/** Asks for a tool in every step, and for always the same money. */
const RUNAWAY: ScriptedReply = {
  text: "Again. ",
  toolCalls: [call("read")],
  usage: { inputTokens: 100, outputTokens: 20 },
};

function refusal(statusCode: number, headers: Record<string, string> = {}): APICallError {
  const url = "https://model.example";
  return new APICallError({ message: "No.", url, requestBodyValues: {}, statusCode, responseHeaders: headers });
}

const counter = countCalls({ file: join(dir, "calls") });
const model = counter.wrap(
  scriptedModel(async ({ userText, step }) => {
    report({ type: "asked", userText, step });
    await gate.promise;
    if (userText === "limited" && addLine("refused", userText) === 0) throw refusal(429, { "retry-after": "2" });
    if (userText === "busy") throw refusal(429, { "retry-after": String(LONG_WAIT_S) });
    const reply = userText.startsWith("run away") ? RUNAWAY : SCRIPTS[userText]?.[step];
    if (reply === undefined) throw new Error(`There is no step ${step} of "${userText}".`);
    return { delayMs: DELAY_MS, ...reply };
  }),
);
const brokenCounter = countCalls({ file: join(dir, "broken-calls") });
const broken = brokenCounter.wrap(
  scriptedModel(
    () => {
      throw refusal(401);
    },
    { modelId: "broken" },
  ),
);

// The agent

const alive: Talk[] = [];

class Talk extends Think {
  override workspaceTools = false as const;
  override messageConcurrency = STEER === "1" ? ("steer" as const) : ("queue" as const);
  override prices = { "scripted/*": { input: 1, output: 5 } };
  override budgets = JSON.parse(BUDGETS ?? "{}") as Think["budgets"];
  override maxSteps = BUDGETS === undefined ? 10 : Infinity;
  /** By the fast clock, a few seconds between two lives on a busy machine are minutes without progress. */
  override chatRecovery = {
    maxAttempts: Number(MAX_ATTEMPTS ?? 10),
    terminalMessage: "Given up.",
    noProgressTimeoutMs: 1e9,
    maxAgeMs: 1e9,
  };
  readonly #port: AgentHost;

  constructor(port: AgentHost) {
    super(port);
    this.#port = port;
    if (JUDGE === "1") this.afterToolCall = (call) => this.judge(call);
  }

  /** Withholds what one of the tools returns, and takes its time. */
  async judge({ toolName, toolCallId }: ToolCallResultContext): Promise<ToolResultDecision | undefined> {
    report({ type: "judged", call: toolCallId });
    await delay(DELAY_MS);
    return toolName === "once" ? { action: "withhold", reason: "withheld" } : undefined;
  }

  override getModel() {
    return FALLBACK === "1" ? [broken, model] : model;
  }

  override getTools() {
    return tools;
  }

  /** Only the question: else every answer would make the next one dearer. */
  override assembleContext({ messages, tools: all }: Parameters<Think["assembleContext"]>[0]) {
    return super.assembleContext({ messages: BUDGETS === undefined ? messages : messages.slice(-1), tools: all });
  }

  override beforeTurn() {
    return { maxOutputTokens: 50 };
  }

  override onStart(): void {
    alive.push(this);
    report({ type: "woken", turns: this.turns(), calls: this.toolCalls(), steps: this.steps() });
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: error instanceof Error ? error.message : String(error) });
  }

  turns(): StoredTurn[] {
    return this.#port.sql("SELECT id, status, cancelled, attempts, error FROM perdure_turn ORDER BY seq");
  }

  toolCalls(): StoredCall[] {
    return this.#port.sql("SELECT tool_call_id AS id, tool, status, replay FROM perdure_tool_call ORDER BY seq");
  }

  /** The steps that are stored. */
  steps(): { readonly step: string }[] {
    return this.#port.sql("SELECT name AS step FROM perdure_tool_step ORDER BY name");
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

  look(id: number): ThinkLook {
    const ledger = this.ledger();
    const turns = [...new Set(ledger.flatMap(({ turnId }) => (turnId === null ? [] : [turnId])))];
    return {
      type: "look",
      id,
      messages: this.messages,
      calls: counter.count(),
      brokenCalls: brokenCounter.count(),
      ledger,
      totals: this.usage(),
      turnTotals: turns.map((turn) => ({ turn, totals: this.usage({ turn }) })),
      turns: this.turns(),
      toolCalls: this.toolCalls(),
      callIds: this.#port.sql("SELECT tool_call_id AS id, message_id AS messageId FROM perdure_call_id"),
      steps: this.steps(),
      receipts: this.turns().flatMap(({ id: request }) => this.steerReceipt(request) ?? []),
      submissions: this.listSubmissions(),
      questions: this.pendingApprovals().length,
    };
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
subscribe("chat:call:failed", ({ payload }) => report({ type: "call-failed", ...payload }));

const point = crashPoint();
let sinceStop = -1;
/** With KILL_AFTER_STOP=n the first life ends n commits after the one that stores a stop. */
function onCommit(): void {
  point();
  if (KILL_AFTER_STOP === undefined || isLaterLife) return;
  if (sinceStop >= 0 || alive[0]?.turns().some(({ cancelled }) => cancelled === 1) === true) sinceStop++;
  if (sinceStop === Number(KILL_AFTER_STOP)) process.kill(process.pid, "SIGKILL");
}

// Lives are killed, so none would leave its compiled modules behind for the next.
flushCompileCache();
const clock = REAL_TIME === "1" ? undefined : fastClock;
const host = await serve({ agents: { Talk }, dir, port: 0, signals: false, idleMs: 1e9, onCommit, clock });

/** Tells how things stand once nothing runs, without waking anybody. */
async function look(id: number): Promise<void> {
  while (host.listAgents().length > 0 && alive.length === 0) await delay(5);
  const [agent] = alive;
  if (agent === undefined) return report({ type: "look", id, messages: [], calls: 0, questions: 0 });
  await agent.waitUntilStable();
  // What a turn leaves to be done after its end is done by now.
  await delay(DELAY_MS);
  report(agent.look(id));
}

/** Server code that submits, as a queue consumer would: it may do so twice. */
async function submit(text: string, key: string): Promise<void> {
  const message = { id: `msg_${process.pid}`, role: "user" as const, parts: [{ type: "text" as const, text }] };
  const { accepted, submissionId } = await host
    .getAgentByName(Talk, "one")
    .submitMessages([message], { idempotencyKey: key });
  report({ type: "submitted", accepted, submissionId });
}

onCommand((message) => {
  const command = message as ThinkCommand;
  if (command.type === "look") void look(command.id);
  else if (command.type === "submit") void submit(command.text, command.key);
  else if (command.type === "stop all") alive[0]?.cancelAllChats();
  else if (command.type === "approve and stop all") {
    const question = alive[0]?.pendingApprovals()[0];
    alive[0]?.answerApproval(question?.toolCallId ?? "", true);
    alive[0]?.cancelAllChats();
  } else if (command.type === "go on") released.resolve();
  else gate.resolve();
});
report({ type: "ready", url: host.url });
