// What the methods of a chat take and return, beside what hooks are given: turns, inbox, sessions, actions, frames.
export type {
  AddMessagesOptions,
  ChatOptions,
  RunTurnOptions,
  StreamTurnOptions,
  SubmitTurnOptions,
  TurnExtras,
  TurnInput,
  WaitTurnOptions,
} from "../parts/run-turn.ts";
export type { ChatErrorStage } from "../turn/step/config.ts";
export { CONTINUE_PROMPT } from "../turn/step/continue-prompt.ts";
export type { InboxItem, NotWaiting, Withdrawal } from "../turn/intake/inbox.ts";
export type { SteerReceipt } from "../turn/intake/steer.ts";
export type { Submission, SubmitOptions, SubmitResult } from "../turn/intake/submissions.ts";
export type { LedgerEntry } from "../ledger/charge.ts";
export type { UsageTotals } from "../ledger/ledger.ts";
export type { PendingApproval, ReturnedCall } from "../tool/call-book.ts";
export { type BackgroundReceipt, isBackgroundReceipt } from "../tool/receipt.ts";
export type { BackgroundCall } from "../turn/step/background-note.ts";
export type { Action, ActionApproval, ActionExecuteContext, ActionOptions, ActionRisk } from "../tool/action.ts";
export type { ReplyAttachment } from "../tool/action-attachment.ts";
export type { ActionRecord } from "../tool/action-ledger.ts";
export type { ApprovalCall, TurnOutcome } from "../turn/policy.ts";
export type { OrdinaryTurn, StreamedAnswer } from "../turn/engine/by-stream.ts";
export type { ClientTool as ClientToolSchema } from "../wire/frames.ts";
export { type IncomingMessage, MessageType, type OutgoingMessage } from "../wire/message-type.ts";
export type { MessageText } from "../search/search.ts";
export type { ErasedScope, EraseScope } from "../erase/erase-plan.ts";
export type { AppendOptions, HistoryOptions } from "../session/session.ts";
export type { ConfigureSession } from "../session/session-manager.ts";
export type { ForkOptions, NewSessionOptions } from "../session/session-changes.ts";
export type { CompactFunction, OwnSummary, SessionSettings, TokenCounter } from "../session/session.ts";
export type { OwnStore, SessionStore } from "../store/session-store.ts";
export type { SessionOp } from "../wire/session-frames.ts";
