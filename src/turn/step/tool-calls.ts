import type { ModelMessage, Tool } from "ai";
import { INTERRUPTED_TEXT } from "../../message/repair.ts";
import { isTerminal, type ToolPart, toolName, type UIMessageChunk } from "../../message/types.ts";
import type { CallRow } from "../../tool/call-book.ts";
import { toolOptionsOf } from "../../tool/define.ts";
import { digestOf } from "../../tool/digest.ts";
import { mayRun } from "../../tool/may-run.ts";
import { isDeeperThan, MAX_INPUT_DEPTH } from "../../tool/plain-json.ts";
import { runCall } from "../../tool/run-call.ts";
import { BUDGET_TOOL } from "./budget-question.ts";
import { askBefore, callContext, type EndedCall, tellEnd, toolTimeout } from "./call-context.ts";
import { type ApprovalNeed, needsApproval } from "./needs-approval.ts";
import { toolTurn } from "./nested-calls.ts";
import { parkCall, question } from "./park-call.ts";
import type { CallStanding } from "./next.ts";
import type { StepRun } from "./step-run.ts";

const CHANGED_TEXT = "The call was changed after it was approved. It did not run.";
const BLOCKED_TEXT = "The call was blocked.";
const DEEP_TEXT = `The input is nested deeper than ${MAX_INPUT_DEPTH} levels. Call the tool with a flatter one.`;
const LATE_TEXT = "The approval came too late. The call did not run.";

/** Where a call of the last step stands. */
export function standingOf(run: StepRun, part: ToolPart): CallStanding {
  if (isTerminal(part)) return "settled";
  if (part.state === "approval-requested") return "waiting";
  if (part.state === "approval-responded") return "ready";
  const tool = run.turn.tools[toolName(part)];
  // A tool that is gone is ours to give an end to. One without `execute` is the client's to run.
  return tool === undefined || tool.execute !== undefined ? "ready" : "waiting";
}

type Question = Extract<ApprovalNeed, { denied: boolean }>;

/** What is to be done with a call. */
type Order =
  | { readonly kind: "settle"; readonly chunks: readonly UIMessageChunk[] }
  /** `beforeToolCall` has given it an end: its tool does not run. */
  | { readonly kind: "end"; readonly ended: EndedCall }
  | { readonly kind: "ask"; readonly digest: string; readonly need: Question }
  | { readonly kind: "run"; readonly tool: Tool; readonly input: unknown; readonly digest: string };

/**
 * Settles the calls of the last step that may be settled now: each is decided upon, then the intent of all that run is
 * committed, then they run side by side, and each result is committed as it comes. Calls that need a person are asked.
 */
export async function runCalls(run: StepRun, messages: readonly ModelMessage[]): Promise<void> {
  const { desk, active, plan } = run;
  const messageId = active.builder.id;
  const rows = new Map(plan.book.of(messageId).map((row) => [row.toolCallId, row]));
  const orders: { part: ToolPart; order: Order }[] = [];
  for (const part of run.calls) {
    if (standingOf(run, part) !== "ready") continue;
    const order = await decide(run, part, rows.get(part.toolCallId), messages);
    if (run.signal.aborted) return;
    orders.push({ part, order });
  }
  const { approvalTimeoutMs } = desk.hooks.settings();
  const now = desk.host.clock.now();
  // One commit: a question that anybody sees is on the books.
  desk.commit(() => {
    for (const { part, order } of orders) {
      if (order.kind === "settle") for (const chunk of order.chunks) active.take({ chunk });
      if (order.kind === "end") active.take({ chunk: endChunk(part, order.ended) });
      if (order.kind === "ask") active.take({ chunk: question(part, order.need.reason) });
    }
    active.log.flush("sync", () => {
      for (const { part, order } of orders) {
        if (order.kind === "settle" || order.kind === "end") continue;
        const intent = intentOf(run, part, order);
        if (order.kind === "run") plan.book.start(intent);
        else {
          const { summary, waitMs = approvalTimeoutMs } = order.need;
          plan.book.ask({ ...intent, expiresAt: waitMs > 0 ? now + waitMs : null, ...(summary && { summary }) });
        }
      }
    });
  });
  const begun = orders.filter(({ order: { kind } }) => kind === "run" || kind === "end");
  if (begun.length === 0) return;
  await desk.host.durable();
  await Promise.all(
    begun.map(async ({ part, order }) => {
      if (order.kind === "run") await runOne(run, part, order, messages);
      if (order.kind === "end") await tellEnd(run, callContext(run, part, messages), order.ended, 0);
    }),
  );
}

async function decide(
  run: StepRun,
  part: ToolPart,
  row: CallRow | undefined,
  messages: readonly ModelMessage[],
): Promise<Order> {
  const { toolCallId } = part;
  const name = toolName(part);
  const fail = (text: string): Order => ({
    kind: "settle",
    chunks: [{ type: "tool-output-error", toolCallId, errorText: text }],
  });
  const say = (output: unknown): Order => ({
    kind: "settle",
    chunks: [{ type: "tool-output-available", toolCallId, output }],
  });
  if (name === BUDGET_TOOL) return say(grant(run, part));
  const tool = run.turn.tools[name];
  if (tool?.execute === undefined) return fail(`There is no tool ${JSON.stringify(name)} any more.`);
  if (isDeeperThan(part.input, MAX_INPUT_DEPTH)) return fail(DEEP_TEXT);
  const digest = await digestOf(name, part.input);
  const verdict = row === undefined ? "new" : mayRun(row, digest);
  if (verdict === "changed") return fail(CHANGED_TEXT);
  if (verdict === "denied" || verdict === "expired") return fail(row?.reason ?? BLOCKED_TEXT);
  // The answer counts, but the question had ended before it.
  if (verdict === "waiting") return fail(LATE_TEXT);
  if (verdict === "interrupted" || verdict === "settled") return interrupted(run, part);
  // Who had to be asked was asked.
  if (verdict === "new" && part.state !== "approval-responded") {
    const need = await needsApproval(run, part, tool, messages);
    if (need !== "free") {
      if ("known" in need) return say(need.known);
      return need.denied ? fail(need.reason ?? BLOCKED_TEXT) : { kind: "ask", digest, need };
    }
  }
  // It was let through when it began.
  if (row?.parked !== undefined) return { kind: "run", tool, input: row.parked.given ?? part.input, digest };
  const decision = await askBefore(run, callContext(run, part, messages));
  if (decision.action === "fail") return { kind: "end", ended: decision.failure };
  if (decision.action === "block") return end(decision.reason ?? BLOCKED_TEXT);
  if (decision.action === "substitute") return end(decision.output);
  return { kind: "run", tool, input: decision.input ?? part.input, digest };
}

function end(output: unknown): Order {
  return { kind: "end", ended: { kind: "output", output } };
}

function endChunk({ toolCallId }: ToolPart, ended: EndedCall): UIMessageChunk {
  return ended.kind === "output"
    ? { type: "tool-output-available", toolCallId, output: ended.output }
    : { type: "tool-output-error", toolCallId, errorText: ended.errorText };
}

/** The tool was cut in the middle, and may not run again. */
function interrupted(run: StepRun, part: ToolPart): Order {
  const { toolCallId } = part;
  const repaired = run.desk.hooks.repairToolPart(part, run.active.message);
  if (repaired?.state === "output-available") {
    return { kind: "settle", chunks: [{ type: "tool-output-available", toolCallId, output: repaired.output }] };
  }
  const text = repaired?.errorText ?? INTERRUPTED_TEXT;
  return { kind: "settle", chunks: [{ type: "tool-output-error", toolCallId, errorText: text }] };
}

async function runOne(
  run: StepRun,
  part: ToolPart,
  { tool, input }: Extract<Order, { kind: "run" }>,
  messages: readonly ModelMessage[],
): Promise<void> {
  const { desk, active, plan } = run;
  const { toolCallId } = part;
  const { clock } = desk.host;
  const messageId = active.builder.id;
  const began = clock.now();
  const work = () =>
    plan.runTool(() =>
      runCall(
        tool,
        { toolCallId, toolName: toolName(part), input },
        {
          messages: [...messages],
          identity: active.identity,
          abortSignal: run.signal,
          idempotencyKey: `${messageId}:${toolCallId}`,
          clock,
          runtimeContext: run.context,
          resumed: plan.book.resumed(messageId, toolCallId),
          turn: toolTurn(run, part, messages),
          progress: (output) => {
            if (!run.signal.aborted)
              active.take({ chunk: { type: "tool-output-available", toolCallId, output, preliminary: true } });
          },
          keep: (text) => plan.keep(text),
        },
        { timeoutMs: toolTimeout(run, part, tool) },
      ),
    );
  const called = callContext(run, { ...part, input }, messages);
  const outcome = await (run.telemetry?.tool(called, run.context, work) ?? work());
  if (outcome.kind === "aborted" || run.signal.aborted) return;
  if (outcome.kind === "parked") return parkCall(run, part, input, outcome.question);
  desk.commit(() => {
    active.take({ chunk: endChunk(part, outcome) });
    active.log.flush("sync", () => plan.book.settle(messageId, toolCallId, clock.now()));
  });
  await tellEnd(run, called, outcome, clock.now() - began);
}

/** The person who was asked has said yes: it is not asked again, and the next stop is the hard limit. */
function grant(run: StepRun, part: ToolPart): string {
  const { scope } = part.input as { scope: "turn" | "session" | "agent" };
  const { ledger } = run.plan;
  run.active.log.also(() => ledger.grant(scope, scope === "turn" ? run.active.row.id : ledger.session, {}));
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
    replay: toolOptionsOf(run.turn.tools[name]).replay,
  };
}
