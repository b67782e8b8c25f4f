import { PerdureError } from "../../base/error.ts";
import type { RecoveryBound, RecoveryFacts } from "../../base/event.ts";
import { tryParseJson } from "../../base/json.ts";
import { batchState } from "../../message/tool-answer.ts";
import { type ToolPart, toolName, type UIMessage } from "../../message/types.ts";
import type { AgentHost } from "../../port.ts";
import { readStored } from "../../store/damaged.ts";
import { openTurns, type TurnRow } from "../../store/turn.ts";
import type { ClientTool } from "../../wire/frames.ts";
import { type ChatRecoveryConfig, type ChatRecoveryContext, explain } from "../policy.ts";
import type { Engine, TurnEnd } from "./engine.ts";
import { isApproved, repairsOf } from "./mend.ts";
import { hasContent, Turn } from "./turn.ts";

const DEFAULT_MAX_ATTEMPTS = 10;
const DEFAULT_MAX_AGE_MS = 60 * 60 * 1000;
const DEFAULT_NO_PROGRESS_MS = 5 * 60 * 1000;
const DEFAULT_TERMINAL_MESSAGE = "The answer was interrupted and could not be finished. Please try again.";

/** What becomes of a turn that was cut off: it ends as it is, or is carried on from what is there. */
type RecoveryDecision =
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

/** Decides what becomes of a turn that an earlier attempt left running (`next-moves.ts` finds it), and asks the app if it may. */
export async function decideRecovery(all: Engine, turn: Turn): Promise<RecoveryDecision> {
  const recovery = recoveryOf(all);
  const context = describe(all, turn, recovery.maxAttempts ?? DEFAULT_MAX_ATTEMPTS);
  const { incidentId, requestId, attempt, maxAttempts, recoveryKind } = context;
  const incident: RecoveryFacts = { incidentId, requestId, attempt, maxAttempts, recoveryKind };
  all.host.emit("chat:recovery:detected", incident);
  const { builder, row } = turn;
  const verdict = judgePartial({
    cancelled: row.cancelled === 1,
    finished: builder.finishReason !== undefined,
    // Where the engine runs the tools, it knows better what it waits for.
    waiting: all.answerer.steps?.ran(row) !== true && waitsForAnswer(turn),
    attempt,
    ageMs: context.ageMs,
    maxAttempts,
    maxAgeMs: recovery.maxAgeMs ?? DEFAULT_MAX_AGE_MS,
    stuck: row.stuck,
    stuckMs: all.host.clock.now() - (row.progressAt ?? all.host.clock.now()),
    maxNoProgressAttempts: recovery.maxNoProgressAttempts ?? maxAttempts,
    noProgressTimeoutMs: recovery.noProgressTimeoutMs ?? DEFAULT_NO_PROGRESS_MS,
  });
  if (verdict === "waiting") closeCut(all, turn);
  if (verdict === "cancelled" || verdict === "finished" || verdict === "waiting") {
    all.host.emit("chat:recovery:skipped", { ...incident, reason: verdict });
    const status = verdict === "cancelled" ? "aborted" : "completed";
    return { kind: "end", end: { status }, keepPartial: true };
  }
  const goesOn =
    verdict === "open" && (attempt === 1 || (await asks(all, () => recovery.shouldKeepRecovering?.(context), true)));
  if (!goesOn) {
    const reason = verdict === "open" ? "should_keep_recovering" : verdict;
    all.host.emit("chat:recovery:exhausted", { ...incident, reason });
    await asks(all, () => recovery.onExhausted?.(context), undefined);
    const text = recovery.terminalMessage ?? DEFAULT_TERMINAL_MESSAGE;
    // The app may say it in its own words.
    const error = await explain(all, new PerdureError("limit", text), turn.failure("recovery"));
    return { kind: "end", end: { status: "error", error, exhausted: true }, keepPartial: true };
  }
  const wish =
    (await asks(all, () => all.agent.after(context, () => all.policy.onChatRecovery(context)), undefined)) ?? {};
  if (wish.continue === false) {
    all.host.emit("chat:recovery:skipped", { ...incident, reason: "declined" });
    return { kind: "end", end: { status: "aborted" }, keepPartial: wish.persist ?? true };
  }
  all.host.emit("chat:recovery:attempt", incident);
  return { kind: "carry-on", continuation: recoveryKind === "continue" || turn.continuation, incident };
}

/** How often and how long turns are carried on. */
export function recoveryOf({ policy }: Pick<Engine, "policy">): ChatRecoveryConfig {
  const { chatRecovery } = policy;
  if (typeof chatRecovery !== "boolean") return chatRecovery;
  return chatRecovery ? {} : { maxAttempts: 0 };
}

/** A turn that was carried on has ended. */
export function tellRecovered(host: AgentHost, incident: RecoveryFacts, end: TurnEnd): void {
  if (end.status === "completed") host.emit("chat:recovery:completed", incident);
  else host.emit("chat:recovery:failed", { ...incident, reason: end.error ?? end.status });
}

/** A hook's answer, or the default when it has none or fails. */
async function asks<T>(all: Engine, ask: () => T | void | Promise<T | void>, otherwise: T): Promise<T> {
  try {
    return (await ask()) ?? otherwise;
  } catch (thrown) {
    all.agent.failed(thrown, { stage: "recovery" });
    return otherwise;
  }
}

function describe(all: Engine, turn: Turn, maxAttempts: number): ChatRecoveryContext {
  const { row, builder } = turn;
  const transcript = all.transcripts.of(row.session);
  const parts = builder.parts.slice(builder.inherited) as UIMessage["parts"];
  return {
    requestId: row.id,
    sessionId: row.session,
    identity: turn.identity,
    incidentId: `${row.id}:${row.attempts}`,
    attempt: row.attempts,
    maxAttempts,
    recoveryKind: hasContent(builder) ? "continue" : "retry",
    partialText: parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
    partialParts: parts,
    ageMs: all.host.clock.now() - (row.startedAt ?? row.createdAt),
    recoveryData: readStored(all.host, row.stash, `what the turn ${row.id} has noted`) ?? null,
    ...turn.sentAlong(),
    get messages() {
      return transcript.list(builder.id);
    },
  };
}

/** A turn of a session that was cut and waits to be carried on, such as for room on the disk: its answer as its log has it. */
export function cutTurn(all: Engine, session: string): Turn | undefined {
  if (all.turnIn(session) !== undefined) return undefined;
  const row = openTurns(all.host).find((one) => one.status === "running" && one.session === session);
  return row && new Turn(all, row);
}

/**
 * Whether the cut came while somebody else was to act: an approval was open, or the step was over with calls left for the client,
 * or, if approved, for a later turn. A call in a step that was not over was running here.
 */
function waitsForAnswer({ builder, leftAt, message }: Turn): boolean {
  const stepOver = leftAt === "finish-step";
  if (stepOver && builder.parts.slice(builder.inherited).some(isApproved)) return true;
  if (batchState(message).waiting === 0) return false;
  return stepOver || message.parts.some((part) => "state" in part && part.state === "approval-requested");
}

/** Ends what was running here when the stream was cut; what waits for somebody else stays open. */
export function closeCut(all: Engine, turn: Turn): void {
  turn.close({ ...repairsOf(all), keepPending: true, isCut: (call) => ranHere(turn, call) });
}

/** Whether a call was running here when the stream was cut: nobody will tell its end. Tools of the client run there. */
function ranHere({ leftAt, row }: Turn, call: ToolPart): boolean {
  if (leftAt === "finish-step" || call.state !== "input-available") return false;
  return !clientToolsOf(row)?.some((one) => one?.name === toolName(call));
}

function clientToolsOf({ clientTools }: TurnRow): ClientTool[] | undefined {
  const tools = clientTools === null ? undefined : tryParseJson(clientTools);
  return Array.isArray(tools) ? (tools as ClientTool[]) : undefined;
}
