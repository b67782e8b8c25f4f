import type { ModelMessage, Tool } from "ai";
import { PerdureError } from "../../base/error.ts";
import { cutText } from "../../message/cut-value.ts";
import { askRepair, INTERRUPTED_TEXT } from "../../message/repair.ts";
import {
  isTerminal,
  isToolPart,
  type Part,
  type ToolPart,
  toolName,
  type UIMessageChunk,
} from "../../message/types.ts";
import type { BackgroundRow } from "../../store/background-call.ts";
import { ownerIdOf } from "../../store/session.ts";
import { openQuestions } from "../../store/tool-call.ts";
import { readTurn, type TurnRow } from "../../store/turn.ts";
import type { CallIntent, CallRow, JudgedCall, ReturnedCall } from "../../tool/call-book.ts";
import { boundPreview } from "../../tool/bound-output.ts";
import { approvalOf } from "../../tool/decision-record.ts";
import type { ToolCallContext } from "../../tool/call-hooks.ts";
import { toolNamed, toolOptionsOf } from "../../tool/define.ts";
import { digestOf } from "../../tool/digest.ts";
import type { ParkedQuestion } from "../../tool/park.ts";
import { mayRun } from "../../tool/call-move.ts";
import { type EndedCall, failedCall, unfit, type Verdict } from "../../tool/runner.ts";
import { storedSteps } from "../../tool/step.ts";
import { repairsOf } from "../engine/mend.ts";
import { BUDGET_TOOL, type budgetInput } from "../../model/budget-question.ts";
import { answerWherever } from "../intake/tool-answers.ts";
import { isAsked } from "../policy.ts";
import { fromStore, judge, tellChanged, tellShown, toStore } from "./show-result.ts";
import type { StepRun } from "./step-run.ts";
import { FULL_TEXT, receiptChunk, tellRefused, WaitedCall } from "./waited-call.ts";

/** What a person is shown of what would be done. */
const MAX_REASON_BYTES = 2_000;

const CHANGED_TEXT = "The call was changed after it was approved. It did not run.";
const BLOCKED_TEXT = "The call was blocked.";
const LATE_TEXT = "The approval came too late. The call did not run.";

/** Where one tool call of the last step stands, as far as the next move depends on it. */
export type CallStanding =
  /** Has its result, error or denial. */
  | "settled"
  /** Ours to run, and may run now. */
  | "ready"
  /** A client or a person has to answer first. */
  | "waiting";

/** Where a call of the last step stands. */
export function standingOf(run: StepRun, part: ToolPart): CallStanding {
  if (isTerminal(part)) return "settled";
  if (part.state === "approval-requested") return "waiting";
  if (part.state === "approval-responded") return "ready";
  const tool = toolNamed(run.turn.tools, toolName(part));
  // A tool that is gone is ours to give an end to. One without `execute` is the client's to run.
  return tool === undefined || tool.execute !== undefined ? "ready" : "waiting";
}

type Question = Extract<Verdict, { kind: "ask" }>;

/** What is to be done with a call. */
type Order =
  | { readonly kind: "settle"; readonly chunks: readonly UIMessageChunk[]; readonly instead?: Part }
  /** It has ended without its tool: by `beforeToolCall`, or because it was done before. */
  | { readonly kind: "end"; readonly ended: EndedCall; readonly digest: string }
  /** It has returned, and was cut before anybody was shown the result. */
  | { readonly kind: "judge"; readonly returned: JudgedCall }
  | { readonly kind: "ask"; readonly digest: string; readonly need: Question }
  | RunOrder;

type RunOrder = {
  readonly kind: "run";
  readonly tool: Tool;
  readonly input: unknown;
  readonly digest: string;
  /** It goes on without the turn from its beginning. */
  readonly later?: { readonly lineage: string | null };
};

/** Settles calls of the last step: judges all, commits the intent of those that run, runs them, commits each result. */
export async function runCalls(run: StepRun, messages: readonly ModelMessage[]): Promise<void> {
  const { all, active, parts } = run;
  const messageId = active.builder.id;
  const rows = new Map(parts.book.of(messageId).map((row) => [row.toolCallId, row]));
  const decided: { part: ToolPart; order: Order }[] = [];
  for (const part of run.calls) {
    if (standingOf(run, part) !== "ready") continue;
    const order = await decide(run, part, rows.get(part.toolCallId), messages);
    if (run.signal.aborted) return;
    decided.push({ part, order });
  }
  // No wait from here to the commit: others may begin too.
  let room = decided.some(({ order }) => isLater(order)) ? parts.background.room() : 0;
  const orders = decided.map(({ part, order }) =>
    isLater(order) && room-- <= 0 ? { part, order: tooMany(run, part, order) } : { part, order },
  );
  const later = new Map<string, BackgroundRow>();
  const { approvalTimeoutMs } = all.policy;
  const now = all.host.clock.now();
  // One commit: a question that anybody sees is on the books.
  all.commit(() => {
    for (const { part, order } of orders) {
      if (order.kind === "settle") for (const chunk of order.chunks) active.take({ chunk });
      if (order.kind === "settle" && order.instead !== undefined) active.standIn(part.toolCallId, order.instead);
      if (order.kind === "ask") active.take({ chunk: question(part, order.need.reason) });
      if (isLater(order)) active.take({ chunk: receiptChunk(part) });
    }
    active.log.flush("sync", () => {
      for (const { part, order } of orders) {
        if (order.kind === "settle" || order.kind === "judge") continue;
        const intent = intentOf(run, part, order);
        if (order.kind === "run") {
          parts.book.start(intent);
          if (isLater(order)) later.set(part.toolCallId, move(run, part, order, order.later.lineage, false));
        } else if (order.kind === "end") store(run, intent, order.ended, { durationMs: 0 });
        else {
          const { summary, waitMs = approvalTimeoutMs } = order.need;
          parts.book.ask({ ...intent, expiresAt: waitMs > 0 ? now + waitMs : null, ...(summary && { summary }) });
        }
      }
    });
  });
  const begun = orders.filter(({ order: { kind } }) => kind !== "settle" && kind !== "ask");
  if (begun.length === 0) return;
  await all.host.durable();
  await Promise.all(
    begun.map(async ({ part, order }) => {
      const row = later.get(part.toolCallId);
      if (row === undefined || order.kind !== "run") return finish(run, part, order, messages);
      return parts.background.begin(row, order.tool, messages, run.context);
    }),
  );
}

function isLater(order: Order): order is RunOrder & Required<Pick<RunOrder, "later">> {
  return order.kind === "run" && order.later !== undefined;
}

function tooMany(run: StepRun, part: ToolPart, { digest }: RunOrder): Order {
  tellRefused(run, part, "running");
  return { kind: "end", ended: failedCall(FULL_TEXT), digest };
}

/** Runs what is to run, and shows how it ended. */
async function finish(run: StepRun, part: ToolPart, order: Order, messages: readonly ModelMessage[]): Promise<void> {
  if (order.kind === "run") return runOne(run, part, order, messages);
  if (order.kind === "end") return conclude(run, part, run.runner.contextOf(callOf(part), messages), order.ended, 0);
  if (order.kind !== "judge") return;
  const { given = part.input, durationMs } = order.returned;
  const called = run.runner.contextOf({ ...callOf(part), input: given }, messages);
  return conclude(run, part, called, fromStore(order.returned), durationMs);
}

async function decide(
  run: StepRun,
  part: ToolPart,
  row: CallRow | undefined,
  messages: readonly ModelMessage[],
): Promise<Order> {
  const { toolCallId } = part;
  const name = toolName(part);
  const settle = (ended: EndedCall): Order => ({ kind: "settle", chunks: [endChunk(part, ended)] });
  const fail = (text: string) => settle(failedCall(text));
  if (name === BUDGET_TOOL) return settle({ kind: "output", output: grant(run, part) });
  // Whatever has become of its tool since.
  const returned = row?.status === "returned" ? run.parts.book.toJudge(run.active.builder.id, toolCallId) : undefined;
  if (returned !== undefined) return { kind: "judge", returned };
  const tool = toolNamed(run.turn.tools, name);
  if (tool?.execute === undefined) return fail(`There is no tool ${JSON.stringify(name)} any more.`);
  const text = unfit(part.input);
  if (text !== undefined) return fail(text);
  const digest = await digestOf(name, part.input);
  const move = row === undefined ? "new" : mayRun(row, digest);
  if (move === "changed") return fail(CHANGED_TEXT);
  if (move === "denied" || move === "expired") return fail(row?.reason ?? BLOCKED_TEXT);
  // The answer counts, but the question had ended before it.
  if (move === "waiting") return fail(LATE_TEXT);
  if (move === "interrupted" || move === "settled" || move === "returned") return interrupted(run, part);
  // It was let through when it began.
  if (row?.parked !== undefined) return { kind: "run", tool, input: row.parked.given ?? part.input, digest };
  // Who had to be asked was asked.
  const approved = move !== "new" || part.state === "approval-responded";
  const verdict = await run.runner.judge({ ...callOf(part), tool }, messages, approved);
  if (verdict.kind === "refuse") return fail(verdict.reason ?? BLOCKED_TEXT);
  if (verdict.kind === "ask") return { kind: "ask", digest, need: verdict };
  if (verdict.kind === "answer") return { kind: "end", ended: verdict.ended, digest };
  if (verdict.kind === "block")
    return { kind: "end", ended: { kind: "output", output: verdict.reason ?? BLOCKED_TEXT }, digest };
  const order: RunOrder = { kind: "run", tool, input: verdict.input, digest };
  if (toolOptionsOf(tool).background !== 0) return order;
  const admission = await run.parts.background.admit(run.active.row.id);
  if ("lineage" in admission) return { ...order, later: admission };
  tellRefused(run, part, "count");
  return { kind: "end", ended: failedCall(admission.refused), digest };
}

/** Where somebody judges results, one is stored before it is: so it is judged after a crash too, and never made again. */
function store(run: StepRun, intent: CallIntent, ended: EndedCall, more: Omit<JudgedCall, keyof ReturnedCall>): void {
  if (!isAsked(run.asked, "afterToolCall")) return;
  const { book } = run.parts;
  if (book.returned(intent, { ...toStore(ended), ...more }) || ended.kind === "error") return;
  // What no row can hold is judged as it would be shown.
  const output = boundPreview(ended.output, toolOptionsOf(toolNamed(run.turn.tools, intent.tool)));
  book.returned(intent, { output, ...more });
}

/** Shows a result: to the hook that may change it, then to clients and the model. */
async function conclude(
  run: StepRun,
  part: ToolPart,
  called: ToolCallContext,
  ended: EndedCall,
  durationMs: number,
): Promise<void> {
  const { all, active, parts } = run;
  const { toolCallId } = part;
  const messageId = active.builder.id;
  const verdict = await judge(run, toolNamed(run.turn.tools, toolName(part)), called, ended, durationMs);
  if (run.signal.aborted) return;
  const shown = verdict.action === undefined ? "as-returned" : "changed";
  const ok = verdict.shown.kind === "output";
  all.commit(() => {
    active.take({ chunk: endChunk(part, verdict.shown) });
    active.log.flush("sync", () => parts.book.settle(messageId, toolCallId, all.host.clock.now(), shown, ok));
  });
  tellChanged(run, called, verdict);
  if (shown === "changed" && parts.book.original(toolCallId, messageId) === undefined)
    all.agent.failed(
      new PerdureError("limit", `What "${toolName(part)}" returned is too large to be kept beside what replaced it.`),
    );
  await tellShown(run, called, verdict, durationMs);
}

function endChunk({ toolCallId }: ToolPart, ended: EndedCall): UIMessageChunk {
  return ended.kind === "output"
    ? { type: "tool-output-available", toolCallId, output: ended.output }
    : { type: "tool-output-error", toolCallId, errorText: ended.errorText };
}

/** The tool was cut in the middle, and may not run again. */
function interrupted(run: StepRun, part: ToolPart): Order {
  const repaired = askRepair(part, run.active.message, repairsOf(run.all));
  const call = repaired !== undefined && isToolPart(repaired) ? repaired : undefined;
  const isDone = call?.state === "output-available";
  const ended: EndedCall = isDone
    ? { kind: "output", output: call.output }
    : failedCall(call?.errorText ?? INTERRUPTED_TEXT);
  const instead = call === undefined ? repaired : undefined;
  return { kind: "settle", chunks: [endChunk(part, ended)], ...(instead !== undefined && { instead }) };
}

async function runOne(run: StepRun, part: ToolPart, order: RunOrder, messages: readonly ModelMessage[]): Promise<void> {
  const { all, active, parts } = run;
  const { tool, input } = order;
  const waited = new WaitedCall(run, part, tool, messages);
  const { toolCallId } = part;
  const { clock } = all.host;
  const messageId = active.builder.id;
  // Who may change a result may not find that half of it was shown.
  const shows = !isAsked(run.asked, "afterToolCall") || toolOptionsOf(tool).preview === "always";
  const callKey = `${messageId}:${toolCallId}`;
  const attempt = parts.book.find(messageId, toolCallId)?.attempts ?? 0;
  const began = clock.now();
  const call = { ...callOf(part), tool, input };
  const work = () =>
    run.runner.run(call, messages, {
      ...{ abortSignal: waited.signal, idempotencyKey: callKey, turn: waited.turn },
      approval: approvalOf(all.host, messageId, toolCallId),
      resumed: parts.book.resumed(messageId, toolCallId),
      steps: (signal) => storedSteps(all.host, { messageId, toolCallId, attempt }, callKey, signal),
      progress: (output) => {
        if (!shows || waited.progress(output)) return;
        if (!run.signal.aborted)
          active.take({ chunk: { type: "tool-output-available", toolCallId, output, preliminary: true } });
      },
    });
  const called = run.runner.contextOf(call, messages);
  const running = run.telemetry?.tool(called, run.context, work) ?? work();
  const outcome = await waited.outcome(running, (lineage) => move(run, part, order, lineage, true));
  if (outcome === "later") return;
  if (outcome.kind === "aborted" || run.signal.aborted) return;
  if (outcome.kind === "parked") return parkCall(run, part, input, outcome.question);
  const durationMs = clock.now() - began;
  const given = input === part.input ? {} : { given: input };
  if (isAsked(run.asked, "afterToolCall"))
    all.commit(() => store(run, intentOf(run, part, order), outcome, { durationMs, ...given }));
  await conclude(run, part, called, outcome, durationMs);
}

/** The call goes on without the turn, in the transaction that shows its receipt. */
function move(run: StepRun, part: ToolPart, { input }: RunOrder, lineage: string | null, begun: boolean) {
  const { builder, row: turn } = run.active;
  const call = { messageId: builder.id, toolCallId: part.toolCallId, turn, begun, lineage };
  return run.parts.background.moved({ ...call, ...(input !== part.input && { given: input }) });
}

/** The person who was asked has said yes: nobody is asked again, and the next stop is the hard limit. */
function grant({ active, all, parts }: StepRun, part: ToolPart): string {
  const { host } = all;
  const { scope } = part.input as ReturnType<typeof budgetInput>;
  const keyOf = ({ id, session }: Pick<TurnRow, "id" | "session">): string =>
    scope === "turn" ? id : scope === "session" ? ownerIdOf(host, session) : "";
  const key = keyOf(active.row);
  active.log.also(() => {
    parts.ledger.grant(scope, key, {});
    // The same was asked in turns beside this one.
    host.afterTx((committed) => {
      if (!committed) return;
      const approver = parts.book.find(active.builder.id, part.toolCallId)?.approver ?? undefined;
      const answer = { kind: "approval", approved: true } as const;
      for (const question of openQuestions(host)) {
        const turn = question.tool === BUDGET_TOOL ? readTurn(host, question.turnId) : undefined;
        const asked = turn && (JSON.parse(question.input ?? "{}") as { scope?: string });
        if (turn === undefined || asked?.scope !== scope || keyOf(turn) !== key) continue;
        answerWherever(all, question, { answer, ...(approver !== undefined && { approver }) });
      }
    });
  });
  return "granted";
}

function intentOf(run: StepRun, part: ToolPart, order: { digest: string }) {
  const name = toolName(part);
  return {
    messageId: run.active.builder.id,
    toolCallId: part.toolCallId,
    turnId: run.active.row.id,
    step: Math.max(0, run.called - 1),
    tool: name,
    input: part.input,
    digest: order.digest,
    replay: toolOptionsOf(toolNamed(run.turn.tools, name)).replay,
  };
}

function callOf(part: ToolPart) {
  const { toolCallId, input } = part;
  return { toolCallId, toolName: toolName(part), input, dynamic: part.type === "dynamic-tool" };
}

/** Asks a person about a call. */
function question({ toolCallId }: ToolPart, reason: string | undefined, approvalId = toolCallId): UIMessageChunk {
  return { type: "tool-approval-request", approvalId, toolCallId, ...(reason !== undefined && { reason }) };
}

/** The call waits for a person from now on, and nothing of it stays in memory. @param input what the tool was given */
async function parkCall(run: StepRun, part: ToolPart, input: unknown, asked: ParkedQuestion): Promise<void> {
  const { all, active, parts } = run;
  const { toolCallId } = part;
  const messageId = active.builder.id;
  const digest = await digestOf(asked.tool, asked.input);
  if (run.signal.aborted) return;
  const { waitMs = all.policy.approvalTimeoutMs } = asked;
  const expiresAt = waitMs > 0 ? all.host.clock.now() + waitMs : null;
  const row = parts.book.find(messageId, toolCallId);
  const reason = asked.summary ?? `${asked.tool} ${JSON.stringify(asked.input ?? {})}`;
  // Each question has its own name: an answer to an earlier one is none to this.
  const approvalId = `${toolCallId}:${row?.attempts ?? 1}`;
  // It goes on with what it began with.
  const parked = { ...asked, digest, expiresAt, ...(input !== part.input && { given: input }) };
  all.commit(() => {
    active.take({ chunk: question(part, cutText(reason, MAX_REASON_BYTES), approvalId) });
    active.log.flush("sync", () => parts.book.park({ messageId, toolCallId }, parked));
  });
}
