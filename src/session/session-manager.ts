import type { UIMessage } from "../message/types.ts";
import { listSessionLines } from "../store/session.ts";
import { readUsageTotal } from "../store/usage-total.ts";
import { toDollars } from "../ledger/charge.ts";
import type { UsageTotals } from "../ledger/ledger.ts";
import { type SearchOptions, SessionSearch } from "../search/search.ts";
import type { SearchHit, SessionInfo } from "../wire/session-types.ts";
import { type AppendOptions, Session, type OpenSessions } from "./session.ts";
import {
  clearSession,
  closeView,
  createSession,
  deleteSession,
  findSession,
  type ForkOptions,
  forkSession,
  hasSession,
  infoOf,
  type NewSessionOptions,
  openView,
  ownerOf,
  renameSession,
  switchSession,
} from "./session-changes.ts";
import { plainGround, type SessionGround } from "./session-ground.ts";
import { type OwnStore, toSessionStore } from "../store/session-store.ts";

/** Tells each session what the app wants of it. May be slow; what it throws fails whoever needs the session. */
export type ConfigureSession = (session: Session) => unknown;

/** How many sessions are kept in memory: each with what was configured for it, not with its messages. */
const MAX_OPEN = 200;

interface Open {
  readonly session: Session;
  readonly ready: Promise<void>;
}

/** The sessions of an agent, or of a database without one. */
export class SessionManager implements OpenSessions {
  readonly #ground: SessionGround;
  readonly #configure: ConfigureSession | undefined;
  /** The one that was asked for last is last. */
  readonly #open = new Map<string, Open>();
  #search: SessionSearch | undefined;

  /** @param configure is called once per session and life, before anybody else has it. */
  constructor(ground: SessionGround, configure?: ConfigureSession) {
    this.#ground = ground;
    this.#configure = configure;
  }

  /** Sessions without an agent, in your own database, which is migrated. @throws PerdureError `database_newer` */
  static open(store: OwnStore, configure?: ConfigureSession): SessionManager {
    return new SessionManager(plainGround(toSessionStore(store)), configure);
  }

  // Which there are

  /** @throws PerdureError `conflict` when the id is taken, `bad_input` */
  create(options: NewSessionOptions = {}): Session {
    return this.of(createSession(this.#ground, options));
  }

  /** Undefined when there is none of that id. The first one, `main`, is always there. */
  get(id: string): Session | undefined {
    return hasSession(this.#ground.store, id) ? this.of(id) : undefined;
  }

  /** @throws PerdureError `not_found`; what the app's own `configureSession` throws, and then the next use tries again. */
  of(id: string): Session {
    return this.#opened(id).session;
  }

  /** The same, once it is configured. */
  async ready(id: string): Promise<Session> {
    const { session, ready } = this.#opened(id);
    await ready;
    return session;
  }

  /** The current session: that of all who name none. */
  get current(): Session {
    return this.of(this.currentId);
  }

  get currentId(): string {
    return this.#ground.transcripts.current;
  }

  /** The one that was used last first. `after` is the id of the last one of the page before. Views are not listed. */
  list({
    limit = Number.MAX_SAFE_INTEGER,
    after,
  }: { readonly limit?: number; readonly after?: string } = {}): SessionInfo[] {
    if (this.#ground.store.blank) return [];
    return listSessionLines(this.#ground.store, limit, after).map((row) => infoOf(this.#ground, row));
  }

  /** @throws PerdureError `not_found` */
  info(id: string): SessionInfo {
    return infoOf(this.#ground, findSession(this.#ground, id));
  }

  /** Makes a session the current one. @throws PerdureError `not_found` */
  switch(id: string): Session {
    switchSession(this.#ground, id);
    return this.of(id);
  }

  /** @throws PerdureError `not_found`, `bad_input` */
  rename(id: string, name: string): void {
    renameSession(this.#ground, id, name);
  }

  /** Deletes a session with all that was said in it, but for what others show. @returns whether there was one. */
  delete(id: string): boolean {
    this.#open.delete(id);
    return deleteSession(this.#ground, id);
  }

  clear(id: string): void {
    clearSession(this.#ground, id);
  }

  /** See `Session.fork`. @throws PerdureError `not_found`, `conflict`, `bad_input` */
  fork(id: string, options: ForkOptions = {}): Session {
    return this.of(forkSession(this.#ground, id, options));
  }

  // What is in them

  /** See `Session.appendMessage`. */
  appendMessage(id: string, message: UIMessage, options: AppendOptions = {}): UIMessage {
    return this.appendMessages(id, [message], options)[0] ?? message;
  }

  /** See `Session.appendMessages`. */
  appendMessages(id: string, messages: readonly UIMessage[], options: AppendOptions = {}): UIMessage[] {
    return this.of(id).appendMessages(messages, options);
  }

  /** Finds messages by their words, in all sessions or in one. @throws PerdureError `bad_input`, `not_found` */
  search(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    return (this.#search ??= new SessionSearch(this.#ground.store)).search(query, options);
  }

  /** What the model calls of a session have used. */
  usage(id: string): UsageTotals {
    const sums = readUsageTotal(this.#ground.store, "session", ownerOf(this.#ground, id));
    return { ...sums, cost: toDollars(sums.cost), reservedCost: toDollars(sums.reservedCost) };
  }

  // Views

  /**
   * A client's own place in a session: with the newest message under `at`, by default the session's end. What is said there is a
   * branch of the session. @returns its id. @throws PerdureError `not_found`
   */
  openView(id: string, at?: string): string {
    return openView(this.#ground, id, at);
  }

  /** @returns whether there was one. @throws PerdureError `bad_state` while a turn of it is under way. */
  closeView(id: string): boolean {
    this.#open.delete(id);
    return closeView(this.#ground, id);
  }

  /** The session that a view is of; of any other, itself. @throws PerdureError `not_found` */
  ownerOf(id: string): string {
    return ownerOf(this.#ground, id);
  }

  /** @internal */
  configured(id: string): Promise<void> {
    return this.#opened(id).ready;
  }

  #opened(id: string): Open {
    const { viewOf } = findSession(this.#ground, id);
    let open = this.#open.get(id);
    if (open === undefined) open = this.#begin(id, viewOf !== null);
    else {
      this.#open.delete(id);
      this.#open.set(id, open);
    }
    for (const old of this.#open.keys()) {
      if (this.#open.size <= MAX_OPEN) break;
      this.#open.delete(old);
    }
    return open;
  }

  #begin(id: string, isView: boolean): Open {
    const session = new Session(this.#ground, this, id);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const open: Open = { session, ready: promise };
    // Before it is configured: the code that does so may ask for it.
    this.#open.set(id, open);
    const forget = () => {
      if (this.#open.get(id) === open) this.#open.delete(id);
    };
    promise.catch((thrown: unknown) => {
      forget();
      this.#ground.failed(thrown);
    });
    try {
      // A view has nothing of its own.
      const result = isView ? undefined : this.#configure?.(session);
      if (result instanceof Promise) result.then(() => resolve(), reject);
      else resolve();
    } catch (thrown) {
      forget();
      resolve();
      throw thrown;
    }
    return open;
  }
}
