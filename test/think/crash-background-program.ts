// A Think agent whose tools go on in the background, for the crash matrix. What ran, all lives write into one file.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { jsonSchema, tool, type UIMessage } from "ai";
import type { Fact } from "perdure/testing";
import { Think } from "../../src/agent/think.ts";
import { subscribe } from "../../src/host/node/publish-events.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { crashPoint, onCommand, programDir, report } from "../../src/testing/crash/child.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";
import { type DurableExecutionOptions, durableTool, type DurableToolOptions } from "../../src/tool/define.ts";
import { runStep } from "../../src/tool/step.ts";

/** How things stand when all was told. */
export interface BackgroundLook extends Fact {
  readonly messages: readonly UIMessage[];
  /** Name, call and key of each run of a tool, in every life. */
  readonly ran: readonly string[];
  readonly calls: readonly { readonly tool: string; readonly status: string }[];
  readonly steps: number;
  readonly turns: readonly string[];
}

const dir = programDir();
const ranFile = join(dir, "ran");
const readLines = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : []);

/** Long enough that commits of the turn come while it runs. */
const WORK_MS = 15;

type Work = (options: DurableExecutionOptions) => Promise<unknown>;
const work: Work = async () => delay(WORK_MS, "done");
function noted(name: string, options: DurableToolOptions, run: Work = work) {
  const execute = (_: unknown, handed: DurableExecutionOptions) => {
    appendFileSync(ranFile, `${name} ${handed.idempotencyKey}\n`);
    report({ type: "ran", name });
    return run(handed);
  };
  return durableTool(tool({ inputSchema: jsonSchema<object>({ type: "object" }), execute }), options);
}

const tools = {
  safe: noted("safe", { background: true, replay: "safe" }),
  never: noted("never", { background: true }),
  slow: noted("slow", { background: { afterMs: 2 }, replay: "safe" }),
  stepped: noted("stepped", { background: true }, async ({ step = runStep }) => {
    await step("first", () => delay(2, "one"));
    return step("second", () => delay(WORK_MS, "done"));
  }),
};

const model = scriptedModel(({ userText, step }) => {
  if (userText !== "go") return `Read.`;
  if (step > 0) return "Under way.";
  return { toolCalls: Object.keys(tools).map((toolName) => ({ toolName, toolCallId: `call-${toolName}`, input: {} })) };
});

class Keeper extends Think {
  override workspaceTools = false as const;

  override getModel() {
    return model;
  }

  override getTools() {
    return tools;
  }

  override onStart(): void {
    if (process.env.JUDGE === "1") this.afterToolCall = () => delay(2).then(() => undefined);
    report({ type: "woken", calls: this.calls() });
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: String(error) });
  }

  calls(): BackgroundLook["calls"] {
    return this.port.sql("SELECT tool, status FROM perdure_tool_call ORDER BY seq");
  }

  readonly port: ConstructorParameters<typeof Think>[0];
  constructor(port: ConstructorParameters<typeof Think>[0]) {
    super(port);
    this.port = port;
  }

  async tell(): Promise<void> {
    await this.submitMessages("go", { idempotencyKey: "go" });
  }

  async look(): Promise<BackgroundLook> {
    do {
      await delay(2);
      await this.waitUntilStable();
    } while (this.listBackgroundCalls().length > 0 || this.listInbox().length > 0);
    await this.waitUntilStable();
    return {
      type: "look",
      messages: this.messages,
      ran: readLines(ranFile),
      calls: this.calls(),
      steps: this.port.sql("SELECT name FROM perdure_tool_step").length,
      turns: this.port
        .sql<{ status: string }>("SELECT status FROM perdure_turn ORDER BY seq")
        .map(({ status }) => status),
    };
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
flushCompileCache();
const host = createHost({ agents: { Keeper }, dir, idleMs: 1e9, onCommit: crashPoint() });

onCommand(async () => {
  const agent = host.getAgentByName(Keeper, "one");
  await agent.tell();
  report({ ...(await agent.look()) });
});
report({ type: "ready" });
