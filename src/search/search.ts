import { tryParseJson } from "../base/json.ts";
import { untilAborted } from "../base/abort.ts";
import { PerdureError } from "../base/error.ts";
import { firstChars } from "../message/cut-value.ts";
import type { Role } from "../message/types.ts";
import { parseMessage } from "../message/validate.ts";
import type { SessionStore } from "../store/session-store.ts";
import { newestMessage, readMessage, readMessageAt } from "../store/message.ts";
import {
  findOnPath,
  indexedWords,
  indexMessage,
  newestMatches,
  prepareSearchIndex,
  searchMessages,
  type SearchMatch,
  unindexedMessages,
} from "../store/search.ts";
import { readSession, type SessionRow } from "../store/session.ts";
import { beginningOf, excerptOf } from "./excerpt.ts";
import { expressionOf, parseQuery, type SearchQuery, type Term, type TermMatch } from "./search-query.ts";
import { readableText, searchText } from "./search-text.ts";
import { indexText } from "./words.ts";
import type { SearchHit } from "../wire/session-types.ts";

const DEFAULT_SEARCH_LIMIT = 10;
const MAX_SEARCH_LIMIT = 100;

/** What is indexed before others have their turn: messages, and bytes of them. */
const SLICE_ROWS = 64;
const SLICE_BYTES = 64_000;
/** Steps of the way to the first message that are walked before others have their turn. */
const SLICE_STEPS = 5_000;
/** Matches that are looked at together, and in all, when most are not in the session that is asked for. */
const BATCH = 200;
const MAX_MATCHES = 2_000;
/** A word that was only begun stands for at most so many words, and all of a query for so many. */
const MAX_ENDINGS = 64;
const MAX_WORDS = 256;
const WORDS_AT_ONCE = 64;
/** Behind every word that begins with something. */
const LAST_CHARACTER = "\u{10FFFF}";
/** With words in more messages than this, found ones are not weighed: the newest come first. */
const MAX_WEIGHED = 20_000;
/** Messages that are looked through at a time for such words. */
const WINDOW = 4_000;
/** Of one message so much is indexed and shown in excerpts, in characters. */
const MAX_INDEXED = 400_000;
const MAX_EXCERPTED = 50_000;
/** Hits that are read and cut to excerpts before others have their turn. */
const HITS_AT_ONCE = 10;
/** How much of a long message is read at a time, in characters. */
const PAGE = 8_000;

const ROLES: ReadonlySet<unknown> = new Set(["user", "assistant", "system"]);

/** Where and what to search. */
export interface SearchOptions {
  /** Only what this session shows, with what it has from the one that it was forked from. Default: everywhere. */
  readonly session?: string;
  /** The most hits, 1 to 100. Default: 10. */
  readonly limit?: number;
  readonly role?: Role;
  /** Only messages of before this time, in milliseconds since the epoch. */
  readonly before?: number;
  readonly signal?: AbortSignal;
}

/** A page of a message. */
export interface MessageText {
  readonly messageId: string;
  readonly role: Role;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly text: string;
  /** From 1 to `pages`. */
  readonly page: number;
  readonly pages: number;
}

/** Finds messages by their words, compacted ones too. Each search brings the index up to date; who never searches has none. */
export class SessionSearch {
  readonly #host: SessionStore;
  #catchingUp: Promise<void> | undefined;

  constructor(host: SessionStore) {
    this.#host = host;
  }

  /**
   * The messages that have all words of `query`, the last of which may be only begun; the best first, newer before older.
   * Behind them those that have the words in other forms. Long work lets others have their turn.
   * @throws PerdureError `bad_input`, `not_found` for a session that is not there; the signal's reason when it aborts.
   */
  search(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    return this.#search(query, options, false);
  }

  /** The same, but behind the rest comes what has only some of the words. */
  searchLoosely(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    return this.#search(query, options, true);
  }

  /**
   * The text of a message, in pages; undefined when there is none of that id.
   * @param options `session`: only if this session shows it.
   * @throws PerdureError `bad_input` for a page that is not there.
   */
  async read(
    messageId: string,
    options: { readonly page?: number; readonly session?: string } = {},
  ): Promise<MessageText | undefined> {
    const row = readMessage(this.#host, messageId);
    const message = row && parseMessage(tryParseJson(row.body));
    if (row === undefined || message === undefined) return undefined;
    if (options.session !== undefined) {
      const session = this.#session(options.session);
      if ((await this.#onPath(session.leaf, [row.seq], undefined)).size === 0) return undefined;
    }
    const pages = pagesOf(readableText(message));
    const { page = 1 } = options;
    const text = pages[page - 1];
    if (text === undefined)
      throw new PerdureError("bad_input", `Message "${messageId}" has pages 1 to ${pages.length}, not ${page}.`);
    return { messageId, role: message.role, createdAt: row.createdAt, text, page, pages: pages.length };
  }

  async #search(text: string, options: SearchOptions, loose: boolean): Promise<SearchHit[]> {
    const query = parseQuery(text, loose);
    checkOptions(options);
    const { limit = DEFAULT_SEARCH_LIMIT, signal } = options;
    const session = options.session === undefined ? undefined : this.#session(options.session);
    signal?.throwIfAborted();
    if (this.#host.blank) return [];
    await this.#catchUp(signal);
    const hits = new Map<number, SearchHit>();
    const tried = new Set<string>();
    for (const match of query.matches) {
      const plan = await this.#plan(match, signal);
      if (tried.has(plan.expression)) continue;
      tried.add(plan.expression);
      const found = plan.isCommon
        ? this.#newest(plan.expression, options, session)
        : this.#matches(plan.expression, options, session);
      for await (const { seq } of found) {
        if (hits.size >= limit) break;
        if (hits.has(seq)) continue;
        const hit = this.#hit(seq, query, session, hits.size + 1);
        if (hit !== undefined) hits.set(seq, hit);
        if (hits.size % HITS_AT_ONCE === 0) await this.#host.breathe();
      }
      if (hits.size >= limit) break;
      await this.#host.breathe();
      signal?.throwIfAborted();
    }
    return [...hits.values()];
  }

  /** How to look for something, so that no statement takes long: a word that was only begun may stand for any number. */
  async #plan(
    match: TermMatch,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly expression: string; readonly isCommon: boolean }> {
    const endings = new Map<Term, readonly string[]>();
    let messages = 0;
    let left = MAX_WORDS;
    for (const term of match.terms) {
      const last = term.keys.at(-1) ?? "";
      for (const key of term.open ? term.keys.slice(0, -1) : term.keys)
        messages += indexedWords(this.#host, key, key, 1)[0]?.doc ?? 0;
      if (!term.open) continue;
      const words: string[] = [];
      let isMore = true;
      for (let from = last; isMore && words.length < Math.min(MAX_ENDINGS, left);) {
        const some = indexedWords(this.#host, from, last + LAST_CHARACTER, WORDS_AT_ONCE);
        for (const { term: word, doc } of some) {
          words.push(word);
          messages += doc;
        }
        isMore = some.length === WORDS_AT_ONCE;
        from = `${some.at(-1)?.term ?? ""}\0`;
        signal?.throwIfAborted();
      }
      left -= words.length;
      if (isMore) endings.set(term, words.length === 0 ? [last] : words);
    }
    return { expression: expressionOf(match, endings), isCommon: messages > MAX_WEIGHED };
  }

  /** Matches of words that are nearly everywhere, in the session that was asked for: the newest first. */
  async *#newest(
    match: string,
    { role, before, signal }: SearchOptions,
    session: SessionRow | undefined,
  ): AsyncGenerator<SearchMatch, void> {
    let left = MAX_MATCHES;
    for (let upto = newestMessage(this.#host); upto > 0 && left > 0;) {
      const after = Math.max(0, upto - WINDOW);
      const found = newestMatches(this.#host, match, { role, before, limit: BATCH, after, upto });
      left -= found.length;
      const seqs = found.map(({ seq }) => seq);
      const here = session && (await this.#onPath(session.leaf, seqs, signal));
      yield* here === undefined ? found : found.filter(({ seq }) => here.has(seq));
      upto = found.length < BATCH ? after : (seqs.at(-1) ?? 1) - 1;
      await this.#host.breathe();
      signal?.throwIfAborted();
    }
  }

  /** Matches in the session that was asked for, the best first. */
  async *#matches(
    match: string,
    { role, before, signal }: SearchOptions,
    session: SessionRow | undefined,
  ): AsyncGenerator<SearchMatch, void> {
    for (let skip = 0; skip < MAX_MATCHES; skip += BATCH) {
      const found = searchMessages(this.#host, match, { role, before, limit: BATCH, skip });
      const seqs = found.map(({ seq }) => seq);
      const here = session && (await this.#onPath(session.leaf, seqs, signal));
      yield* here === undefined ? found : found.filter(({ seq }) => here.has(seq));
      if (found.length < BATCH) return;
      await this.#host.breathe();
      signal?.throwIfAborted();
    }
  }

  /** Which of these messages stand on the way from a leaf to the first. */
  async #onPath(leaf: number | null, seqs: readonly number[], signal: AbortSignal | undefined): Promise<Set<number>> {
    const here = new Set<number>();
    for (let at = leaf; at !== null && seqs.length > here.size;) {
      const { found, next } = findOnPath(this.#host, at, seqs, SLICE_STEPS);
      for (const seq of found) here.add(seq);
      at = next;
      if (at === null) break;
      await this.#host.breathe();
      signal?.throwIfAborted();
    }
    return here;
  }

  #hit(seq: number, query: SearchQuery, session: SessionRow | undefined, rank: number): SearchHit | undefined {
    const row = readMessageAt(this.#host, seq);
    const message = row && parseMessage(tryParseJson(row.body));
    if (row === undefined || message === undefined) return undefined;
    const { said, done } = searchText(message);
    const shown = session ?? this.#shownAs(row.session);
    return {
      sessionId: shown?.id ?? row.session,
      sessionName: shown?.name ?? null,
      messageId: row.id,
      role: message.role,
      createdAt: row.createdAt,
      // What is found across both has no one place.
      excerpt:
        excerptOf(said.slice(0, MAX_EXCERPTED), query) ??
        excerptOf(done.slice(0, MAX_EXCERPTED), query) ??
        beginningOf(said === "" ? done : said),
      rank,
    };
  }

  /** A view is one client's place in a session that has a name. */
  #shownAs(id: string): SessionRow | undefined {
    const row = readSession(this.#host, id);
    return row === undefined || row.viewOf === null ? row : readSession(this.#host, row.viewOf);
  }

  #session(id: string): SessionRow {
    const row = readSession(this.#host, id);
    if (row === undefined) throw new PerdureError("not_found", `There is no session "${id}" to search.`);
    return row;
  }

  /** Brings the index up to date; several who ask share the work. */
  async #catchUp(signal: AbortSignal | undefined): Promise<void> {
    this.#catchingUp ??= this.#host.keepAwake(this.#indexAll()).finally(() => {
      this.#catchingUp = undefined;
    });
    // Who gives up waiting does not stop it: others wait, and the next search needs it.
    await untilAborted(this.#catchingUp, signal);
  }

  async #indexAll(): Promise<void> {
    prepareSearchIndex(this.#host);
    for (;;) {
      const waiting = unindexedMessages(this.#host, SLICE_ROWS);
      if (waiting.length === 0) return;
      let room = SLICE_BYTES;
      this.#host.tx(() => {
        for (const { seq, size } of waiting) {
          if (room <= 0) return;
          room -= size;
          this.#index(seq);
        }
      }, "commit");
      await this.#host.breathe();
    }
  }

  #index(seq: number): void {
    const row = readMessageAt(this.#host, seq);
    const message = row && parseMessage(tryParseJson(row.body));
    const { said, done } = message === undefined ? { said: "", done: "" } : searchText(message);
    const words = (text: string) => indexText(text.slice(0, MAX_INDEXED).toWellFormed());
    indexMessage(this.#host, seq, { said: words(said), done: words(done) });
  }
}

function checkOptions({ limit, role, before, session }: SearchOptions): void {
  if (limit !== undefined && !(Number.isInteger(limit) && limit >= 1 && limit <= MAX_SEARCH_LIMIT))
    throw new PerdureError("bad_input", `\`limit\` must be a whole number from 1 to ${MAX_SEARCH_LIMIT}.`);
  if (role !== undefined && !ROLES.has(role))
    throw new PerdureError("bad_input", "`role` must be user, assistant or system.");
  if (before !== undefined && !Number.isFinite(before))
    throw new PerdureError("bad_input", "`before` must be a time in milliseconds since the epoch.");
  if (session !== undefined && typeof session !== "string")
    throw new PerdureError("bad_input", "`session` must be the id of a session.");
}

/** At least one, which may be empty. */
function pagesOf(text: string): string[] {
  const pages: string[] = [];
  let rest = text;
  do {
    const page = firstChars(rest, Math.min(PAGE, rest.length));
    pages.push(page);
    rest = rest.slice(page.length);
  } while (rest !== "");
  return pages;
}
