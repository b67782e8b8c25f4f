import { pendingInteractions } from "../message/tool-answer.ts";
import { sessionNamed } from "../turn/session-named.ts";
import { ChatAgent, chatRoom, type InSession } from "./chat-agent.ts";

/** What an agent has whose tool calls wait for a client or a person: how they are answered. */
export abstract class ApprovalAgent<Env extends object, State, Props extends object> extends ChatAgent<
  Env,
  State,
  Props
> {
  /** Whether the last answer waits for a client tool or an approval. */
  hasPendingInteraction(): boolean {
    const last = this.messages.at(-1);
    return last !== undefined && last.role === "assistant" && pendingInteractions(last).length > 0;
  }

  /** Answers a tool call from server code, in whatever session it waits. False when it is unknown or was answered before. */
  answerToolCall(toolCallId: string, output: unknown, options: { autoContinue?: boolean } & InSession = {}): boolean {
    const answer = { kind: "result", result: { state: "output-available", output } } as const;
    const given = { toolCallId, answer, autoContinue: options.autoContinue ?? true, ...this.#named(options) };
    return this[chatRoom].chat.answerTool(given, undefined);
  }

  /** Approves or denies a tool call from server code, in whatever session. False when it is unknown or was answered before. */
  answerApproval(
    toolCallId: string,
    approved: boolean,
    options: { reason?: string; approver?: string; autoContinue?: boolean } & InSession = {},
  ): boolean {
    const { reason, approver, autoContinue = true } = options;
    const answer = { kind: "approval", approved, reason } as const;
    const session = this.#named(options);
    const given = { toolCallId, answer, autoContinue, ...session, ...(approver !== undefined && { approver }) };
    return this[chatRoom].chat.answerTool(given, undefined);
  }

  /** @throws PerdureError `not_found` */
  #named({ session }: InSession): { session?: string } {
    return session === undefined ? {} : { session: sessionNamed(this[chatRoom].chat, session) };
  }
}
