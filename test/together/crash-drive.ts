// For crash tests of runs: what a client does in each life, and what must be true of the whole tree after any kill.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { UIMessage } from "ai";
import type { CrashOutcome, CrashScenario, Fact, Life, Program } from "perdure/testing";
import { expect } from "vitest";
import { INTERRUPTED_TEXT } from "../../src/message/repair.ts";
import { isTerminal, toolParts } from "../../src/message/types.ts";
import { user } from "../chat/client.ts";
import { comeBack, connect, type Driver, expectSameLog, expectStored, logOf, seenIn } from "../chat/crash-drive.ts";
import { allFacts, env, expectNoFailure, ofType } from "../crash/drive.ts";
import { expectSums } from "../think/crash-drive.ts";
import { type AgentLook, type Layer, LAYERS, type TreeCommand, type TreeLook } from "./crash-types.ts";
import { expectHeardKept } from "./crash-heard.ts";
import { expectPaid } from "./crash-paid.ts";
import { bundleProgram } from "../support/bundle-program.ts";

/** Three agents make more commits, and so more lives, than other matrices have. */
export const TREE_MS = 900_000;

export const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

/** What a run of the program ends with. */
export interface TreeResult extends TreeLook {
  /** Every execution of a tool. */
  readonly ran: readonly { readonly name: string; readonly call: string; readonly key: string }[];
  /** What a client that comes at the end is told of runs. */
  readonly told: readonly Fact[];
}

export const tell = (child: Program, command: TreeCommand): Promise<void> => child.send(command);

/** Has server code do something, and waits until it is done. */
export async function have(child: Program, command: TreeCommand): Promise<unknown> {
  await child.waitFor("ready");
  await tell(child, command);
  const done = await child.waitFor(
    ({ type, command: of }) => (type === "did" || type === "failed") && of === command.type,
  );
  if (done.type === "failed") throw new Error(String(done.error));
  return done.value;
}

/** Waits until nothing runs in any agent. Nobody is connected for that, and nobody is woken. */
export async function lookAt(child: Program): Promise<TreeLook> {
  await child.waitFor("ready");
  const id = ofType(child.facts, "look").length;
  await tell(child, { type: "look", id });
  return (await child.waitFor((fact) => fact.type === "look" && fact.id === id)) as TreeLook;
}

export async function resultIn(child: Program): Promise<TreeResult> {
  const look = await lookAt(child);
  const driver = await connect(child);
  const ended = look.agents[0]?.runs.length ?? 0;
  const ends = () => driver.frames.filter(({ type }) => type === "agent-tool-event").filter(isEnd);
  await driver.frame(() => ends().length >= ended);
  const told = driver.frames.flatMap((frame) => (frame.type === "agent-tool-event" ? [{ ...frame }] : []));
  driver.close();
  return { ...look, ran: ranIn(child.dir), told };
}

function isEnd(frame: object): boolean {
  const { kind } = (frame as { event: { kind: string } }).event;
  return kind !== "started" && kind !== "chunk";
}

function ranIn(dir: string): TreeResult["ran"] {
  const file = join(dir, "tools");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines
    .filter((line) => line !== "")
    .map((line) => {
      const [name = "", call = "", key = ""] = line.split(" ");
      return { name, call, key };
    });
}

export async function ask(child: Program, text: string): Promise<Driver> {
  const driver = await connect(child);
  driver.request("r1", [user("u1", text)]);
  return driver;
}

const isAnswered = (driver: Driver) => driver.frame(({ id, done }) => id === "r1" && done === true);

/** Approves what is asked, however often. */
export async function untilAnswered(child: Program): Promise<TreeLook> {
  for (;;) {
    const look = await lookAt(child);
    if (!look.agents.some(({ questions }) => questions.length > 0)) return look;
    await tell(child, { type: "approve" });
  }
}

/** A client asks, stays, and comes back after each kill. What was never accepted is sent again. */
export function watched(text: string): CrashScenario<TreeResult> {
  const talk = async (child: Program): Promise<void> => {
    const driver = await ask(child, text);
    await untilAnswered(child);
    await isAnswered(driver);
  };
  return {
    program,
    env: { ...env, HOLD: "1" },
    drive: talk,
    async resume(child: Program, before: readonly Life[]) {
      const { log } = await comeBack(child);
      expectSameLog(log, before);
      await tell(child, { type: "release" });
    },
    async finish(child) {
      const { agents } = await untilAnswered(child);
      if ((agents[0]?.messages ?? []).length === 0) await talk(child);
      return resultIn(child);
    },
  };
}

/** Server code has something done, and does so again if it does not know that it was accepted. Nobody is connected. */
export function unwatched(command: TreeCommand): CrashScenario<TreeResult> {
  return {
    program,
    env,
    drive: (child) => have(child, command),
    async finish(child, before) {
      if (
        before.length > 0 &&
        ofType(
          before.flatMap(({ facts }) => facts),
          "did",
        ).length === 0
      )
        await have(child, command);
      await untilAnswered(child);
      return resultIn(child);
    },
  };
}

// What must hold

/** The promises that hold whatever was cut, and whenever. */
export function expectKept(outcome: CrashOutcome<TreeResult>): void {
  const { after, reference, before } = outcome;
  expectNoFailure(outcome);
  expect(after.result.agents.map(({ layer }) => layer)).toEqual(reference.result.agents.map(({ layer }) => layer));
  for (const [at, agent] of after.result.agents.entries()) {
    const meant = reference.result.agents[at];
    if (meant === undefined) continue;
    expectSameMessages(outcome, agent, meant);
    expectSameRuns(agent, meant);
    expectLedger(agent, meant, before.lives.length);
    expect(agent.turns.map(({ status }) => status)).toEqual(meant.turns.map(() => "completed"));
    expect(agent.toolCalls.filter(({ status }) => status !== "settled")).toEqual([]);
  }
  expectToolsOnce(outcome);
  expectCalls(outcome);
  expectPaid(after.result);
  const facts = allFacts(outcome);
  for (const request of new Set(seenIn(facts).map((seen) => seen.request))) {
    const chunks = logOf(facts, request).map((body) => JSON.parse(body) as Parameters<typeof expectStored>[0][number]);
    expectStored(chunks, after.result.agents[0]?.messages ?? []);
  }
  expectHeardKept(facts, after.result.told);
}

/** What lives found when they began: tool calls in this state. */
function foundCalls(facts: readonly Fact[], status: string): AgentLook["toolCalls"] {
  const found = ofType(facts, "woken").flatMap(({ toolCalls }) => toolCalls as AgentLook["toolCalls"]);
  return found.filter((call) => call.status === status);
}

const isNever = (tool: string): boolean => tool === "spade" || tool === "send";

/** The conversation is that of a run without a kill, but for what could not be known. */
function expectSameMessages(outcome: CrashOutcome<TreeResult>, agent: AgentLook, meant: AgentLook): void {
  const started = foundCalls(allFacts(outcome), "started").filter(({ tool }) => isNever(tool));
  const interrupted = new Set(started.map(({ id }) => id));
  const expected = meant.messages.map((message) => structuredClone(message));
  const others = expected.flatMap((message) => toolParts(message));
  agent.messages
    .flatMap((message) => toolParts(message))
    .forEach((part, at) => {
      expect(isTerminal(part)).toBe(true);
      const is = part.state === "output-error" && part.errorText === INTERRUPTED_TEXT;
      expect(is, `${part.type} was interrupted`).toBe(interrupted.has(part.toolCallId));
      const other = others[at];
      if (!is || other === undefined) return;
      delete other.output;
      Object.assign(other, { state: "output-error", errorText: INTERRUPTED_TEXT });
    });
  expect(nameless(agent.messages)).toEqual(nameless(expected));
}

/** Ids that chance gives, numbered as they come. */
function nameless(messages: readonly UIMessage[]): unknown {
  const names = new Map<string, string>();
  const text = JSON.stringify(messages).replace(/\b(msg|call|key|run|srv)[-_][\w-]+/g, (id) => {
    names.set(id, names.get(id) ?? `id-${names.size}`);
    return names.get(id) ?? "";
  });
  return JSON.parse(text) as unknown;
}

/** One row per call, with the end of the undisturbed run, on both sides. */
function expectSameRuns(agent: AgentLook, meant: AgentLook): void {
  const ends = (runs: readonly { status: string; output: string | null; summary: string | null }[]) =>
    runs.map(({ status, output, summary }) => ({ status, output, summary }));
  expect(ends(agent.runs), "runs").toEqual(ends(meant.runs));
  expect(ends(agent.asked), "runs for the parent").toEqual(ends(meant.asked));
  const calls = agent.runs.flatMap(({ toolCallId }) => toolCallId ?? []);
  expect(new Set(calls).size, "one run per call").toBe(calls.length);
  expect(agent.children.map((child) => child.split("/")[1])).toEqual(agent.runs.map(({ runId }) => runId));
}

/** The books are closed and add up; nothing was paid for twice but what was cut. */
function expectLedger(agent: AgentLook, meant: AgentLook, kills: number): void {
  expectSums(agent as unknown as Parameters<typeof expectSums>[0]);
  // Only its own: what others did for it may have come in another order.
  const steps = ({ ledger }: AgentLook, of: string) =>
    ledger.filter(({ status, purpose }) => status === of && purpose === "turn").map(({ step }) => step);
  expect(steps(agent, "ok"), `settled calls of ${agent.layer}`).toEqual(steps(meant, "ok"));
  expect(steps(agent, "cut").length, `cut calls of ${agent.layer}`).toBeLessThanOrEqual(kills);
  expect(steps(agent, "error")).toEqual([]);
}

/** No tool ran again that had its result, and none twice that may not. */
function expectToolsOnce({ before, after }: CrashOutcome<TreeResult>): void {
  const { ran } = after.result;
  const never = ran.filter(({ name }) => isNever(name)).map(({ call }) => call);
  expect(new Set(never).size, "runs of tools that may run once").toBe(never.length);
  const settled = new Set<string>();
  for (const { facts } of [...before.lives, after]) {
    for (const { id } of foundCalls(facts, "settled")) settled.add(id);
    const runs = ofType(facts, "ran").map(({ call }) => String(call));
    expect(runs.filter((call) => settled.has(call))).toEqual([]);
    expect(new Set(runs).size, "each call once in a life").toBe(runs.length);
  }
}

/** Each layer called its model as often as it would have, and again at most what a kill cut. */
function expectCalls({ before, after, reference }: CrashOutcome<TreeResult>): void {
  const more = (layer: Layer) => after.result.calls[layer] - reference.result.calls[layer];
  for (const layer of LAYERS) {
    expect(more(layer), `calls of ${layer}`).toBeLessThanOrEqual(before.lives.length);
    expect(more(layer), `calls of ${layer}`).toBeGreaterThanOrEqual(0);
  }
}

/** Works on all of them, two at a time, until one fails. What is under way then comes to its end first. */
export async function inTurns<T>(list: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const todo = [...list];
  const worker = async (): Promise<void> => {
    try {
      for (let item = todo.shift(); item !== undefined; item = todo.shift()) await work(item);
    } finally {
      todo.length = 0;
    }
  };
  const ends = await Promise.allSettled([worker(), worker()]);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}
