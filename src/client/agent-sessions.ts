import { tryParseJson } from "../base/json.ts";
import type { SessionInfo } from "../wire/session-types.ts";
import { isSessionState, MAX_LISTED } from "../wire/session-frames.ts";
import type { ChatConnection } from "./chat-frames.ts";
import { placeOf } from "./client-session.ts";
import { SessionRequests } from "./session-requests.ts";

/** What there is to show of an agent's sessions. A new object whenever something changed. */
export interface SessionsSnapshot {
  /** The ones that were used last first, as many as were asked for. */
  readonly sessions: readonly SessionInfo[];
  /** The list was told. */
  readonly isLoaded: boolean;
  /** There are more; `loadMore` brings them. */
  readonly hasMore: boolean;
  /** The session that this client is in; undefined until it is told. */
  readonly current: string | undefined;
  /** Why the list could not be had. */
  readonly error: Error | undefined;
}

const NOTHING: SessionsSnapshot = {
  sessions: [],
  isLoaded: false,
  hasMore: false,
  current: undefined,
  error: undefined,
};

/** The sessions of an agent, for any framework. Made once per connection; it listens as long as that lives. */
export class AgentSessions {
  readonly #connection: ChatConnection;
  readonly #requests: SessionRequests;
  readonly #listeners = new Set<() => void>();
  #snapshot = NOTHING;
  #loading: Promise<void> | undefined;
  #again = false;

  constructor(connection: ChatConnection) {
    this.#connection = connection;
    this.#requests = new SessionRequests(connection);
    connection.addEventListener("message", ({ data }) => this.#received(data));
    connection.addEventListener("open", () => this.#refreshSoon());
    connection.addEventListener("change", () => this.#refused());
  }

  /** Calls `listener` after each change. The list is asked for when somebody listens. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#refused();
    if (!this.#snapshot.isLoaded) this.#refreshSoon();
    return () => void this.#listeners.delete(listener);
  }

  getSnapshot(): SessionsSnapshot {
    return this.#snapshot;
  }

  /** Makes a session. This client stays where it is. */
  async create(options: { readonly name?: string } = {}): Promise<SessionInfo> {
    return this.#requests.ask({ op: "create", ...options });
  }

  async rename(session: string, name: string): Promise<void> {
    await this.#requests.ask({ op: "rename", session, name });
  }

  /** Deletes a session with all that was said in it. Who is in it is sent away; this client goes to the current one. */
  async remove(session: string): Promise<void> {
    await this.#requests.ask({ op: "delete", session });
    if (this.#snapshot.current === session) placeOf(this.#connection).left();
  }

  /** Deletes what was said in a session. */
  async clear(session: string): Promise<void> {
    await this.#requests.ask({ op: "clear", session });
  }

  /** Moves this client to another session; null: to whichever is the agent's current one. A chat on it moves along. */
  async switchTo(session: string | null): Promise<void> {
    const asked = this.#requests.ask({ op: "attach", session });
    const { session: now, viewOf } = await placeOf(this.#connection).move(asked, false);
    this.#set({ current: viewOf ?? now });
  }

  /** The list anew, as long as it was. Resolves when it is there, or cannot be had: then `error` says why. */
  refresh(): Promise<void> {
    if (this.#loading !== undefined) {
      this.#again = true;
      return this.#loading;
    }
    this.#loading = this.#load().finally(() => {
      this.#loading = undefined;
      if (this.#again) this.#refreshSoon();
      this.#again = false;
    });
    return this.#loading;
  }

  async loadMore(): Promise<void> {
    const last = this.#snapshot.sessions.at(-1);
    if (last === undefined || !this.#snapshot.hasMore) return;
    const more = await this.#requests.ask({ op: "sessions", limit: MAX_LISTED, after: last.id });
    const known = new Set(this.#snapshot.sessions.map(({ id }) => id));
    const sessions = [...this.#snapshot.sessions, ...more.filter(({ id }) => !known.has(id))];
    this.#set({ sessions, hasMore: more.length === MAX_LISTED });
  }

  async #load(): Promise<void> {
    try {
      const sessions = await this.#requests.ask({ op: "sessions", limit: MAX_LISTED });
      this.#set({ sessions, isLoaded: true, hasMore: sessions.length === MAX_LISTED, error: undefined });
    } catch (thrown) {
      this.#set({ error: thrown instanceof Error ? thrown : new Error(String(thrown)) });
    }
  }

  #refreshSoon(): void {
    if (this.#listeners.size > 0 && this.#connection.readyState === 1) void this.refresh();
  }

  /** The connection is closed for good. */
  #refused(): void {
    const { connectionError } = this.#connection;
    if (connectionError && connectionError !== this.#snapshot.error) this.#set({ error: connectionError });
  }

  #received(data: unknown): void {
    if (typeof data !== "string" || !data.includes('"perdure_session')) return;
    const frame = tryParseJson(data);
    if (isSessionState(frame)) {
      const { id, viewOf } = frame.session;
      const current = viewOf ?? id;
      if (current !== this.#snapshot.current) this.#set({ current });
    } else if (data.startsWith('{"type":"perdure_sessions_changed"')) this.#refreshSoon();
  }

  #set(change: Partial<SessionsSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    for (const listener of this.#listeners) listener();
  }
}
