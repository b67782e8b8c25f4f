// One session from a question to its answer: a process that generates, one that executes tools, and this one, which asks,
// allows and looks. One of them may be killed on the way; it is started again.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentCollections, createApprovals, rowsOf } from "perdure/collections";
import type { AgentMessage, ChunkRecord, GenerationRecord, RowLog, ToolCallRecord } from "perdure/collections";
import { startProgram } from "perdure/testing";
import type { Program } from "perdure/testing";
import { env } from "../../crash/drive.ts";
import { bundleProgram } from "../../support/bundle-program.ts";
import { AGENT } from "./desk.ts";
import { openSessionLog } from "./open-log.ts";
import type { Place } from "./place.ts";
import { until } from "../../support/until.ts";

export type Role = "agent" | "tools" | "server";

/** How a session is run. */
export interface Plan {
  readonly toolMode: "hold" | "suspend";
  /** Who is killed, and after which of its writes (a server: of its commits). */
  readonly kill?: { readonly role: Role; readonly at: number };
}

/** A line that an execution of a tool has left. */
export interface Execution {
  readonly name: string;
  readonly id: string;
  readonly owner: string;
  /** What the call was when the tool began. */
  readonly status: string;
  readonly approved: string;
}

/** What a session came to, read by somebody who was not there. */
export interface Outcome {
  readonly messages: readonly AgentMessage[];
  readonly chunks: readonly ChunkRecord[];
  readonly generations: readonly GenerationRecord[];
  readonly toolCalls: readonly ToolCallRecord[];
  readonly executions: readonly Execution[];
  /** Rows of whoever was there all the time, beside those of whoever came at the end. */
  readonly seen: unknown;
  readonly found: unknown;
  /** Chunks that were seen before the answer was there. */
  readonly live: number;
  /** Who wrote how often. */
  readonly commits: Readonly<Record<Role, number>>;
  readonly killed: boolean;
}

export const programs = {
  agent: new URL("./agent-program.ts", import.meta.url),
  tools: new URL("./tools-program.ts", import.meta.url),
};
const QUESTION = "question";
let sessions = 0;

/** Runs one session there. */
export async function runSession(place: Place, plan: Plan): Promise<Outcome> {
  const { kill } = plan;
  const dir = mkdtempSync(join(tmpdir(), "perdure-session-"));
  const file = join(dir, "executions");
  if (kill?.role === "server") await place.restart(kill.at);
  const before = place.program.commits;
  const url = place.session(`session-${++sessions}`);
  const given = { ...env, SESSION: url, EXECUTIONS: file, TOOL_MODE: plan.toolMode };
  const start = async (role: "agent" | "tools") =>
    keepAlive(await bundleProgram(programs[role]), dir, given, kill?.role === role ? kill.at : undefined);
  const [agent, tools] = await Promise.all([start("agent"), start("tools")]);
  const server = place.program;
  const back = server.exited.then(() => (stopping || kill?.role !== "server" ? undefined : place.restart()));
  let stopping = false;
  const mine = openSessionLog(url);
  try {
    const live = await askAndAllow(mine.log);
    const commits = { agent: agent.commits(), tools: tools.commits(), server: place.program.commits - before };
    await Promise.all([agent.stop(), tools.stop()]);
    const killed = { agent: agent.lives() > 1, tools: tools.lives() > 1, server: server !== place.program };
    const late = openSessionLog(url);
    const rows = await readRows(late.log);
    await until(() => mine.log.position >= late.log.position, "everybody has seen everything");
    const found = snapshot(late.log);
    const seen = snapshot(mine.log);
    await late.close();
    return {
      ...rows,
      executions: readExecutions(file),
      seen,
      found,
      live,
      commits,
      killed: Object.values(killed).includes(true),
    };
  } catch (error) {
    // What it came to instead, for whoever reads the report.
    const facts = { agent: agent.facts(), tools: tools.facts() };
    throw new Error(`${JSON.stringify({ plan, facts, rows: snapshot(mine.log) }, null, 1)}`, { cause: error });
  } finally {
    stopping = true;
    await Promise.all([agent.stop(), tools.stop()]);
    await mine.close();
    if (server !== place.program) await back;
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Asks, allows what is asked for, and waits for the answer. @returns how many chunks were there before it */
export async function askAndAllow(log: RowLog): Promise<number> {
  const { messages, chunks, approvals, generations, toolCalls } = agentCollections(log);
  const decisions = createApprovals({ events: approvals });
  const said = rowsOf(messages);
  const pieces = rowsOf(chunks);
  let live = 0;
  const stop = pieces.subscribe(() => {
    if (!said.all().some(isAnswer)) live = pieces.all().length;
  });
  await said.ready();
  const question = { id: QUESTION, actorId: "Ada", targetAgent: AGENT, content: "What is a tide?" };
  await messages.insert(question).isPersisted.promise;
  const allow = async () => {
    for (const { toolCallId } of decisions.pending()) await decisions.approve(toolCallId, { actorId: "Ada" });
  };
  const listening = decisions.subscribe(() => void allow());
  await allow();
  await until(() => said.all().some(isAnswer), "the answer");
  await until(
    () =>
      rowsOf(generations)
        .all()
        .every(({ status }) => status !== "generating" && status !== "pending"),
    "no generation is under way",
  );
  await until(
    () =>
      rowsOf(toolCalls)
        .all()
        .every(({ status }) => status !== "executing"),
    "no tool is under way",
  );
  listening();
  stop();
  decisions.dispose();
  return live;
}

/** The last message of a turn: it calls no tools. */
export function isAnswer({ actorId, role, toolCalls }: AgentMessage): boolean {
  return actorId === AGENT && role === "assistant" && (toolCalls ?? []).length === 0;
}

async function readRows(log: RowLog) {
  const { messages, chunks, generations, toolCalls } = agentCollections(log);
  await Promise.all([messages, chunks, generations, toolCalls].map((one) => one.preload()));
  return {
    messages: rowsOf(messages).all(),
    chunks: rowsOf(chunks).all(),
    generations: rowsOf(generations).all(),
    toolCalls: rowsOf(toolCalls).all(),
  };
}

/** All rows with their versions. */
function snapshot(log: RowLog): unknown {
  const tables = ["messages", "chunks", "generations", "turns", "toolCalls", "approvals"];
  return Object.fromEntries(
    tables.map((name) => [name, [...log.table(name).rows()].toSorted((a, b) => a.order - b.order)]),
  );
}

export function readExecutions(file: string): Execution[] {
  try {
    return readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Execution);
  } catch {
    return [];
  }
}

/** A program that is started again when it is killed by its own hand. */
function keepAlive(file: URL, dir: string, extra: Record<string, string>, killAt: number | undefined) {
  let stopping = false;
  let lives = 1;
  let program = startProgram(file, { dir, env: extra, ...(killAt === undefined ? {} : { killAt }) });
  const follow = (life: Program) =>
    void life.exited.then(({ signal }) => {
      if (stopping || signal !== "SIGKILL") return;
      lives++;
      program = startProgram(file, { dir, env: extra });
    });
  follow(program);
  return {
    commits: () => program.commits,
    lives: () => lives,
    facts: () => program.facts,
    stop: async () => {
      stopping = true;
      await program.kill();
    },
  };
}
