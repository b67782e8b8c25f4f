import { attachmentChunk, attachmentsOf } from "../tool/action-attachment.ts";
import type { ActionAuthorization } from "../tool/action-authorize.ts";
import { ActionLedger, RECLAIM_AFTER_MS } from "../tool/action-ledger.ts";
import type { ActionBinding } from "../tool/action-run.ts";
import { isAsked } from "../turn/policy.ts";
import type { StepParts } from "../turn/step/parts.ts";

/** Joins actions to the agent, and to the turns that they run in. */
export class ThinkActions {
  readonly ledger: ActionLedger;
  readonly #parts: StepParts;

  constructor(parts: StepParts) {
    this.ledger = new ActionLedger(parts.host);
    this.#parts = parts;
  }

  /** What actions of a turn ask of the agent; without one, those outside of turns. */
  binding(turn?: { readonly id: string; readonly grants: () => ActionAuthorization }): ActionBinding {
    const parts = this.#parts;
    const { policy } = parts;
    // By its id: an attempt may be given up while an action of it goes on, and the next one has the answer then.
    const active = () => (turn === undefined ? undefined : parts.chat.turn(turn.id));
    return {
      ledger: this.ledger,
      // What an action returned is stored before it is judged: nothing of it may be where clients can read it.
      keep: async (text) => (isAsked(parts, "afterToolCall") ? undefined : parts.keep(text)),
      turn: () => {
        const running = active();
        return running && { requestId: running.row.id, sessionId: running.row.session };
      },
      ...(turn !== undefined && { grants: turn.grants }),
      authorize: (context) => policy.authorizeAction(context),
      attached: () => {
        const running = active();
        return running === undefined ? 0 : attachmentsOf(running.message).length;
      },
      attach: (attachments, also) => {
        const running = active();
        // It took longer than its turn: there is no answer to add anything to.
        if (running === undefined) return parts.host.tx(also);
        parts.chat.commit(() => {
          for (const { id, attachment } of attachments) running.take({ chunk: attachmentChunk(id, attachment) });
          running.log.flush("sync", also);
        });
      },
      failed: (error) => parts.chat.agent.failed(error),
      get reclaimAfterMs() {
        const { actionLedgerPendingRetryLeaseMs: lease } = policy;
        return lease === true ? RECLAIM_AFTER_MS : lease;
      },
    };
  }
}
