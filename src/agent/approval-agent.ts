import { errorText, PerdureError } from "../base/error.ts";
import { type Identity, writeIdentity } from "../base/identity.ts";
import { pendingInteractions } from "../message/tool-answer.ts";
import { isTerminal, toolParts } from "../message/types.ts";
import { newestApproval, noteDecision } from "../tool/call-approval.ts";
import { CallBook } from "../tool/call-book.ts";
import type { CallApproval } from "../tool/define.ts";
import type { ApprovalRequest, ChatHooks } from "../turn/engine/chat-types.ts";
import { sessionNamed } from "../turn/engine/conversations.ts";
import { ChatAgent, chatRoom, deciding, type InSession } from "./chat-agent.ts";
import type { Connection } from "./connection.ts";
import { getCurrentAgent } from "./context.ts";
import { parts } from "./parts.ts";

/** How many decisions about calls that another engine runs are remembered. */
const KEPT_DECISIONS = 500;

/** What server code says when it answers a question. */
interface ApprovalOptions extends InSession {
  reason?: string;
  /** What whoever answers is called. Default: as {@link ApprovalAgent.getApprover} says. */
  approver?: string;
  /** Who answers. Default: for whom the code runs that calls this. */
  identity?: Identity;
  autoContinue?: boolean;
}

/** What an agent has whose tool calls wait for a client or a person: how they are answered, and who may. */
export abstract class ApprovalAgent<Env extends object, State, Props extends object> extends ChatAgent<
  Env,
  State,
  Props
> {
  // Who may

  /**
   * Whether whoever answers a question for approval may, with a yes or a no. Only `true` allows it: anything else, and a
   * throw, refuses; then the question stays open, and whoever tried is told. Asked for every answer that comes from
   * outside, also over HTTP; not for server code, which decides for itself. May be slow. Default: everybody who can talk
   * to the agent may.
   */
  authorizeApproval(_request: ApprovalRequest): boolean | Promise<boolean> {
    return true;
  }

  /** What somebody who answers a question is called; stored with the answer. Default: the name or the id of the identity. */
  getApprover(_connection: Connection | undefined, identity?: Identity): string | undefined {
    return identity?.name ?? identity?.id;
  }

  /** Who has approved a tool call, by the id of the call; undefined when nobody has, or nobody had to. */
  getToolApproval(toolCallId: string): CallApproval | undefined {
    return this[parts].host.blank ? undefined : newestApproval(this[parts].host, toolCallId);
  }

  get #book(): CallBook {
    return new CallBook(this[parts].host);
  }

  /** @internal */
  override get [deciding](): Pick<ChatHooks, "approver" | "authorize" | "decided" | "settled" | "removed" | "cleared"> {
    const { host } = this[parts];
    const isOwn = this.authorizeApproval !== ApprovalAgent.prototype.authorizeApproval;
    return {
      approver: (origin, identity) => this.getApprover(origin && this[parts].connections.of(origin), identity),
      ...(isOwn && { authorize: (request) => this.#authorize(request) }),
      decided: (decision) => {
        noteDecision(host, decision, host.clock.now());
        this.#book.forgetOlder(KEPT_DECISIONS);
      },
      settled: (message) => this.#book.settleAll(message.id, toolParts(message).filter(isTerminal)),
      removed: (messageId) => this.#book.forget(messageId),
      cleared: () => this.#book.forgetLost(),
    };
  }

  #authorize(request: ApprovalRequest): true | string | Promise<true | string> {
    const failed = (thrown: unknown) => {
      this[chatRoom].chat.hooks.failed(thrown);
      return `authorizeApproval threw: ${errorText(thrown)}`;
    };
    // JavaScript can return anything.
    const judge = (said: unknown) => {
      if (said === true) return true;
      if (said === false) return "authorizeApproval said no";
      const mistake = `authorizeApproval returned ${typeof said}, not true or false`;
      this[chatRoom].chat.hooks.failed(new PerdureError("bad_config", `${mistake}. The question stays open.`));
      return mistake;
    };
    try {
      const said: unknown = this.authorizeApproval(request);
      return said instanceof Promise ? said.then(judge, failed) : judge(said);
    } catch (thrown) {
      return failed(thrown);
    }
  }

  // Answers

  /** Whether the last answer waits for a client tool or an approval. */
  hasPendingInteraction(): boolean {
    const last = this.messages.at(-1);
    return last !== undefined && last.role === "assistant" && pendingInteractions(last).length > 0;
  }

  /** Answers a tool call from server code, in whatever session it waits. False when it is unknown or was answered before. */
  answerToolCall(toolCallId: string, output: unknown, options: { autoContinue?: boolean } & InSession = {}): boolean {
    const answer = { kind: "result", result: { state: "output-available", output } } as const;
    const given = { toolCallId, answer, autoContinue: options.autoContinue ?? true, ...this.#named(options) };
    return this[chatRoom].chat.answerTool(given, undefined) === true;
  }

  /** Approves or denies a tool call from server code, in whatever session. False when it is unknown or was answered before. */
  answerApproval(toolCallId: string, approved: boolean, options: ApprovalOptions = {}): boolean {
    const { reason, approver, autoContinue = true } = options;
    const current = getCurrentAgent();
    const { identity = (current.agent as unknown) === this ? current.identity : undefined } = options;
    if (options.identity !== undefined) writeIdentity(identity, "an approver");
    const answer = { kind: "approval", approved, reason } as const;
    const session = this.#named(options);
    const given = { toolCallId, answer, autoContinue, identity, ...session };
    return (
      this[chatRoom].chat.answerTool({ ...given, ...(approver !== undefined && { approver }) }, undefined) === true
    );
  }

  /** @throws PerdureError `not_found` */
  #named({ session }: InSession): { session?: string } {
    return session === undefined ? {} : { session: sessionNamed(this[chatRoom].chat, session) };
  }
}
