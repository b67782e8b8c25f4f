// A Think agent with actions, for the crash matrix. Two turns want the same thing done.
import { appendFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { jsonSchema } from "ai";
import { action, type AgentHost, Think } from "perdure";
import { serve, subscribe } from "perdure/node";
import { crashPoint, onCommand, programDir, report, scriptedModel } from "perdure/testing";
import type { ActionCommand, ActionLook } from "./crash-drive.ts";

const dir = programDir();
/** What was done to the world, over all lives. */
const did = (line: string) => appendFileSync(join(dir, "did"), `${line}\n`);
const inputSchema = jsonSchema<{ invoice: string }>({ type: "object" });

const actions = {
  charge: action({
    description: "Charges an invoice.",
    inputSchema,
    idempotencyKey: (input) => input.invoice,
    execute: async ({ invoice }) => {
      did(`charge ${invoice}`);
      // So that there is a moment between doing it and storing that it is done.
      await delay(2);
      return { charged: invoice };
    },
  }),
  stamp: action({
    description: "Stamps a paper.",
    inputSchema,
    execute: ({ invoice }) => {
      did(`stamp ${invoice}`);
      return "stamped";
    },
  }),
};

const model = scriptedModel(({ userText, step }) => {
  const input = { invoice: "i1" };
  if (step > 0) return `Answered ${userText}.`;
  const calls = userText === "first" ? ["charge", "stamp"] : ["charge"];
  return { toolCalls: calls.map((toolName) => ({ toolName, input, toolCallId: `${userText}-${toolName}` })) };
});

const alive: Clerk[] = [];

class Clerk extends Think {
  readonly #port: AgentHost;

  constructor(port: AgentHost) {
    super(port);
    this.#port = port;
  }

  override getModel() {
    return model;
  }

  override getActions() {
    return actions;
  }

  override onStart(): void {
    alive.push(this);
    report({ type: "woken", settled: this.listActions().filter(({ settledAt }) => settledAt !== null) });
  }

  override onError(error: unknown): void {
    report({ type: "failed", error: error instanceof Error ? error.message : String(error) });
  }

  look(id: number): ActionLook {
    const statuses = this.#port.sql<{ status: string }>("SELECT status FROM perdure_turn ORDER BY seq");
    return { type: "look", id, messages: this.messages, actions: this.listActions(), turns: statuses };
  }
}

subscribe("agent:failed", ({ payload }) => report({ type: "failed", ...payload }));
flushCompileCache();
const host = await serve({
  ...{ agents: { Clerk }, dir, port: 0, signals: false, idleMs: 1e9 },
  onCommit: crashPoint(),
});

async function submit(text: string): Promise<void> {
  const message = { id: `u-${text}`, role: "user" as const, parts: [{ type: "text" as const, text }] };
  await host.getAgentByName(Clerk, "one").submitMessages([message], { idempotencyKey: text });
  report({ type: "submitted", text });
}

async function look(id: number): Promise<void> {
  while (alive.length === 0) await delay(5);
  await alive[0]?.waitUntilStable();
  report(alive[0]?.look(id) ?? { type: "look", id });
}

onCommand((message) => {
  const command = message as ActionCommand;
  if (command.type === "submit") void submit(command.text);
  else void look(command.id);
});
report({ type: "ready", url: host.url });
