import { PerdureError } from "../../base/error.ts";
import type { RecoveryBound, RecoveryFacts } from "../../base/event.ts";
import type { UIMessage } from "../../message/types.ts";
import type { AgentHost } from "../../port.ts";
import { readStored } from "../../store/damaged.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { hasContent } from "./carry-on.ts";
import { closeCut, waitsForAnswer } from "./cut-turn.ts";
import type { ChatRecoveryContext, TurnEnd } from "./chat-types.ts";
import type { Desk } from "./desk.ts";
import { sentAlong } from "./drive.ts";

const DEFAULT_MAX_ATTEMPTS = 10;
const DEFAULT_MAX_AGE_MS = 60 * 60 * 1000;
const DEFAULT_NO_PROGRESS_MS = 5 * 60 * 1000;
const DEFAULT_TERMINAL_MESSAGE = "The answer was interrupted and could not be finished. Please try again.";

/** What becomes of a turn that was cut off: it ends as it is, or is carried on from what is there. */
export type RecoveryDecision =
  | { readonly kind: "end"; readonly end: TurnEnd; readonly keepPartial: boolean }
  | { readonly kind: "carry-on"; readonly continuation: boolean; readonly incident: RecoveryFacts };

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
  /** Attempts in a row, and milliseconds, that brought nothing new. */
  readonly stuck: number;
  readonly stuckMs: number;
  readonly maxNoProgressAttempts: number;
  readonly noProgressTimeoutMs: number;
}

/** The part of the decision that needs nobody's opinion: what is the case, or which bound is reached. Pure. */
export function judgePartial(facts: PartialFacts): "cancelled" | "finished" | "waiting" | RecoveryBound | "open" {
  if (facts.cancelled) return "cancelled";
  if (facts.finished) return "finished";
  if (facts.waiting) return "waiting";
  if (facts.attempt > facts.maxAttempts) return "max_attempts";
  if (facts.ageMs > facts.maxAgeMs) return "max_age";
  if (facts.stuck > facts.maxNoProgressAttempts) return "max_no_progress_attempts";
  return facts.stuckMs > facts.noProgressTimeoutMs ? "no_progress_timeout" : "open";
}

/** Decides what becomes of a turn that an earlier attempt left running. Asks the app where there is a choice. */
export async function decideRecovery(desk: Desk, active: ActiveTurn): Promise<RecoveryDecision> {
  const { recovery } = desk.hooks.settings();
  const context = describe(desk, active, recovery.maxAttempts ?? DEFAULT_MAX_ATTEMPTS);
  const { incidentId, requestId, attempt, maxAttempts, recoveryKind } = context;
  const incident: RecoveryFacts = { incidentId, requestId, attempt, maxAttempts, recoveryKind };
  desk.host.emit("chat:recovery:detected", incident);
  const { builder, row } = active;
  const verdict = judgePartial({
    cancelled: row.cancelled === 1,
    finished: builder.finishReason !== undefined,
    // Where the engine runs the tools, it knows better what it waits for.
    waiting: desk.hooks.ranInSteps?.(row) !== true && waitsForAnswer(active),
    attempt,
    ageMs: context.ageMs,
    maxAttempts,
    maxAgeMs: recovery.maxAgeMs ?? DEFAULT_MAX_AGE_MS,
    stuck: row.stuck,
    stuckMs: desk.host.clock.now() - (row.progressAt ?? desk.host.clock.now()),
    maxNoProgressAttempts: recovery.maxNoProgressAttempts ?? maxAttempts,
    noProgressTimeoutMs: recovery.noProgressTimeoutMs ?? DEFAULT_NO_PROGRESS_MS,
  });
  if (verdict === "waiting") closeCut(desk, active);
  if (verdict === "cancelled" || verdict === "finished" || verdict === "waiting") {
    desk.host.emit("chat:recovery:skipped", { ...incident, reason: verdict });
    const status = verdict === "cancelled" ? "aborted" : "completed";
    return { kind: "end", end: { status }, keepPartial: true };
  }
  const goesOn =
    verdict === "open" && (attempt === 1 || (await asks(desk, () => recovery.shouldKeepRecovering?.(context), true)));
  if (!goesOn) {
    const reason = verdict === "open" ? "should_keep_recovering" : verdict;
    desk.host.emit("chat:recovery:exhausted", { ...incident, reason });
    await asks(desk, () => recovery.onExhausted?.(context), undefined);
    const text = recovery.terminalMessage ?? DEFAULT_TERMINAL_MESSAGE;
    // The app may say it in its own words.
    const error = await desk.hooks.explain(new PerdureError("limit", text), active.failure("recovery"));
    return { kind: "end", end: { status: "error", error }, keepPartial: true };
  }
  const wish = (await asks(desk, () => desk.hooks.recover(context), undefined)) ?? {};
  if (wish.continue === false) {
    desk.host.emit("chat:recovery:skipped", { ...incident, reason: "declined" });
    return { kind: "end", end: { status: "aborted" }, keepPartial: wish.persist ?? true };
  }
  desk.host.emit("chat:recovery:attempt", incident);
  return { kind: "carry-on", continuation: recoveryKind === "continue" || active.continuation, incident };
}

/** A turn that was carried on has ended. */
export function tellRecovered(host: AgentHost, incident: RecoveryFacts, end: TurnEnd): void {
  if (end.status === "completed") host.emit("chat:recovery:completed", incident);
  else host.emit("chat:recovery:failed", { ...incident, reason: end.error ?? end.status });
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
    recoveryKind: hasContent(builder) ? "continue" : "retry",
    partialText: parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
    partialParts: parts,
    ageMs: desk.host.clock.now() - (row.startedAt ?? row.createdAt),
    recoveryData: readStored(desk.host, row.stash, `what the turn ${row.id} has noted`) ?? null,
    ...sentAlong(desk.host, row),
    get messages() {
      return transcript.list(builder.id);
    },
  };
}
