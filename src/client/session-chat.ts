import type { CompactionInfo, ContextReport, DraftCompaction, SearchHit, SessionInfo } from "../wire/session-types.ts";
import type { BranchInfo } from "../wire/session-frames.ts";
import { type AgentChatOptions, ChatFeed } from "./chat-feed.ts";
import type { ChatConnection } from "./chat-frames.ts";
import { type ClientSession, placeOf } from "./client-session.ts";
import { type AppliedSummary, SessionRequests } from "./session-requests.ts";

/** One of the versions of a message. */
export interface Branch extends BranchInfo {
  /** It is the one in the list. */
  readonly shown: boolean;
}

/** Where to search. */
export interface ChatSearchOptions {
  /** The id of a session, or `all`. Default: the one that this client is in. */
  readonly session?: string;
  /** Default 10, at most 100. */
  readonly limit?: number;
}

/** Sessions and branches of a chat. Requests reject with the agent's PerdureError, `timeout`, or `disconnected`. */
export abstract class SessionChat extends ChatFeed {
  readonly #requests: SessionRequests;
  protected readonly place: ClientSession;

  constructor(connection: ChatConnection, options: AgentChatOptions = {}) {
    super(connection, options);
    this.#requests = new SessionRequests(connection);
    this.place = placeOf(connection);
    const first = this.place.begin(options.session, options.rememberBranch);
    if (first !== undefined) this.#goTo(this.place.move(this.#requests.ask({ op: "attach", session: first }), true));
  }

  /** The versions of a message, oldest first: other answers to the same question, or edits of it. */
  async listBranches(messageId: string): Promise<Branch[]> {
    const branches = await this.#requests.ask({ op: "branches", messageId });
    const ids = new Set(this.messages.map(({ id }) => id));
    return branches.map((branch) => ({ ...branch, shown: ids.has(branch.messageId) }));
  }

  /**
   * Shows the branch with this message, at its latest, for this client only; what is said here goes on that branch. `own: false`
   * moves the whole session for everybody, but not while a turn runs.
   */
  async switchBranch(messageId: string, { own = true }: { readonly own?: boolean } = {}): Promise<void> {
    const asked = { op: "switchBranch", messageId, own, named: this.place.isNamed } as const;
    await this.place.move(this.#requests.ask(asked), true);
  }

  /** Shows the version before this one. Nothing happens at the first. */
  previousBranch(messageId: string): Promise<void> {
    return this.#step(messageId, -1);
  }

  /** Shows the version after this one. Nothing happens at the last. */
  nextBranch(messageId: string): Promise<void> {
    return this.#step(messageId, 1);
  }

  /** Moves this client to another session; null: to whichever is the agent's current one. */
  async switchTo(session: string | null): Promise<void> {
    await this.place.move(this.#requests.ask({ op: "attach", session }), false);
  }

  /** The same for who does not wait: if it fails, why is the chat's error. */
  goTo(session: string | null): void {
    this.#goTo(this.switchTo(session));
  }

  /** A new session that has all of this one up to the message `at`, or all. This client stays where it is. */
  fork(options: { readonly at?: string; readonly name?: string } = {}): Promise<SessionInfo> {
    return this.#requests.ask({ op: "fork", ...options });
  }

  search(query: string, options: ChatSearchOptions = {}): Promise<SearchHit[]> {
    return this.#requests.ask({ op: "search", query, ...options });
  }

  /** What the next request would hold, and what each thing in it costs. */
  report(): Promise<ContextReport> {
    return this.#requests.ask({ op: "report" });
  }

  /** Has what was said so far summarised, now. With `preview` it is only written, and nothing changes. */
  compact(options: { readonly focus?: string; readonly preview: true }): Promise<DraftCompaction>;
  compact(options?: { readonly focus?: string; readonly preview?: false }): Promise<CompactionInfo>;
  compact(
    options: { readonly focus?: string; readonly preview?: boolean } = {},
  ): Promise<DraftCompaction | CompactionInfo> {
    return this.#requests.ask({ op: "compact", ...options, preview: options.preview === true });
  }

  /** From now on the model reads this text in the place of what was said up to a message. */
  applyCompaction({ summary, messageId, parts }: AppliedSummary): Promise<CompactionInfo> {
    const covered = parts === undefined || parts === null ? {} : { parts };
    return this.#requests.ask({ op: "applyCompaction", summary, messageId, ...covered });
  }

  /** The model reads what was said, word by word, again. */
  async undoCompaction(id: string): Promise<void> {
    await this.#requests.ask({ op: "undoCompaction", compaction: id });
  }

  async pin(messageId: string): Promise<void> {
    await this.#requests.ask({ op: "pin", messageId });
  }

  async unpin(messageId: string): Promise<void> {
    await this.#requests.ask({ op: "unpin", messageId });
  }

  /** Has the session named by what was said in it. @returns its name. */
  title(): Promise<string | null> {
    return this.#requests.ask({ op: "title" });
  }

  async #step(messageId: string, by: number): Promise<void> {
    const branches = await this.listBranches(messageId);
    const at = branches.findIndex((branch) => branch.messageId === messageId);
    const next = at === -1 ? undefined : branches[at + by];
    if (next !== undefined) await this.switchBranch(next.messageId);
  }

  /** For those who do not wait: why it failed is the chat's error. */
  #goTo(moved: Promise<unknown>): void {
    moved.catch((thrown: unknown) => this.fails(thrown instanceof Error ? thrown : new Error(String(thrown))));
  }
}
