// An agent that notes for whom it works: in every hook, in its tools, and in a child's. Who somebody is follows from a
// token in the address. What is noted outlives the process.
import { appendFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { jsonSchema, tool, type ToolSet } from "ai";
import { agentTool, durableTool, getCurrentAgent, type Identity, Think } from "perdure";
import { type BeforeHook, serve, subscribe } from "perdure/node";
import { crashPoint, onCommand, programDir, report, scriptedModel } from "perdure/testing";
import type { DurableExecutionOptions } from "../../src/tool/define.ts";
import { fastClock } from "../crash/fast-clock.ts";

const dir = programDir();
const inputSchema = jsonSchema<object>({ type: "object" });

/** One line for each place and time. */
function note(where: string, identity: Identity | undefined, more: object = {}): void {
  const current = getCurrentAgent().identity;
  appendFileSync(join(dir, "noted"), `${JSON.stringify({ where, identity, current, ...more })}\n`);
}

const call = (toolName: string) => ({ toolCalls: [{ toolName, input: {} }] });
const parentModel = scriptedModel(({ step }) => [call("find"), call("pay")][step] ?? "Done.");
const childModel = scriptedModel(({ step }) => (step === 0 ? call("read") : "Found."));

function noted(where: string, needsApproval: boolean) {
  const execute = (_: unknown, options: DurableExecutionOptions) => {
    note(where, options.identity, options.approval === undefined ? {} : { approval: options.approval });
    return "ok";
  };
  return durableTool(tool({ inputSchema, needsApproval, execute }), { replay: "safe" });
}

class Child extends Think {
  override workspaceTools = false as const;
  /** By the fast clock, a few seconds between two lives on a busy machine are minutes without progress. */
  override chatRecovery = { noProgressTimeoutMs: 1e9, maxAgeMs: 1e9 };
  override getModel() {
    return childModel;
  }
  override getTools(): ToolSet {
    return { read: noted("child's tool", false) };
  }
  override beforeTurn({ identity }: Parameters<Think["beforeTurn"]>[0]) {
    note("child's turn", identity);
  }
}

class Talk extends Think {
  override workspaceTools = false as const;
  /** By the fast clock, a few seconds between two lives on a busy machine are minutes without progress. */
  override chatRecovery = { noProgressTimeoutMs: 1e9, maxAgeMs: 1e9 };
  override getModel() {
    return parentModel;
  }
  override getTools(): ToolSet {
    return { find: agentTool(Child, { description: "Finds.", inputSchema }), pay: noted("tool", true) };
  }
  override beforeTurn({ identity }: Parameters<Think["beforeTurn"]>[0]) {
    note("turn", identity);
  }
  override onError(error: unknown): void {
    report({ type: "failed", error: error instanceof Error ? error.message : String(error) });
  }
}

const PEOPLE: Readonly<Record<string, Identity>> = { anna: { id: "u1", name: "Anna" }, ben: { id: "u2", name: "Ben" } };
const byToken: BeforeHook = (request) => {
  const identity = PEOPLE[new URL(request.url).searchParams.get("token") ?? ""];
  return identity && { identity };
};

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
// Lives are killed, so none would leave its compiled modules behind for the next.
flushCompileCache();
const host = await serve({
  agents: { Talk, Child },
  dir,
  port: 0,
  signals: false,
  idleMs: 1e9,
  clock: fastClock,
  onBeforeRequest: byToken,
  onCommit: crashPoint(),
});
onCommand(() => undefined);
report({ type: "ready", url: host.url });
