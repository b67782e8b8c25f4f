import { PerdureError } from "../base/error.ts";
import type { AgentEvents, ToolFacts } from "../base/event.ts";
import { decodeJson, encodeJson } from "../base/json.ts";
import { tellDamage } from "../store/damaged.ts";
import { storeIdentity } from "../base/identity.ts";
import type { ToolPart } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import {
  decidedQuestions,
  decideQuestion,
  deleteLostToolCalls,
  deleteToolCallsOf,
  insertQuestion,
  insertReturned,
  insertStarted,
  keptResult,
  openQuestions,
  parkToolCall,
  questionsOf,
  readParkedState,
  readReturned,
  readToolCall,
  restartToolCall,
  returnToolCall,
  settleToolCall,
  type ToolCallRow,
  toolCallsOf,
  trimToolCalls,
} from "../store/tool-call.ts";
import type { RecordedDecision } from "./decision-record.ts";
import type { ReplayPolicy } from "./define.ts";
import { mayRun } from "./call-move.ts";
import type { ParkedQuestion, ResumedCall } from "./park.ts";

/** What a call has parked for, as it is stored. */
interface Parked {
  readonly tool: string;
  readonly input: unknown;
  /** Of tool and input: what an answer may be bound to. */
  readonly digest: string;
  /** What the call itself was given, where a hook has changed what the model wrote. */
  readonly given?: unknown;
}

/** One call, with its input as a value; `undefined` once that is forgotten. */
export interface CallRow extends Omit<ToolCallRow, "input" | "parked"> {
  readonly input: unknown;
  /** What it has parked for, if it ever has. */
  readonly parked: Parked | undefined;
}

/** Which call, and what it would do. */
export interface CallIntent {
  readonly messageId: string;
  readonly toolCallId: string;
  readonly turnId: string;
  readonly step: number;
  readonly tool: string;
  readonly input: unknown;
  /** Of tool and input, by `digestOf`. */
  readonly digest: string;
  readonly replay: ReplayPolicy;
}

/** A call of which a person has to be asked. */
export interface CallQuestion extends CallIntent {
  /** When the question is over, unanswered; null: never. */
  readonly expiresAt: number | null;
  readonly summary?: string;
}

/** What a person says. */
interface CallAnswer {
  /** The message that the call is in, where that is known: ids of calls may come again in another one. */
  readonly messageId?: string;
  readonly approved: boolean;
  readonly approver?: string | undefined;
  /** Who that is, as it is stored. */
  readonly identity?: string | null;
  readonly reason?: string | undefined;
  /** What the person saw. With it, an answer to other arguments is refused. */
  readonly digest?: string;
  readonly now: number;
}

/** What became of an answer. Only `decided` changed anything. */
type Decided =
  | { readonly kind: "decided"; readonly row: CallRow }
  /** The question has its last word, or its time is over. */
  | { readonly kind: "late"; readonly row: CallRow }
  /** Nobody was asked about such a call. */
  | { readonly kind: "unknown" }
  /** The arguments are not those that the answer is about. */
  | { readonly kind: "mismatch" };

/** How a call ended, as it is stored until it is judged. */
export type ReturnedCall = { readonly output: unknown } | { readonly errorText: string };

/** The same, with what a hook is told besides. */
export type JudgedCall = ReturnedCall & {
  readonly durationMs: number;
  /** What the tool was given, where a hook has changed what the model wrote. */
  readonly given?: unknown;
};

/** A question that waits for a person. */
export interface PendingApproval {
  readonly messageId: string;
  readonly toolCallId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly digest: string;
  readonly summary: string | null;
  readonly askedAt: number;
  readonly expiresAt: number | null;
}

/** A question that has its last word. */
interface DecidedApproval extends PendingApproval {
  readonly decision: "approved" | "denied" | "expired";
  readonly decidedAt: number;
  readonly approver: string | null;
  readonly reason: string | null;
}

type BookHost = Pick<AgentHost, "sql" | "tx" | "afterTx" | "clock" | "blank" | "emit" | "report">;

/**
 * The book of tool calls: what was asked, decided, begun and settled. Methods are synchronous and run in the caller's
 * transaction, so a change is stored with what it belongs to, or not at all.
 */
export class CallBook {
  readonly #host: BookHost;

  constructor(host: BookHost) {
    this.#host = host;
  }

  /**
   * Opens a question. A call is asked about once: if it has a row, that stays as it is. @returns the row.
   * @throws PerdureError `limit`, `bad_input` for an input that no row can hold
   */
  ask(question: CallQuestion): CallRow {
    const { messageId, toolCallId, expiresAt, summary } = question;
    if (readToolCall(this.#host, messageId, toolCallId) === undefined) {
      const askedAt = this.#host.clock.now();
      insertQuestion(this.#host, { ...stored(question), askedAt, expiresAt, summary: summary ?? null });
      this.#tell("tool:asked", toolFacts(question));
    }
    return this.#read(messageId, toolCallId);
  }

  /** Takes the answer to an open question; the first counts. With repeated ids and no message named, the newest is meant. */
  decide(toolCallId: string, answer: CallAnswer): Decided {
    const { messageId } = answer;
    const rows = questionsOf(this.#host, toolCallId).filter(
      (row) => messageId === undefined || row.messageId === messageId,
    );
    const [newest] = rows;
    if (newest === undefined) return { kind: "unknown" };
    // One whose time is over waits only for the alarm that closes it.
    const open = rows.filter(({ status, expiresAt }) => status === "asked" && (expiresAt ?? Infinity) > answer.now);
    if (open.length === 0) return { kind: "late", row: toRow(newest) };
    const meant = open.find((row) => answer.digest === undefined || answer.digest === toQuestion(row).digest);
    if (meant === undefined) return { kind: "mismatch" };
    decideQuestion(this.#host, meant.seq, {
      status: answer.approved ? "approved" : "denied",
      decidedAt: answer.now,
      approver: answer.approver ?? null,
      identity: answer.identity ?? null,
      reason: answer.reason ?? null,
    });
    return { kind: "decided", row: this.#read(meant.messageId, toolCallId) };
  }

  /** Takes down what a person has decided about a call, or that nobody did in time. */
  record({ messageId, toolCallId, approved, expired, approver, identity, reason }: RecordedDecision): void {
    const now = this.#host.clock.now();
    if (expired) this.expire({ messageId, toolCallId }, now);
    else this.decide(toolCallId, { messageId, approved, approver, identity: storeIdentity(identity), reason, now });
  }

  /** What an open question is about. Of one that another engine asks, the message alone says that. */
  question(messageId: string, toolCallId: string): PendingApproval | undefined {
    const row = readToolCall(this.#host, messageId, toolCallId);
    return row?.status === "asked" && row.digest !== "" ? toQuestion(row) : undefined;
  }

  /** Closes a question whose time is over. @returns whether it was open. */
  expire({ messageId, toolCallId }: Pick<CallRow, "messageId" | "toolCallId">, now: number): boolean {
    const row = readToolCall(this.#host, messageId, toolCallId);
    if (row === undefined) return false;
    const nobody = { approver: null, identity: null, reason: null };
    return decideQuestion(this.#host, row.seq, { status: "expired", decidedAt: now, ...nobody });
  }

  /**
   * Records that a call is about to run, and counts it. Must be committed before the tool is called.
   * @throws PerdureError `bad_state` when it must not run: not approved, other arguments approved, denied, settled, or run before
   *   and not safe to repeat; `limit`, `bad_input` for an input that no row can hold
   */
  start(call: CallIntent): void {
    const now = this.#host.clock.now();
    const row = readToolCall(this.#host, call.messageId, call.toolCallId);
    this.#tell("tool:started", { ...toolFacts(call), attempt: (row?.attempts ?? 0) + 1 });
    if (row === undefined) return insertStarted(this.#host, stored(call), now);
    const move = mayRun(row, call.digest);
    if (move !== "run" && move !== "run-again") {
      throw new PerdureError(
        "bad_state",
        `The call ${call.toolCallId} of "${call.tool}" must not run: it is ${move}. Ask mayRun before start.`,
      );
    }
    restartToolCall(this.#host, row.seq, call.turnId, call.step, now);
  }

  /**
   * A call that runs waits for a person. @param question with the digest of what is asked about
   * @throws PerdureError `bad_state` when it does not run; `limit`, `bad_input` for an input that no row can hold
   */
  park(
    { messageId, toolCallId }: Pick<CallRow, "messageId" | "toolCallId">,
    question: ParkedQuestion & Pick<Parked, "digest" | "given"> & { readonly expiresAt: number | null },
  ): void {
    const { tool, input, digest, given, expiresAt, summary = null, state } = question;
    const row = readToolCall(this.#host, messageId, toolCallId);
    const asked: Parked = { tool, input: input ?? null, digest, ...(given !== undefined && { given }) };
    const parked = encodeJson(asked, `The input of "${tool}"`);
    const askedAt = this.#host.clock.now();
    if (row && parkToolCall(this.#host, row.seq, { askedAt, expiresAt, summary, parked: parked ?? "null", state }))
      return this.#tell("tool:asked", toolFacts(row));
    throw new PerdureError("bad_state", `The call ${toolCallId} cannot wait for a person: it is not running.`);
  }

  /** What a call that was parked and approved goes on from. */
  resumed(messageId: string, toolCallId: string): ResumedCall | undefined {
    const row = readToolCall(this.#host, messageId, toolCallId);
    if (row === undefined || row.parked === null) return undefined;
    const state = readParkedState(this.#host, row.seq);
    return state && { state, approver: row.approver ?? undefined };
  }

  /**
   * Stores what a call returned, or what it got in the place of running, until it is judged. It never runs again.
   * @returns false for what no row can hold: then nothing has changed
   */
  returned(call: CallIntent, ended: JudgedCall): boolean {
    const result = jsonOf(ended);
    if (result === undefined) return false;
    const { messageId, toolCallId } = call;
    if (readToolCall(this.#host, messageId, toolCallId) === undefined) {
      insertReturned(this.#host, stored(call), result);
      return true;
    }
    return returnToolCall(this.#host, messageId, toolCallId, result);
  }

  /** What a call that is to be judged has returned. */
  toJudge(messageId: string, toolCallId: string): JudgedCall | undefined {
    const result = readReturned(this.#host, messageId, toolCallId);
    return result === undefined ? undefined : (JSON.parse(result) as JudgedCall);
  }

  /** What a call returned that is shown as something else. Without a message: the newest call of that id. */
  original(toolCallId: string, messageId?: string): ReturnedCall | undefined {
    const result = this.#host.blank ? undefined : keptResult(this.#host, toolCallId, messageId);
    if (result === undefined) return undefined;
    const { durationMs: _, given: __, ...returned } = JSON.parse(result) as JudgedCall;
    return returned;
  }

  /**
   * The call has its result, whether it ran or not: an output, an error, a denial, the stop of the turn.
   * @param shown whether that is what it returned. If not, what it returned is kept.
   * @param ok whether it is an output, and no error
   * @returns whether it had none before.
   */
  settle(
    messageId: string,
    toolCallId: string,
    now: number,
    shown: "as-returned" | "changed" = "changed",
    ok = true,
  ): boolean {
    const row = settleToolCall(this.#host, messageId, toolCallId, now, shown === "changed");
    if (row === undefined) return false;
    const ran = row.startedAt === null ? {} : { durationMs: Math.max(0, now - row.startedAt) };
    this.#tell("tool:settled", { ...toolFacts({ ...row, toolCallId }), ok, ...ran });
    return true;
  }

  /** The same for all calls of a message that have an end. */
  settleAll(messageId: string, calls: readonly Pick<ToolPart, "toolCallId" | "state">[]): void {
    const now = this.#host.clock.now();
    for (const { toolCallId, state } of calls) {
      this.settle(messageId, toolCallId, now, "changed", state === "output-available");
    }
  }

  /** Once it is stored. */
  #tell<T extends "tool:asked" | "tool:started" | "tool:settled">(type: T, payload: AgentEvents[T]): void {
    this.#host.afterTx((committed) => {
      if (committed) this.#host.emit(type, payload);
    });
  }

  /** Whether the step loop has asked about a call of a message, or begun it: not one of another engine. */
  isOfSteps(messageId: string, toolCallId: string): boolean {
    return (readToolCall(this.#host, messageId, toolCallId)?.digest ?? "") !== "";
  }

  /** One call of a message. */
  find(messageId: string, toolCallId: string): CallRow | undefined {
    const row = readToolCall(this.#host, messageId, toolCallId);
    return row && toRow(row);
  }

  /** The calls of a message, in the order in which they came. */
  of(messageId: string): CallRow[] {
    return toolCallsOf(this.#host, messageId).map(toRow);
  }

  /** Questions that wait for a person, oldest first. Includes those whose time is over until they are closed. */
  pendingApprovals(): PendingApproval[] {
    return openQuestions(this.#host).flatMap((row) => {
      try {
        return [toQuestion(row)];
      } catch (thrown) {
        // Nobody should say yes to what cannot be shown.
        tellDamage(this.#host, `the question of the call ${row.toolCallId}`, thrown);
        return [];
      }
    });
  }

  /** Questions that have their last word, the newest question first. */
  approvals(limit: number): DecidedApproval[] {
    return decidedQuestions(this.#host, limit).map((row) => ({
      ...toQuestion(row),
      // What was approved has gone on since.
      decision: row.status === "denied" || row.status === "expired" ? row.status : "approved",
      decidedAt: row.decidedAt ?? 0,
      approver: row.approver,
      reason: row.reason,
    }));
  }

  /** Forgets the calls of a message, open ones too. */
  forget(messageId: string): void {
    deleteToolCallsOf(this.#host, messageId);
  }

  /** Forgets calls that have their last word, but the newest `keep`. Open ones stay. */
  forgetOlder(keep: number): void {
    trimToolCalls(this.#host, keep);
  }

  /** Forgets the calls of messages that are gone. */
  forgetLost(): void {
    deleteLostToolCalls(this.#host);
  }

  #read(messageId: string, toolCallId: string): CallRow {
    const row = readToolCall(this.#host, messageId, toolCallId);
    if (row === undefined) throw new Error("A call that was just written is not there.");
    return toRow(row);
  }
}

function toolFacts({ turnId, toolCallId, tool }: Pick<ToolCallRow, "turnId" | "toolCallId" | "tool">): ToolFacts {
  return { requestId: turnId, toolCallId, toolName: tool };
}

function jsonOf(ended: JudgedCall): string | undefined {
  try {
    return encodeJson(ended, "The result") ?? undefined;
  } catch {
    return undefined;
  }
}

function stored(call: CallIntent) {
  const { messageId, toolCallId, turnId, step, tool, digest, replay } = call;
  const input = encodeJson(call.input ?? null, `The input of "${tool}"`);
  return { messageId, toolCallId, turnId, step, tool, input, digest, replay };
}

function toRow(row: ToolCallRow): CallRow {
  return { ...row, input: decodeJson(row.input), parked: parkedOf(row) };
}

function parkedOf({ parked }: ToolCallRow): Parked | undefined {
  return parked === null ? undefined : (decodeJson(parked) as Parked);
}

function toQuestion(row: ToolCallRow): PendingApproval {
  const { messageId, toolCallId, summary, expiresAt } = row;
  // A parked call asks about what it would do next, not about itself.
  const { tool, input, digest } = parkedOf(row) ?? { ...row, input: decodeJson(row.input) };
  return { messageId, toolCallId, tool, input, digest, summary, askedAt: row.askedAt ?? 0, expiresAt };
}
