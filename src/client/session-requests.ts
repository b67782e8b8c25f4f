import type { CompactionInfo, ContextReport, DraftCompaction, SearchHit, SessionInfo } from "../wire/session-types.ts";
import { PerdureError, type PerdureErrorCode } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { tryParseJson, isRecord } from "../base/json.ts";
import type { BranchInfo, SessionOp } from "../wire/session-frames.ts";
import { type ChatConnection, sendFrame } from "./chat-frames.ts";
import { disconnected } from "./connection-error.ts";

/** How long an answer may take. */
const TIMEOUT_MS = 30_000;
/** The same where a model has to write something first. */
const MODEL_TIMEOUT_MS = 600_000;
const LOST = "The connection was lost before the answer came.";
const SLOW_OPS: ReadonlySet<SessionOp["op"]> = new Set(["compact", "title"]);

/** Where a client was put. */
export interface Attached {
  readonly session: string;
  /** What it has to name to come back there; null: nothing, it is the current one. */
  readonly named: string | null;
  /** It is this client's own place in that session. */
  readonly viewOf: string | null;
}

/** A summary that somebody wrote or changed: of a preview, say. */
export interface AppliedSummary {
  readonly summary: string;
  /** The newest message that it stands for. */
  readonly messageId: string;
  /** How many parts of that message, if not all. */
  readonly parts?: number | null;
}

/** What is answered to each question. */
interface SessionAnswers {
  readonly sessions: SessionInfo[];
  readonly create: SessionInfo;
  readonly rename: SessionInfo;
  readonly delete: unknown;
  readonly clear: unknown;
  readonly attach: Attached;
  readonly fork: SessionInfo;
  readonly branches: BranchInfo[];
  readonly switchBranch: Attached;
  readonly search: SearchHit[];
  readonly report: ContextReport;
  readonly compact: CompactionInfo | DraftCompaction;
  readonly applyCompaction: CompactionInfo;
  readonly undoCompaction: unknown;
  readonly pin: unknown;
  readonly unpin: unknown;
  readonly title: string | null;
}

interface Pending {
  sent: boolean;
  done(value: unknown): void;
  fail(error: PerdureError): void;
}

/** Asks an agent about its sessions, and waits for the answers. */
export class SessionRequests {
  readonly #connection: ChatConnection;
  readonly #pending = new Map<string, Pending>();

  constructor(connection: ChatConnection) {
    this.#connection = connection;
    connection.addEventListener("message", ({ data }) => {
      if (this.#pending.size > 0) this.#received(data);
    });
    connection.addEventListener("close", () => this.#lost());
  }

  /** The answer is what the agent says it is. Rejects with a PerdureError: the agent's, `timeout`, or `disconnected`. */
  ask<OP extends SessionOp>(ask: OP): Promise<SessionAnswers[OP["op"]]> {
    const { promise, resolve, reject } = Promise.withResolvers<SessionAnswers[OP["op"]]>();
    const id = newId();
    const limit = SLOW_OPS.has(ask.op) ? MODEL_TIMEOUT_MS : TIMEOUT_MS;
    const timer = setTimeout(
      () => pending.fail(new PerdureError("timeout", `"${ask.op}" got no answer within ${limit} ms.`)),
      limit,
    );
    const end = () => {
      clearTimeout(timer);
      this.#pending.delete(id);
    };
    const pending: Pending = {
      sent: false,
      done(value) {
        end();
        resolve(value as SessionAnswers[OP["op"]]);
      },
      fail(error) {
        end();
        reject(error);
      },
    };
    this.#pending.set(id, pending);
    if (this.#connection.connectionError) {
      pending.fail(disconnected(LOST, this.#connection.connectionError));
      return promise;
    }
    try {
      sendFrame(this.#connection, { type: "perdure_session", id, ...ask }, () => (pending.sent = true));
    } catch (thrown) {
      end();
      reject(thrown as Error);
    }
    return promise;
  }

  #received(data: unknown): void {
    if (typeof data !== "string" || !data.includes('"perdure_session_result"')) return;
    const frame = tryParseJson(data);
    if (!isRecord(frame) || frame.type !== "perdure_session_result" || typeof frame.id !== "string") return;
    const pending = this.#pending.get(frame.id);
    if (isRecord(frame.error)) {
      const { code, message } = frame.error;
      pending?.fail(new PerdureError(String(code) as PerdureErrorCode, String(message)));
    } else pending?.done(frame.value);
  }

  /** What was sent may have been done or not; its answer is lost. What was not goes out with the next connection. */
  #lost(): void {
    for (const pending of [...this.#pending.values()]) {
      if (pending.sent || this.#connection.readyState === 3)
        pending.fail(disconnected(LOST, this.#connection.connectionError));
    }
  }
}
