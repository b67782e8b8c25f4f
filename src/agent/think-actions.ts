import type { AgentHost } from "../port.ts";
import { attachmentChunk, attachmentsOf } from "../tool/action-attachment.ts";
import type { ActionAuthorization, ActionAuthorizationContext } from "../tool/action-authorize.ts";
import { ActionLedger, RECLAIM_AFTER_MS } from "../tool/action-ledger.ts";
import type { ActionBinding } from "../tool/action-run.ts";
import type { KeepText } from "../tool/bound-output.ts";
import type { Conversations } from "../turn/engine/conversations.ts";

type Maybe<T> = T | Promise<T>;

/** What decides on actions: the part of a `Think` that users write. */
export interface ActionRules {
  authorizeAction(context: ActionAuthorizationContext): Maybe<ActionAuthorization | void>;
  readonly actionLedgerPendingRetryLeaseMs: number | boolean;
}

/** The turn that actions are bound for. */
interface ActionTurn {
  readonly id: string;
  /** What it was granted. */
  readonly grants: () => ActionAuthorization;
}

/** Joins actions to the agent, and to the turns that they run in. */
export class ThinkActions {
  readonly ledger: ActionLedger;
  readonly #rules: ActionRules;
  readonly #host: AgentHost;
  readonly #chat: () => Conversations;
  readonly #keep: KeepText;

  constructor(rules: ActionRules, host: AgentHost, chat: () => Conversations, keep: KeepText) {
    this.ledger = new ActionLedger(host);
    this.#rules = rules;
    this.#host = host;
    this.#chat = chat;
    this.#keep = keep;
  }

  /** What actions of a turn ask of the agent; without one, those outside of turns. */
  binding(turn?: ActionTurn): ActionBinding {
    const rules = this.#rules;
    const chat = this.#chat;
    // By its id: an attempt may be given up while an action of it goes on, and the next one has the answer then.
    const active = () => (turn === undefined ? undefined : chat().turn(turn.id));
    return {
      ...{ ledger: this.ledger, keep: this.#keep },
      turn: () => {
        const running = active();
        return running && { requestId: running.row.id, sessionId: running.row.session };
      },
      ...(turn !== undefined && { grants: turn.grants }),
      authorize: (context) => rules.authorizeAction(context),
      attached: () => {
        const running = active();
        return running === undefined ? 0 : attachmentsOf(running.message).length;
      },
      attach: (attachments, also) => {
        const running = active();
        // It took longer than its turn: there is no answer to add anything to.
        if (running === undefined) return this.#host.tx(also);
        chat().commit(() => {
          for (const { id, attachment } of attachments) running.take({ chunk: attachmentChunk(id, attachment) });
          running.log.flush("sync", also);
        });
      },
      failed: (error) => chat().hooks.failed(error),
      get reclaimAfterMs() {
        const { actionLedgerPendingRetryLeaseMs: lease } = rules;
        return lease === true ? RECLAIM_AFTER_MS : lease;
      },
    };
  }
}
