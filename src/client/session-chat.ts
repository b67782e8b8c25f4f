import type { ContextReport } from "../context/context-report.ts";
import type { SearchHit } from "../session/search.ts";
import type { SessionInfo } from "../session/session-info.ts";
import { isUnknownSession } from "../wire/close-code.ts";
import type { BranchInfo } from "../wire/session-frames.ts";
import { BranchMemory } from "./branch-memory.ts";
import { type AgentChatOptions, ChatFeed } from "./chat-feed.ts";
import type { ChatConnection } from "./chat-frames.ts";
import { type Attached, SessionRequests } from "./session-requests.ts";

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

/**
 * Sessions and branches of a chat. Everything that is asked rejects with a PerdureError: the agent's own, `timeout`, or
 * `disconnected` when the connection was lost before the answer.
 */
export abstract class SessionChat extends ChatFeed {
  readonly #requests: SessionRequests;
  readonly #memory: BranchMemory;
  /** The session, when this client shows a branch of its own in it too; undefined: the current one. */
  #home: string | undefined;
  /** This client's own place in it. */
  #view: string | undefined;
  /** Until then nothing may be sent: it would be said somewhere else. */
  protected moving: Promise<void> | undefined;

  constructor(connection: ChatConnection, options: AgentChatOptions = {}) {
    super(connection, options);
    this.#requests = new SessionRequests(connection);
    this.#memory = new BranchMemory(options.rememberBranch, connection.getHttpUrl?.() ?? "");
    this.#home = options.session;
    this.#view = this.#memory.read(this.#home);
    connection.addEventListener("close", (event) => this.#lost(event));
    const session = this.#view ?? this.#home;
    if (session !== undefined && connection.useSession?.(session) !== false) {
      // Whoever waits for it hears of it; here nobody does.
      void this.#move(this.#requests.attach(session), session === this.#view).catch(() => {});
    }
  }

  /** The versions of a message, oldest first: other answers to the same question, or edits of it. */
  async listBranches(messageId: string): Promise<Branch[]> {
    const branches = await this.#requests.branches(messageId);
    const ids = new Set(this.messages.map(({ id }) => id));
    return branches.map((branch) => ({ ...branch, shown: ids.has(branch.messageId) }));
  }

  /**
   * Shows the branch with this message, with what was said last on it. Only here: others see what they saw, and what is
   * said here is said on this branch. With `own: false` the whole session goes there, for all; not while a turn runs.
   */
  switchBranch(messageId: string, { own = true }: { readonly own?: boolean } = {}): Promise<void> {
    return this.#move(this.#requests.switchBranch(messageId, own, this.#home !== undefined), true);
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
  switchTo(session: string | null): Promise<void> {
    return this.#move(this.#requests.attach(session), false);
  }

  /** A new session that has all of this one up to the message `at`, or all. This client stays where it is. */
  fork(options: { readonly at?: string; readonly name?: string } = {}): Promise<SessionInfo> {
    return this.#requests.fork(options);
  }

  search(query: string, options: ChatSearchOptions = {}): Promise<SearchHit[]> {
    return this.#requests.search(query, options);
  }

  /** What the next request would hold, and what each thing in it costs. */
  report(): Promise<ContextReport> {
    return this.#requests.report();
  }

  pin(messageId: string): Promise<void> {
    return this.#requests.pin(messageId, true);
  }

  unpin(messageId: string): Promise<void> {
    return this.#requests.pin(messageId, false);
  }

  /** Has the session named by what was said in it. @returns its name. */
  title(): Promise<string | null> {
    return this.#requests.title();
  }

  async #step(messageId: string, by: number): Promise<void> {
    const branches = await this.listBranches(messageId);
    const at = branches.findIndex((branch) => branch.messageId === messageId);
    const next = at === -1 ? undefined : branches[at + by];
    if (next !== undefined) await this.switchBranch(next.messageId);
  }

  /** @param stays it is the same session, whatever place in it. */
  async #move(asked: Promise<Attached>, stays: boolean): Promise<void> {
    const moving = asked.then(
      ({ named, viewOf }) => {
        this.connection.useSession?.(named ?? undefined);
        if (!stays) this.#home = named ?? undefined;
        this.#view = viewOf === null ? undefined : (named ?? undefined);
        this.#memory.write(this.#home, this.#view);
      },
      () => {},
    );
    this.moving = moving;
    await asked;
    await moving;
    if (this.moving === moving) this.moving = undefined;
  }

  /** The agent does not keep a client's place for ever. Then it is in the session as all are. */
  #lost(event: Event): void {
    if (this.#view === undefined || !isUnknownSession(event)) return;
    this.#view = undefined;
    this.#memory.write(this.#home, undefined);
    this.connection.useSession?.(this.#home);
    this.connection.open?.();
  }
}
