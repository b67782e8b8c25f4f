import type { FileDownloadOptions } from "../toolbox/egress/file-download.ts";
import type { MessageInput } from "../message/input.ts";
import {
  editInbox,
  type InboxItem,
  listInbox,
  moveInbox,
  type NotWaiting,
  type Withdrawal,
  withdrawInbox,
} from "../turn/intake/inbox.ts";
import { sessionNamed } from "../turn/engine/conversations.ts";
import { readReceipt, type SteerReceipt } from "../turn/intake/steer.ts";
import {
  cancelSubmission,
  deleteSubmission,
  deleteSubmissions,
  inspectSubmission,
  listSubmissions,
  type Submission,
  submitMessages,
  type SubmitOptions,
  type SubmitResult,
} from "../turn/intake/submissions.ts";
import type { AgentEnv } from "../port.ts";
import { countElsewhere } from "./cause.ts";
import { chatRoom } from "./chat-agent.ts";
import { ContextAgent } from "./context-agent.ts";
import { parts } from "./parts.ts";
import { sessionNow } from "./turn-now.ts";

/** What an agent has whose turns may wait: submissions, and the messages that were accepted and have not started. */
export abstract class InboxAgent<
  Env extends object = AgentEnv,
  State = unknown,
  Props extends object = object,
> extends ContextAgent<Env, State, Props> {
  /**
   * Where files of messages may be loaded from, for models that do not load them themselves. Default: public addresses, by
   * what their names resolve to.
   */
  fileDownloads: FileDownloadOptions = {};

  // Submissions

  /** Accepts a text or messages for a later turn, once per key, and returns as soon as that is stored. */
  async submitMessages(messages: MessageInput, options: SubmitOptions = {}): Promise<SubmitResult> {
    const { chat } = this[chatRoom];
    const session = sessionNamed(chat, options.session ?? sessionNow(chat));
    const elsewhere = countElsewhere(this[parts].host);
    if (elsewhere !== undefined) await elsewhere;
    const result = submitMessages(chat, messages, { ...options, session });
    await this[parts].host.durable();
    return result;
  }

  inspectSubmission(submissionId: string): Submission | undefined {
    return inspectSubmission(this[chatRoom].chat, submissionId);
  }

  listSubmissions(filter?: Parameters<typeof listSubmissions>[1]): Submission[] {
    return listSubmissions(this[chatRoom].chat, filter);
  }

  cancelSubmission(submissionId: string, reason?: string): boolean {
    return cancelSubmission(this[chatRoom].chat, submissionId, reason);
  }

  deleteSubmission(submissionId: string): boolean {
    return deleteSubmission(this[chatRoom].chat, submissionId);
  }

  deleteSubmissions(filter: Parameters<typeof deleteSubmissions>[1]): number {
    return deleteSubmissions(this[chatRoom].chat, filter);
  }

  // What waits

  /** Messages that were accepted and have not started. */
  listInbox(): InboxItem[] {
    return listInbox(this[chatRoom].chat);
  }

  editInbox(requestId: string, content: string | readonly unknown[]): "edited" | NotWaiting {
    return editInbox(this[chatRoom].chat, requestId, content);
  }

  moveInbox(requestId: string, before: string | null): "moved" | NotWaiting {
    return moveInbox(this[chatRoom].chat, requestId, before);
  }

  withdrawInbox(requestId: string): Withdrawal {
    return withdrawInbox(this[chatRoom].chat, requestId);
  }

  /** Which model call read a message that was taken into a running turn. */
  steerReceipt(requestId: string): SteerReceipt | undefined {
    return readReceipt(this[chatRoom].chat, requestId);
  }
}
