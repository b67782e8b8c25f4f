// For crash tests of Think: what a client does in each life, and what must be true after any kill.
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import type { LedgerEntry, SteerReceipt, Submission, UsageTotals } from "perdure/chat";
import type { CrashOutcome, CrashScenario, Fact, Life, Program } from "perdure/testing";
import { expect } from "vitest";
import { INTERRUPTED_TEXT } from "../../src/message/repair.ts";
import { isTerminal, type ToolPart, toolName, toolParts } from "../../src/message/types.ts";
import { user } from "../chat/client.ts";
import {
  comeBack,
  type Command,
  connect,
  type Driver,
  expectSameLog,
  expectStored,
  logOf,
  type Look,
  lookAt,
  type Result,
  resultOf,
  seenIn,
  untilAnswered,
} from "../chat/crash-drive.ts";
import { allFacts, env, expectNoFailure } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

export const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

export type ThinkCommand =
  | Command
  | { readonly type: "submit"; readonly text: string; readonly key: string }
  /** The tool that waits has waited enough. */
  | { readonly type: "go on" }
  | { readonly type: "stop all" }
  | { readonly type: "approve and stop all" };

/** A turn as it is stored. */
export interface StoredTurn {
  readonly id: string;
  readonly status: string;
  readonly cancelled: number;
  readonly attempts: number;
  readonly error: string | null;
}

export interface StoredCall {
  readonly id: string;
  readonly tool: string;
  readonly status: string;
  readonly replay: "never" | "safe";
}

/** How things stand when nothing runs. */
export interface ThinkLook extends Look {
  readonly brokenCalls: number;
  readonly ledger: readonly LedgerEntry[];
  readonly totals: UsageTotals;
  readonly turnTotals: readonly { readonly turn: string; readonly totals: UsageTotals }[];
  readonly turns: readonly StoredTurn[];
  readonly toolCalls: readonly StoredCall[];
  /** Which message has which call. */
  readonly callIds: readonly { readonly id: string; readonly messageId: string }[];
  /** Steps that are stored. */
  readonly steps: readonly { readonly step: string }[];
  readonly receipts: readonly SteerReceipt[];
  readonly submissions: readonly Submission[];
  readonly questions: number;
}

/** What a run ends with. */
export type ThinkResult = Result & ThinkLook;

/** What every life of a matrix is given: a later one looks before it goes on. */
export const heldEnv = { ...env, HOLD: "1" };

export async function resultIn(child: Program): Promise<ThinkResult> {
  const look = await lookAt<ThinkLook>(child);
  return { ...look, ...resultOf(look, child.dir) };
}

/** Sends one message and waits for the end of its turn. */
export async function ask(child: Program, text: string): Promise<Driver> {
  const driver = await connect(child);
  driver.request("r1", [user("u1", text)]);
  await driver.frame(({ id, done }) => id === "r1" && done === true);
  return driver;
}

/** A client comes back, is given what it had seen, and stays until the end. */
export async function watchOn(child: Program, before: readonly Life[]): Promise<Driver> {
  const { driver, log } = await comeBack(child);
  expectSameLog(log, before);
  return driver;
}

/** What was held goes on. */
export const release = (child: Program): Promise<void> => child.send({ type: "release" } satisfies ThinkCommand);

/** A scenario of one message; what is asked for approval is approved. What was never accepted is sent again. */
export function oneMessage(text: string, more: Record<string, string> = {}): CrashScenario<ThinkResult> {
  const talk = async (child: Program): Promise<void> => {
    const driver = await ask(child, text);
    await untilAnswered(child, async () => driver);
  };
  return {
    program,
    env: { ...heldEnv, ...more },
    drive: talk,
    async resume(child, before) {
      await watchOn(child, before);
      await release(child);
    },
    async finish(child) {
      const { messages, questions } = await lookAt<ThinkLook>(child);
      const open = messages.flatMap((message) => toolParts(message)).filter(isQuestion);
      // Whatever a client shows as a question, the server knows as one.
      expect(questions).toBe(open.length);
      if (messages.length === 0) await talk(child);
      else await untilAnswered(child);
      return resultIn(child);
    },
  };
}

// What must hold

/** The promises that hold whatever was cut, and whenever. */
export async function expectKept(outcome: CrashOutcome<ThinkResult>): Promise<void> {
  const { result } = outcome.after;
  const facts = allFacts(outcome);
  expectNoFailure(outcome);
  expectSameMessages(outcome);
  await expectSeenKept(facts, result.messages);
  expectToolsOnce(outcome);
  expectLedger(outcome);
  expect(result.turns.filter(({ status }) => status !== "completed")).toEqual([]);
}

/** Every chunk that a client saw came to all who came back, and makes the answer that is stored, read strictly. */
async function expectSeenKept(facts: readonly Fact[], messages: readonly UIMessage[]): Promise<void> {
  let whole: UIMessage | undefined;
  for (const request of new Set(seenIn(facts).map((seen) => seen.request))) {
    const chunks = logOf(facts, request).map((body) => JSON.parse(body) as UIMessageChunk);
    expectStored(chunks, messages);
    expectStepsWhole(chunks);
    const start = chunks.find((chunk) => chunk.type === "start");
    const goesOn = start?.type === "start" && start.messageId === undefined;
    // What a continuation goes on with came with the transcript, if not all of it was seen as a stream.
    if (goesOn && whole === undefined) continue;
    const answer = await readStrictly(chunks, goesOn ? whole : undefined);
    whole = chunks.at(-1)?.type === "finish" ? answer : undefined;
  }
}

/** Each step begins and ends once: clients close what is open when a step ends. */
function expectStepsWhole(chunks: readonly UIMessageChunk[]): void {
  const frame = chunks.map(({ type }) => type).filter((type) => type === "start-step" || type === "finish-step");
  expect(frame).toEqual(frame.map((_, at) => (at % 2 === 0 ? "start-step" : "finish-step")));
}

/** What the AI SDK's own reader makes of a stream. It throws at what the stream has no right to say. */
export async function readStrictly(
  chunks: readonly UIMessageChunk[],
  base: UIMessage | undefined,
): Promise<UIMessage | undefined> {
  // A copy: the reader writes into it.
  const message = structuredClone(base);
  let last: UIMessage | undefined;
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  for await (const read of readUIMessageStream({ stream, terminateOnError: true, ...(message && { message }) })) {
    last = read;
  }
  return last;
}

/** The ids of tool calls that lives found in their rows when they began. */
function foundCalls(facts: readonly Fact[], matches: (call: StoredCall) => boolean): string[] {
  const found = facts.flatMap(({ type, calls }) => (type === "woken" ? (calls as readonly StoredCall[]) : []));
  return found.filter(matches).map(({ id }) => id);
}

const isQuestion = ({ state }: ToolPart): boolean => state === "approval-requested";
const isNever = (tool: string): boolean => tool === "once" || tool === "send" || tool === "burn";

/** The conversation is that of a run without a kill, but for what could not be known. */
function expectSameMessages(outcome: CrashOutcome<ThinkResult>): void {
  const { after, reference } = outcome;
  // Cut in the middle, and may not run again.
  const interrupted = foundCalls(allFacts(outcome), ({ status, replay }) => status === "started" && replay === "never");
  const expected = reference.result.messages.map((message) => structuredClone(message));
  const meant = expected.flatMap((message) => toolParts(message));
  const found = after.result.messages.flatMap((message) => toolParts(message));
  found.forEach((part, at) => {
    const is = part.state === "output-error" && part.errorText === INTERRUPTED_TEXT;
    expect(is, `${toolName(part)} was interrupted`).toBe(interrupted.includes(part.toolCallId));
    // The rest of the conversation is as if it had run.
    const other = meant[at];
    if (is && other !== undefined) {
      delete other.output;
      Object.assign(other, { state: "output-error", errorText: INTERRUPTED_TEXT });
    }
  });
  expect(nameless(after.result.messages)).toEqual(nameless(expected));
}

/** Ids that chance gives, numbered as they come. */
function nameless(messages: readonly UIMessage[]): unknown {
  const names = new Map<string, string>();
  const text = JSON.stringify(messages).replace(/\b(msg|call|key)[-_][\w-]+/g, (id) => {
    names.set(id, names.get(id) ?? `id-${names.size}`);
    return names.get(id) ?? "";
  });
  return JSON.parse(text) as unknown;
}

/** No tool ran again that had its result; those that may not run again ran once at most; a key belongs to one call. */
function expectToolsOnce(outcome: CrashOutcome<ThinkResult>): void {
  const { ran, messages, toolCalls } = outcome.after.result;
  for (const { name, call, key } of ran) {
    const same = ran.filter((one) => one.call === call);
    if (isNever(name)) expect(same, `runs of ${name}`).toHaveLength(1);
    expect(new Set(same.map((one) => one.key)), `keys of ${name}`).toEqual(new Set([key]));
    expect(ran.filter((one) => one.key === key && one.call !== call)).toEqual([]);
  }
  const lives = [...outcome.before.lives, outcome.after];
  const settled = new Set<string>();
  for (const { facts } of lives) {
    // What a process reports and what its client sees come on different ways: only lives have an order.
    for (const id of foundCalls(facts, ({ status }) => status === "settled" || status === "returned")) settled.add(id);
    const runs = facts.flatMap(({ type, call }) => (type === "ran" ? [String(call)] : []));
    expect(runs.filter((call) => settled.has(call))).toEqual([]);
    expect(new Set(runs).size, "each call once in a life").toBe(runs.length);
    for (const { body } of seenIn(facts)) {
      const chunk = JSON.parse(body) as UIMessageChunk;
      if (chunk.type === "tool-output-error") settled.add(chunk.toolCallId);
      if (chunk.type === "tool-output-available" && chunk.preliminary !== true) settled.add(chunk.toolCallId);
    }
  }
  const parts = messages.flatMap((message) => toolParts(message));
  expect(new Set(parts.map(({ toolCallId }) => toolCallId)).size, "each call has an id of its own").toBe(parts.length);
  const ids = messages.flatMap((message) =>
    toolParts(message).map(({ toolCallId: id }) => ({ id, messageId: message.id })),
  );
  const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
  expect([...outcome.after.result.callIds].sort(byId), "which message has which call").toEqual(ids.sort(byId));
  expect(parts.filter((part) => !isTerminal(part))).toEqual([]);
  expect(toolCalls.filter(({ status }) => status !== "settled" && status !== "denied")).toEqual([]);
  for (const { toolCallId, state } of parts)
    if (state === "output-available") expect(ran.map(({ call }) => call)).toContain(toolCallId);
}

/** The books are closed and add up; nothing was paid for twice but what was cut. */
function expectLedger({ after, before, reference }: CrashOutcome<ThinkResult>): void {
  const { result } = after;
  const kills = before.lives.length;
  expectSums(result);
  const ok = ({ ledger }: ThinkResult) =>
    ledger.filter(({ status }) => status === "ok").map(({ step, modelIndex, model }) => ({ step, modelIndex, model }));
  expect(ok(result), "settled calls").toEqual(ok(reference.result));
  const errors = ({ ledger }: ThinkResult) => ledger.filter(({ status }) => status === "error").length;
  expect(errors(result), "failed calls").toBeLessThanOrEqual(errors(reference.result));
  expect(result.ledger.filter(({ status }) => status === "cut").length, "cut calls").toBeLessThanOrEqual(kills);
  expect(result.calls, "calls").toBeLessThanOrEqual(reference.result.calls + kills);
  expect(result.calls, "calls").toBeGreaterThanOrEqual(ok(result).length);
  // A call is on the books before it is made.
  expect(result.calls + result.brokenCalls).toBeLessThanOrEqual(result.ledger.length);
}

/** No call is open, and each sum is the sum of its rows. */
export function expectSums({ ledger, totals, turnTotals }: ThinkLook): void {
  expect(ledger.filter(({ status }) => status === "open")).toEqual([]);
  expect(totals).toEqual(sumOf(ledger));
  for (const { turn, totals: ofTurn } of turnTotals)
    expect(ofTurn).toEqual(sumOf(ledger.filter(({ turnId }) => turnId === turn)));
}

function sumOf(rows: readonly LedgerEntry[]): UsageTotals {
  const sum = (value: (row: LedgerEntry) => number | null): number =>
    rows.reduce((total, row) => total + (value(row) ?? 0), 0);
  return {
    calls: rows.length,
    unpriced: 0,
    tokens: sum(({ tokens }) => tokens),
    input: sum(({ input }) => input),
    output: sum(({ output }) => output),
    reasoning: sum(({ reasoning }) => reasoning),
    cacheRead: sum(({ cacheRead }) => cacheRead),
    cacheWrite: sum(({ cacheWrite }) => cacheWrite),
    // Sums of billionths, told in dollars.
    cost: expect.closeTo(
      sum(({ cost }) => cost),
      9,
    ) as number,
    reservedTokens: 0,
    reservedCost: 0,
  };
}
