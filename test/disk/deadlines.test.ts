// Deadlines of questions that versions before stored by the ids of calls alone, in a table of their own.
import { convertToModelMessages, jsonSchema, streamText, tool, type ToolSet } from "ai";
import { AIChatAgent, Think } from "perdure";
import { createHost, type Host } from "perdure/node";
import { type ManualClock, manualClock, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { migrations } from "../../src/store/migrations.ts";
import { approvalSchema } from "../../src/store/tool-call.ts";
import { databaseFile, withDatabase } from "../host/agent-files.ts";
import { tempDir } from "../host/open-host.ts";
import { until } from "../support/until.ts";

const MINUTE = 60_000;
/** The last step of the schema under which deadlines had a table of their own. */
const BEFORE = 16;
const inputSchema = jsonSchema<object>({ type: "object" });
const paid: unknown[] = [];
const model = scriptedModel(({ prompt }) =>
  prompt.at(-1)?.role === "user"
    ? { toolCalls: [{ toolName: "pay", input: { sum: 7 }, toolCallId: "call_0" }] }
    : "Done.",
);
const tools: ToolSet = {
  pay: tool({ inputSchema, needsApproval: true, execute: (input) => paid.push(input) }),
};
const question = { id: "u1", role: "user" as const, parts: [{ type: "text" as const, text: "Pay." }] };

class Streams extends AIChatAgent {
  override approvalTimeoutMs = 10 * MINUTE;
  override async onChatMessage() {
    const messages = await convertToModelMessages(this.messages);
    return streamText({ model, messages, tools }).toUIMessageStreamResponse();
  }
  /** Asks in a new session. */
  async ask(): Promise<string> {
    const { id } = this.createSession("another");
    this.switchSession(id);
    await this.saveMessages([{ ...question, id: `u-${id}` }]);
    return id;
  }
  states(): Record<string, string[]> {
    const all = this.getSessions().map(({ id }) => {
      const parts = (this.sessions.get(id)?.getHistory() ?? []).flatMap((message) => message.parts);
      return [id, parts.flatMap((part) => ("toolCallId" in part ? [part.state] : []))] as const;
    });
    return Object.fromEntries(all.filter(([, states]) => states.length > 0));
  }
}

class Steps extends Think {
  override getModel() {
    return model;
  }
  override getTools() {
    return tools;
  }
  open() {
    return this.pendingApprovals();
  }
  async yes(): Promise<boolean> {
    return this.answerApproval("call_0", true);
  }
}

type AgentClass = typeof Streams | typeof Steps;
function open(dir: string, clock: ManualClock, agent: AgentClass): Host {
  const host = createHost({ agents: { One: agent }, dir, clock, log: () => {} });
  onTestFinished(() => host.stop());
  return host;
}

/** Two questions about calls of one id, as they were stored before; and a damaged message that names the call too. */
async function asked(clock: ManualClock, sessions: number): Promise<{ dir: string; ids: string[] }> {
  const dir = tempDir();
  const host = open(dir, clock, Streams);
  const one = host.getAgentByName(Streams, "one");
  const ids: string[] = [];
  for (let count = 0; count < sessions; count++) ids.push(await one.ask());
  await host.stop();
  withDatabase(databaseFile(dir, "one"), (db) => {
    expect(db.prepare("SELECT status, digest FROM perdure_tool_call").all()).toEqual(
      ids.map(() => ({ status: "asked", digest: "" })),
    );
    for (const id of db.prepare<[], string>("SELECT tool_call_id FROM perdure_tool_call").pluck().all())
      db.prepare("UPDATE perdure_message SET body = replace(body, ?, ?)").run(JSON.stringify(id), '"call_0"');
    db.exec(`INSERT INTO perdure_message (id, session, role, body, created_at) VALUES ('bad', 'lost', 'assistant', '{"call_0"', 0);
      ${approvalSchema.join(";")}; INSERT INTO perdure_approval SELECT 'call_0', min(expires_at) FROM perdure_tool_call;
      DELETE FROM perdure_tool_call; DELETE FROM perdure_migration WHERE id > ${BEFORE}`);
    for (const { id, statements } of migrations) {
      if (id <= BEFORE) continue;
      const step = statements.join(";");
      for (const [, kind, name] of step.matchAll(/CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)/g))
        db.exec(`DROP ${kind} IF EXISTS ${name}`);
      for (const [, table, column] of step.matchAll(/ALTER TABLE (perdure_usage) ADD COLUMN (\w+)/g))
        db.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`);
    }
  });
  return { dir, ids };
}

test("calls of one id in two conversations: both questions are over at the time that was stored for them", async () => {
  const clock = manualClock();
  const { dir, ids } = await asked(clock, 2);
  const one = open(dir, clock, Streams).getAgentByName(Streams, "one");
  expect(Object.keys(await one.states()).sort()).toEqual([...ids].sort());
  await clock.advance(10 * MINUTE);
  await expect.poll(async () => Object.values(await one.states()).flat()).toEqual(["output-denied", "output-denied"]);
});

test("a class that has become one of steps: who says yes to a question from before sees it run", async () => {
  const clock = manualClock();
  const { dir } = await asked(clock, 1);
  paid.length = 0;
  const one = open(dir, clock, Steps).getAgentByName(Steps, "one");
  // Nobody can be shown what it is bound to.
  expect(await one.open()).toEqual([]);
  expect(await one.yes()).toBe(true);
  await clock.advance(1_000);
  await until(() => paid.length > 0, "the call ran");
  expect(paid).toEqual([{ sum: 7 }]);
});

test("a class that has become one of steps: a question from before is over in time", async () => {
  const clock = manualClock();
  const { dir } = await asked(clock, 1);
  paid.length = 0;
  const host = open(dir, clock, Steps);
  const one = host.getAgentByName(Steps, "one");
  await one.open();
  await clock.advance(10 * MINUTE);
  await expect.poll(() => one.yes()).toBe(false);
  expect(paid).toEqual([]);
});
