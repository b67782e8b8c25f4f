// One session from a question to its answer: a process that generates, one that executes tools, and this one, which asks,
// allows and looks. One of them may be killed on the way; it is started again.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentCollections, createApprovals, rowsOf } from "perdure/collections";
import type { AgentMessage, ChunkRecord, GenerationRecord, RowLog, ToolCallRecord } from "perdure/collections";
import { startProgram } from "perdure/testing";
import type { Program } from "perdure/testing";
import { openLog } from "../../../examples/newsroom/log.ts";
import { env } from "../../crash/drive.ts";
import { eventually } from "../../host/open-host.ts";
import { bundleProgram } from "../../support/bundle-program.ts";
import { AGENT } from "./desk.ts";
import type { Place } from "./place.ts";

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

const programs = {
  agent: new URL("./agent-program.ts", import.meta.url),
  tools: new URL("./tools-program.ts", import.meta.url),
};
const QUESTION = "question";
let sessions = 0;

/** Runs one session there. */
export async function runSession(place: Place, plan: Plan): Promise<Outcome> {
  const url = place.session(`session-${++sessions}`);
  const dir = mkdtempSync(join(tmpdir(), "perdure-session-"));
  const file = join(dir, "executions");
  const extra = { ...env, SESSION: url, EXECUTIONS: file, TOOL_MODE: plan.toolMode };
  if (plan.kill?.role === "server") await place.restart(plan.kill.at);
  const before = place.program.commits;
  const workers = await Promise.all(
    (["agent", "tools"] as const).map(async (role) =>
      keepAlive(await bundleProgram(programs[role]), dir, extra, plan.kill?.role === role ? plan.kill.at : undefined),
    ),
  );
  const server = place.program;
  const again = server.exited.then(({ signal }) =>
    plan.kill?.role === "server" && signal === "SIGKILL" ? place.restart() : undefined,
  );
  const log = quietLog(url);
  try {
    const live = await askAndAllow(log);
    const commits = {
      agent: workers[0]?.commits() ?? 0,
      tools: workers[1]?.commits() ?? 0,
      server: place.program.commits - before,
    };
    const killed = plan.kill?.role === "server" ? server !== place.program : workers.some(({ lives }) => lives() > 1);
    await Promise.all(workers.map((worker) => worker.stop()));
    // It may be that the last commit was the one: then the server is on its way back.
    if (killed && plan.kill?.role === "server") await again;
    const late = quietLog(url);
    const outcome = await readOutcome(late);
    const result = { ...outcome, executions: readExecutions(file), seen: snapshot(log), found: snapshot(late) };
    await late.close();
    return { ...result, live, commits, killed };
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await log.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

function quietLog(url: string): RowLog {
  return openLog(url);
}

/** Asks, allows what is asked for, and waits for the answer. @returns how many chunks were there before it */
async function askAndAllow(log: RowLog): Promise<number> {
  const { messages, chunks, approvals, generations, toolCalls } = agentCollections(log);
  const decisions = createApprovals({ events: approvals });
  const said = rowsOf(messages);
  const pieces = rowsOf(chunks);
  let live = 0;
  const answered = () => said.all().some(({ actorId, role, content }) => actorId === AGENT && role === "assistant" && content !== "");
  const stop = pieces.subscribe(() => {
    if (!said.all().some((row) => isAnswer(row))) live = pieces.all().length;
  });
  await said.ready();
  await messages.insert({ id: QUESTION, actorId: "Ada", targetAgent: AGENT, content: "What is a tide?" }).isPersisted.promise;
  void answered;
  const allow = async () => {
    for (const { toolCallId } of decisions.pending()) await decisions.approve(toolCallId, { actorId: "Ada" });
  };
  const listening = decisions.subscribe(() => void allow());
  await allow();
  await eventually(() => said.all().some(isAnswer), "the answer");
  await eventually(
    () => rowsOf(generations).all().every(({ status }) => status !== "generating" && status !== "pending"),
    "no generation is under way",
  );
  await eventually(
    () => rowsOf(toolCalls).all().every(({ status }) => status !== "executing"),
    "no tool is under way",
  );
  listening();
  stop();
  await decisions.dispose();
  return live;
}

/** The last message of a turn: it calls no tools. */
export function isAnswer({ actorId, role, toolCalls }: AgentMessage): boolean {
  return actorId === AGENT && role === "assistant" && (toolCalls ?? []).length === 0;
}

async function readOutcome(log: RowLog) {
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
  const tables = ["messages", "chunks", "generations", "toolCalls", "approvals"];
  return Object.fromEntries(
    tables.map((name) => [name, [...log.table(name).rows()].toSorted((a, b) => a.order - b.order)]),
  );
}

function readExecutions(file: string): Execution[] {
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
