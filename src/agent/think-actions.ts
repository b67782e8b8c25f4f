import type { AgentHost } from "../port.ts";
import { attachmentChunk, attachmentsOf } from "../tool/action-attachment.ts";
import type { ActionAuthorization, ActionAuthorizationContext } from "../tool/action-authorize.ts";
import { ActionLedger, RECLAIM_AFTER_MS } from "../tool/action-ledger.ts";
import type { ActionBinding } from "../tool/action-run.ts";
import type { KeepText } from "../tool/bound-output.ts";
import type { Chat } from "../turn/engine/chat.ts";

type Maybe<T> = T | Promise<T>;

/** What decides on actions: the part of a `Think` that users write. */
export interface ActionRules {
  authorizeAction(context: ActionAuthorizationContext): Maybe<ActionAuthorization | void>;
  readonly actionLedgerPendingRetryLeaseMs: number | boolean;
}

/** Joins actions to the agent whose turns they run in. */
export class ThinkActions {
  readonly ledger: ActionLedger;
  readonly binding: ActionBinding;
  /** What the turn that runs was granted. */
  grants: ActionAuthorization = true;

  constructor(rules: ActionRules, host: AgentHost, chat: () => Chat, keep: KeepText) {
    const ledger = new ActionLedger(host);
    this.ledger = ledger;
    this.binding = {
      ledger,
      keep,
      turn: () => {
        const { running } = chat();
        return running && { requestId: running.row.id, sessionId: running.row.session };
      },
      grants: () => this.grants,
      authorize: (context) => rules.authorizeAction(context),
      attached: () => {
        const { running } = chat();
        return running === undefined ? 0 : attachmentsOf(running.message).length;
      },
      attach: (attachments, also) => {
        const { running } = chat();
        // It took longer than its turn: there is no answer to add anything to.
        if (running === undefined) return host.tx(also);
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
