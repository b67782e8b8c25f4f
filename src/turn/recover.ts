import { PerdureError } from "../error.ts";
import type { UIMessage } from "../message/types.ts";
import { batchState } from "../message/tool-answer.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { hasContent } from "./carry-on.ts";
import type { ChatRecoveryContext, TurnEnd } from "./chat-types.ts";
import type { Desk } from "./desk.ts";

const DEFAULT_MAX_ATTEMPTS = 10;
const DEFAULT_MAX_AGE_MS = 60 * 60 * 1000;
const DEFAULT_TERMINAL_MESSAGE = "The answer was interrupted and could not be finished. Please try again.";

/** What becomes of a turn that was cut off: it ends as it is, or is carried on from what is there. */
export type RecoveryDecision =
  | { readonly kind: "end"; readonly end: TurnEnd; readonly keepPartial: boolean }
  | { readonly kind: "carry-on"; readonly continuation: boolean };

/** What the partial answer tells of itself. */
export interface PartialFacts {
  readonly cancelled: boolean;
  /** The stream had come to its end; only the last commit was missing. */
  readonly finished: boolean;
  /** Somebody outside has to answer before a model can go on. */
  readonly waiting: boolean;
  readonly attempt: number;
  readonly ageMs: number;
  readonly maxAttempts: number;
  readonly maxAgeMs: number;
}

/** The part of the decision that needs nobody's opinion. Pure. */
export function judgePartial(facts: PartialFacts): "aborted" | "completed" | "exhausted" | "open" {
  if (facts.cancelled) return "aborted";
  if (facts.finished || facts.waiting) return "completed";
  if (facts.attempt > facts.maxAttempts || facts.ageMs > facts.maxAgeMs) return "exhausted";
  return "open";
}

/** Decides what becomes of a turn that an earlier attempt left running. Asks the app where there is a choice. */
export async function decideRecovery(desk: Desk, active: ActiveTurn): Promise<RecoveryDecision> {
  const { recovery } = desk.hooks.settings();
  const context = describe(desk, active, recovery.maxAttempts ?? DEFAULT_MAX_ATTEMPTS);
  const { builder } = active;
  const verdict = judgePartial({
    cancelled: active.row.cancelled === 1,
    finished: builder.finishReason !== undefined,
    // Where the engine runs the tools, it knows better what it waits for.
    waiting: desk.hooks.plan?.() === undefined && waitsForAnswer(active),
    attempt: context.attempt,
    ageMs: context.ageMs,
    maxAttempts: context.maxAttempts,
    maxAgeMs: recovery.maxAgeMs ?? DEFAULT_MAX_AGE_MS,
  });
  if (verdict === "aborted" || verdict === "completed")
    return { kind: "end", end: { status: verdict }, keepPartial: true };
  const goesOn =
    verdict === "open" &&
    (context.attempt === 1 || (await asks(desk, () => recovery.shouldKeepRecovering?.(context), true)));
  if (!goesOn) {
    await asks(desk, () => recovery.onExhausted?.(context), undefined);
    const error = await explain(desk, active, recovery.terminalMessage ?? DEFAULT_TERMINAL_MESSAGE);
    return { kind: "end", end: { status: "error", error }, keepPartial: true };
  }
  const wish = (await asks(desk, () => desk.hooks.recover(context), undefined)) ?? {};
  if (wish.continue === false) {
    return { kind: "end", end: { status: "aborted" }, keepPartial: wish.persist ?? true };
  }
  return { kind: "carry-on", continuation: context.kind === "continue" || active.continuation };
}

/** What the user reads. The app may say it in its own words. */
async function explain(desk: Desk, active: ActiveTurn, text: string): Promise<string> {
  const plan = desk.hooks.plan?.();
  if (plan === undefined) return text;
  return plan.explain(new PerdureError("limit", text), {
    stage: "recovery",
    requestId: active.row.id,
    identity: active.identity,
    messagesPersisted: true,
    classification: undefined,
    partial: active.empty ? undefined : active.message,
  });
}

/** A hook's answer, or the default when it has none or fails. */
async function asks<T>(desk: Desk, ask: () => T | undefined | Promise<T | undefined>, otherwise: T): Promise<T> {
  try {
    return (await ask()) ?? otherwise;
  } catch (thrown) {
    desk.hooks.failed(thrown, { stage: "recovery" });
    return otherwise;
  }
}

/**
 * Whether the cut came while somebody else was to act: an approval was asked for, or the step was over and calls
 * are left, which are then the client's to run. A call in a step that was not over was running here.
 */
function waitsForAnswer({ leftAt, message }: ActiveTurn): boolean {
  if (batchState(message).waiting === 0) return false;
  const stepOver = leftAt === "finish-step";
  return stepOver || message.parts.some((part) => "state" in part && part.state === "approval-requested");
}

function describe(desk: Desk, active: ActiveTurn, maxAttempts: number): ChatRecoveryContext {
  const { row, builder } = active;
  const transcript = desk.transcripts.of(row.session);
  const parts = builder.parts.slice(builder.inherited) as UIMessage["parts"];
  return {
    requestId: row.id,
    sessionId: row.session,
    identity: active.identity,
    incidentId: `${row.id}:${row.attempts}`,
    attempt: row.attempts,
    maxAttempts,
    kind: hasContent(builder) ? "continue" : "retry",
    partialText: parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
    partialParts: parts,
    ageMs: desk.host.clock.now() - (row.startedAt ?? row.createdAt),
    body: row.body === null ? undefined : (JSON.parse(row.body) as Record<string, unknown>),
    get messages() {
      return transcript.list(builder.id);
    },
  };
}
