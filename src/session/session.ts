import { PerdureError } from "../base/error.ts";
import type { UIMessage } from "../message/types.ts";
import {
  compactionPlaces,
  type CompactionRow,
  deleteStrayCompactions,
  pinsOf,
  readCompactionAt,
  setCompactionPins,
} from "../store/compaction.ts";
import {
  firstMessages,
  type MessageRow,
  messagesBehind,
  messagesUp,
  pathLength,
  placesUp,
  readMessage,
  readMessageAt,
  setPinned,
  standsAbove,
} from "../store/message.ts";
import type { SessionLine } from "../store/session.ts";
import { forgetNames, nameAfter, nameAnew } from "./titles.ts";
import { isReadable, toEntry } from "./path-window.ts";
import { dropSummaries } from "./stale-summaries.ts";
import {
  clearSession,
  findMessage,
  findSession,
  type ForkOptions,
  forkSession,
  infoOf,
  refuseDuringTurns,
  renameSession,
  settledEnd,
} from "./session-changes.ts";
import type { SessionGround } from "./session-ground.ts";
import type { SessionInfo } from "../wire/session-types.ts";
import { hasMessage, newestLeafIn } from "./siblings.ts";
import type { Sql } from "../port.ts";
import type { DamageTeller } from "../store/damaged.ts";
import type { ToolSet } from "ai";
import type { ContextOptions } from "../memory/definition.ts";
import { type ContextBlock, ContextBlocks } from "../memory/context-blocks.ts";

/** Which stretch of a conversation. */
export interface HistoryOptions {
  /** The most messages, counted from the end. Default: all. */
  readonly limit?: number;
  /** Only what stands before this message. */
  readonly before?: string;
}

/** Where a message goes. */
export interface AppendOptions {
  /** The message behind which it goes; null: it begins a conversation. Default: behind what was said last. */
  readonly parentId?: string | null;
  /** What the writer believes was said last; null: nothing. If somebody else was faster, nothing is written. */
  readonly expect?: string | null;
}

/** Who keeps the sessions of an agent. */
export interface OpenSessions {
  of(id: string): Session;
  /** What the app configures for a session has run. */
  configured(id: string): Promise<void>;
}

/** How many messages are read at a time on a long way. */
const PAGE = 128;

/**
 * One conversation: a place in the tree of an agent's messages. Its history is the path from its leaf up to the first message;
 * neither ids nor times matter for order. All of it is stored: two objects of one session, in any life, are the same session.
 */
export class Session {
  readonly id: string;
  readonly #ground: SessionGround;
  readonly #sessions: OpenSessions;
  readonly #owner: string;
  #blocks: ContextBlocks | undefined;
  #settings: SessionSettings = {};

  /** Made by a `SessionManager`. @throws PerdureError `not_found` */
  constructor(ground: SessionGround, sessions: OpenSessions, id: string) {
    this.id = id;
    this.#ground = ground;
    this.#sessions = sessions;
    this.#owner = findSession(ground, id).viewOf ?? id;
  }

  // What it is

  /** @throws PerdureError `not_found` when it was deleted. */
  get info(): SessionInfo {
    return infoOf(this.#ground, this.#row);
  }

  get name(): string | null {
    return this.#row.name;
  }

  /** The id of the message that was said last. */
  get currentLeaf(): string | null {
    const { leaf } = this.#row;
    return leaf === null ? null : (placesUp(this.#ground.store, leaf, 1)[0]?.id ?? null);
  }

  // Reading

  /**
   * The messages from the first to `leafId` (default: the last), as stored, whatever the model reads instead. Without a limit it
   * costs the whole conversation. @throws PerdureError `not_found`
   */
  getHistory(leafId?: string | null, { limit = Infinity, before }: HistoryOptions = {}): UIMessage[] {
    let at = this.#end(leafId);
    if (before !== undefined) at = this.#find(before).parent;
    const messages: UIMessage[] = [];
    while (at !== null && messages.length < limit) {
      const page: MessageRow[] = messagesUp(this.#ground.store, at, Math.min(PAGE, limit - messages.length));
      if (page.length === 0) break;
      messages.push(...page.flatMap((one) => toMessage(one) ?? []));
      at = page.at(-1)?.parent ?? null;
    }
    return messages.reverse();
  }

  /** A message that this session shows, or that was said in it on another branch. */
  getMessage(id: string): UIMessage | undefined {
    try {
      return toMessage(this.#find(id));
    } catch (thrown) {
      if (PerdureError.is(thrown, "not_found")) return undefined;
      throw thrown;
    }
  }

  /** The messages right behind one, oldest first: each begins a branch. `null`: those that begin a conversation. */
  getBranches(messageId: string | null): UIMessage[] {
    const rows = messageId === null ? this.#firsts() : messagesBehind(this.#ground.store, this.#find(messageId).seq);
    return this.#own(rows);
  }

  /** The versions of a message, itself included, oldest first: other answers to the same question, edits of it. */
  getSiblings(messageId: string): UIMessage[] {
    const { parent } = this.#find(messageId);
    return this.#own(parent === null ? this.#firsts() : messagesBehind(this.#ground.store, parent));
  }

  /** The newest message under one, always along what was said last. Without one: what was said last in the session. */
  getLatestLeaf(messageId?: string): UIMessage | undefined {
    const { store } = this.#ground;
    const seq = messageId === undefined ? this.#row.leaf : newestLeafIn(store, this.#row, this.#find(messageId).seq);
    const row = seq === null ? undefined : readMessageAt(store, seq);
    return row && toMessage(row);
  }

  /** How many messages there are up to `leafId`, by default to what was said last. */
  getPathLength(leafId?: string | null): number {
    const seq = this.#end(leafId);
    return seq === null ? 0 : pathLength(this.#ground.store, seq);
  }

  // Writing

  /**
   * Adds a message, by default at the session's end, which it then is. One that is there already is left as it is.
   * @param parentId the message behind which it goes; null: it begins a conversation.
   * @returns what is stored. @throws PerdureError `not_found` for the parent, `conflict` when `expect` does not hold or another
   * session has the id, `bad_state` when it would leave the branch of a turn under way.
   */
  appendMessage(message: UIMessage, parentId?: string | null, options: Pick<AppendOptions, "expect"> = {}): UIMessage {
    const where = parentId === undefined ? {} : { parentId };
    return this.appendMessages([message], { ...where, ...options })[0] ?? message;
  }

  /** The same for several, one behind the other: all of them, or none. */
  appendMessages(messages: readonly UIMessage[], { parentId, expect }: AppendOptions = {}): UIMessage[] {
    const ground = this.#ground;
    let named: ReturnType<typeof nameAfter>;
    const stored = ground.commit(() => {
      if (expect !== undefined && expect !== this.currentLeaf) throw overtaken(this.id, expect, this.currentLeaf);
      const transcript = ground.transcripts.of(this.id);
      const parent = parentId === undefined ? undefined : parentId === null ? null : this.#find(parentId).seq;
      const fresh = messages.filter(({ id }) => !this.#has(id));
      if (fresh.length > 0 && parent !== undefined && parent !== transcript.leaf) {
        refuseDuringTurns(ground.store, this.id);
        transcript.cutTo(parent);
      }
      for (const message of fresh) transcript.put(message);
      if (ground.derivesTitles()) named = nameAfter(ground.store, this.id, fresh, ground.store.clock.now());
      return messages.flatMap(({ id }) => transcript.get(id) ?? []);
    });
    ground.told({ kind: "changed", session: this.id });
    if (named !== undefined) {
      ground.store.emit("session:renamed", { ...named, by: "derived" });
      ground.told({ kind: "renamed", session: named.session });
    }
    return stored;
  }

  /**
   * Replaces a message's content in every session that shows it. Summaries that stand for it are taken back, since they may have
   * its words, unless `keepSummary`. @throws PerdureError `not_found`
   */
  updateMessage(message: UIMessage, { keepSummary = false }: { readonly keepSummary?: boolean } = {}): UIMessage {
    const ground = this.#ground;
    const stored = ground.commit(() => {
      this.#find(message.id);
      const transcript = ground.transcripts.of(this.id);
      return keepSummary ? transcript.put(message) : transcript.rewrite(message);
    });
    ground.told({ kind: "changed", session: this.id });
    return stored;
  }

  /**
   * Deletes messages for good in every session that shows them; what stood behind moves up. Summaries of them go too, unless
   * `keepSummary`, so the next request has none of their words. Their background tool calls stop, and session names made of their
   * words are taken back.
   */
  deleteMessages(ids: readonly string[], { keepSummary = false }: { readonly keepSummary?: boolean } = {}): void {
    const ground = this.#ground;
    const { store } = ground;
    const renamed = ground.commit(() => {
      const unnamed = new Set<string>();
      for (const id of ids) {
        const before = this.getMessage(id);
        if (before === undefined) continue;
        const { seq } = this.#find(id);
        if (!keepSummary) dropSummaries(store, { seq, id, reason: "deleted", before });
        for (const session of forgetNames(store, before, seq)) unnamed.add(session);
        ground.transcripts.of(this.id).remove(id);
        ground.deleted?.(id);
      }
      deleteStrayCompactions(store);
      const anew = (session: string) =>
        ground.derivesTitles() ? nameAnew(store, session, store.clock.now()) : undefined;
      return [...unnamed].map((session) => ({ session, named: anew(session) }));
    });
    ground.told({ kind: "changed", session: this.id });
    for (const { session, named } of renamed) {
      if (named !== undefined) store.emit("session:renamed", { ...named, by: "derived" });
      ground.told({ kind: "renamed", session });
    }
  }

  /** Deletes what was said here, but for what other sessions show, and stops its turns. */
  clearMessages(): void {
    clearSession(this.#ground, this.id);
  }

  // Branches

  /**
   * Switches branch: the session then ends with the newest message under this one, unless it already shows it. @returns the id of
   * its last message. @throws PerdureError `not_found`, `bad_state` while a turn of it is under way.
   */
  switchBranch(messageId: string): string {
    const ground = this.#ground;
    const { seq } = this.#find(messageId);
    const { leaf } = this.#row;
    if (leaf === null || !standsAbove(ground.store, seq, leaf)) {
      refuseDuringTurns(ground.store, this.id);
      const end = settledEnd(ground, newestLeafIn(ground.store, this.#row, seq), seq);
      ground.commit(() => ground.transcripts.of(this.id).cutTo(end));
      ground.told({ kind: "branch", session: this.id });
    }
    return this.currentLeaf ?? messageId;
  }

  /** A session of its own that has all of this one, up to a message. It costs the same however long that is. */
  fork(options: ForkOptions = {}): Session {
    return this.#sessions.of(forkSession(this.#ground, this.id, options));
  }

  // Pins

  /** The model reads this message word by word, also when a summary stands for those around it. */
  pin(messageId: string): void {
    this.#setPinned(messageId, true);
  }

  unpin(messageId: string): void {
    this.#setPinned(messageId, false);
  }

  isPinned(messageId: string): boolean {
    return isPinned(this.#find(messageId));
  }

  rename(name: string): void {
    renameSession(this.#ground, this.id, name);
  }

  // What `configureSession` says

  /** Declares a context block. @throws PerdureError `bad_config` */
  withContext(label: string, options?: ContextOptions): this {
    this.blocks.withContext(label, options);
    return this;
  }

  /** The text of the context blocks is made once and stays as it is until {@link Session.refreshSystemPrompt}. */
  withCachedPrompt(): this {
    this.blocks.withCachedPrompt();
    return this;
  }

  /** The app's own way to compact, instead of Perdure's summaries. */
  onCompaction(compact: CompactFunction): this {
    return this.#set({ compact });
  }

  /** Compact after a turn that leaves more tokens than this. Default: by the model's limits. @throws PerdureError `bad_config` */
  compactAfter(tokens: number, { tokenCounter }: { readonly tokenCounter?: TokenCounter } = {}): this {
    if (!(Number.isFinite(tokens) && tokens > 0))
      throw new PerdureError("bad_config", `compactAfter() takes a number of tokens, not ${String(tokens)}.`);
    return this.#set({ compactAfter: tokens, ...(tokenCounter !== undefined && { tokenCounter }) });
  }

  /** The model may search what was said: in this session, or everywhere in the agent. */
  withSearch(scope: "session" | "agent" = "session"): this {
    return this.#set({ searchScope: scope });
  }

  /** What was said so. */
  get settings(): SessionSettings {
    return this.#ownerSession?.settings ?? this.#settings;
  }

  // Context blocks

  /** The context blocks of the session; a view has those of its session. */
  get blocks(): ContextBlocks {
    if (this.#ownerSession !== undefined) return this.#ownerSession.blocks;
    const { store, countTokens } = this.#ground;
    const failed = (error: unknown) => this.#ground.failed(error);
    return (this.#blocks ??= new ContextBlocks(store, { session: this.id, countTokens, failed }));
  }

  /** Adds a block: without a provider for good, with one for this life. */
  async addContext(label: string, options?: ContextOptions): Promise<ContextBlock> {
    await this.#configured();
    return this.blocks.addContext(label, options);
  }

  /** Takes a block away, for good. What it holds stays unless it is erased. @returns whether there was one. */
  removeContext(label: string, options?: { readonly erase?: boolean }): boolean {
    return this.blocks.removeContext(label, options);
  }

  getContextBlock(label: string): ContextBlock | undefined {
    return this.blocks.getContextBlock(label);
  }

  getContextBlocks(): ContextBlock[] {
    return this.blocks.getContextBlocks();
  }

  async replaceContextBlock(label: string, content: string): Promise<ContextBlock> {
    await this.#configured();
    return this.blocks.replaceContextBlock(label, content);
  }

  async appendContextBlock(label: string, content: string): Promise<ContextBlock> {
    await this.#configured();
    return this.blocks.appendContextBlock(label, content);
  }

  /** Writes the text behind a key of a block that has keys. */
  async setContextEntry(label: string, key: string, content: string, description?: string): Promise<void> {
    await this.#configured();
    return this.blocks.setContextEntry(label, key, content, description);
  }

  /** The text of the blocks as the model reads it. */
  async systemPrompt(): Promise<string> {
    await this.#configured();
    return this.blocks.systemPrompt();
  }

  async freezeSystemPrompt(): Promise<string> {
    await this.#configured();
    return this.blocks.freezeSystemPrompt();
  }

  /** Makes the text of the blocks anew. Until then a cached prompt is what it was. */
  async refreshSystemPrompt(): Promise<string> {
    await this.#configured();
    return this.blocks.refreshSystemPrompt();
  }

  /** Tools by which a model writes to the blocks, loads from them and searches them. */
  tools(): ToolSet {
    return this.blocks.tools();
  }

  #set(settings: SessionSettings): this {
    this.#settings = { ...this.#settings, ...settings };
    return this;
  }

  /** Of a view: its session, which has all of this. */
  get #ownerSession(): Session | undefined {
    return this.#owner === this.id ? undefined : this.#sessions.of(this.#owner);
  }

  /** What the app configures has run. */
  #configured(): Promise<void> {
    return this.#sessions.configured(this.#owner);
  }

  get #row(): SessionLine {
    return findSession(this.#ground, this.id);
  }

  #end(leafId: string | null | undefined): number | null {
    return leafId === undefined || leafId === null ? this.#row.leaf : this.#find(leafId).seq;
  }

  #setPinned(messageId: string, pinned: boolean): void {
    const ground = this.#ground;
    ground.commit(() => pinMessage(ground.store, this.#find(messageId), pinned));
    ground.transcripts.reload();
    ground.told({ kind: "changed", session: this.id });
  }

  #find(messageId: string): MessageRow {
    return findMessage(this.#ground, this.#row, messageId);
  }

  /** @throws PerdureError `conflict` when another session has a message of this id. */
  #has(id: string): boolean {
    if (this.#ground.store.blank || readMessage(this.#ground.store, id) === undefined) return false;
    if (this.getMessage(id) !== undefined) return true;
    throw new PerdureError("conflict", `Another session has a message with the id "${id}". Use a different id.`);
  }

  /** What a fork goes on to say is not a branch of the session that it came from, nor the other way round. */
  #own(rows: readonly MessageRow[]): UIMessage[] {
    const session = this.#row;
    const own = rows.filter((row) => hasMessage(this.#ground.store, session, row));
    return own.flatMap((row) => toMessage(row) ?? []);
  }

  #firsts(): MessageRow[] {
    const { leaf, forkAt } = this.#row;
    const tops = [leaf, forkAt].flatMap((seq) => (seq === null ? [] : (this.#topOf(seq) ?? [])));
    const all = [...firstMessages(this.#ground.store, this.#owner), ...tops];
    return [...new Map(all.map((row) => [row.seq, row])).values()].sort((a, b) => a.seq - b.seq);
  }

  #topOf(leaf: number): MessageRow | undefined {
    let at = leaf;
    for (;;) {
      const page = placesUp(this.#ground.store, at, PAGE);
      const top = page.at(-1);
      if (top === undefined || top.parent === null) return top && readMessageAt(this.#ground.store, top.seq);
      at = top.parent;
    }
  }
}

/** A row that cannot be read is shown to nobody. */
function toMessage(row: MessageRow): UIMessage | undefined {
  const entry = toEntry(row);
  return isReadable(entry) ? entry.message : undefined;
}

function overtaken(session: string, expect: string | null, found: string | null): PerdureError {
  return new PerdureError(
    "conflict",
    `Somebody else wrote to the session "${session}": it ends with ${found ?? "nothing"}, not with ` +
      `${expect ?? "nothing"}. Read it again, then decide.`,
  );
}

/** Whether a message is shown to the model whatever is compacted. */
function isPinned({ pinned }: Pick<MessageRow, "pinned">): boolean {
  return pinned === 1;
}

/** Pins or unpins a message, in the caller's transaction, and tells the summaries that cover it. */
function pinMessage(db: Sql & DamageTeller, { seq, pinned: before }: MessageRow, pinned: boolean): void {
  if ((before === 1) === pinned) return;
  setPinned(db, seq, pinned);
  for (const place of compactionPlaces(db)) {
    const pins = pinsOf(db, place)?.filter((one) => one !== seq);
    if (pins === undefined) continue;
    if (pinned && isCovered(db, seq, place)) pins.push(seq);
    setCompactionPins(
      db,
      place.seq,
      pins.toSorted((a, b) => a - b),
    );
  }
}

/** Of a message that was split the rest is shown anyway. */
function isCovered(db: Sql, seq: number, place: Pick<CompactionRow, "seq" | "at">): boolean {
  if (seq === place.at) return readCompactionAt(db, place.seq)?.parts === null;
  return standsAbove(db, seq, place.at);
}

/** What an app's own compaction says. `null`: leave it as it is. */
export type OwnSummary = string | { readonly summary: string; readonly toMessageId?: string } | null | undefined;

/**
 * An app's own compaction. Gets the messages shown now, the summary so far first, and says what the model reads instead, up to a
 * message it names or to Perdure's own cut. May be slow; a throw fails the compaction.
 */
export type CompactFunction = (
  messages: readonly UIMessage[],
  context: { readonly focus: string | undefined; readonly signal: AbortSignal },
) => OwnSummary | Promise<OwnSummary>;

/** Counts the tokens of what the model would read. Must be quick; an invalid number counts as 0. */
export type TokenCounter = (messages: readonly UIMessage[], system: string) => number | Promise<number>;

/** What a session was told about itself by the code that configures it. */
export interface SessionSettings {
  /** Compact after a turn that leaves more tokens than this. */
  readonly compactAfter?: number;
  readonly tokenCounter?: TokenCounter;
  readonly compact?: CompactFunction;
  /** What the model may search: its own session, or all of the agent. Undefined: Perdure decides. */
  readonly searchScope?: "session" | "agent";
}
