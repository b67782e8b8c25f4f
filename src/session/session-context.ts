import type { UIMessage } from "../message/types.ts";
import type { ToolSet } from "ai";
import { PerdureError } from "../base/error.ts";
import type { ContextOptions } from "../memory/definition.ts";
import type { CountTokens } from "../memory/render.ts";
import { type ContextBlock, ContextBlocks } from "../memory/context-blocks.ts";
import type { SessionStore } from "../store/session-store.ts";

/** What an app's own compaction says. `null`: leave it as it is. */
export type OwnSummary = string | { readonly summary: string; readonly toMessageId?: string } | null | undefined;

/**
 * An app's own compaction. It gets the messages that are shown now, the summary so far first, and says what the model
 * should read instead of the older ones: up to a message that it names, or up to where Perdure would cut. May be slow;
 * what it throws is a compaction that failed.
 */
export type CompactFunction = (
  messages: readonly UIMessage[],
  context: { readonly focus: string | undefined; readonly signal: AbortSignal },
) => OwnSummary | Promise<OwnSummary>;

/** Counts the tokens of what the model would read. Must be quick; a number that is none counts as 0. */
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

/** Where the context of a session is kept. */
interface ContextHome {
  readonly store: SessionStore;
  /** Whose blocks they are. */
  readonly session: string;
  /** Default: four characters are a token. */
  readonly countTokens: CountTokens | undefined;
  /** Of a view: its session, which has all of this. */
  owner(): SessionContext | undefined;
  /** What the app configures has run. */
  configured(): Promise<void>;
  /** Something failed that no caller waits for. Must not throw. */
  failed(error: unknown): void;
}

/** What a session has beside its messages: context blocks, and what the app configured. */
export class SessionContext {
  readonly #home: ContextHome;
  #blocks: ContextBlocks | undefined;
  #settings: SessionSettings = {};

  constructor(home: ContextHome) {
    this.#home = home;
  }

  // What `configureSession` says

  /** Declares a context block. @throws PerdureError `bad_config` */
  withContext(label: string, options?: ContextOptions): this {
    this.blocks.withContext(label, options);
    return this;
  }

  /** The text of the context blocks is made once and stays as it is until {@link SessionContext.refreshSystemPrompt}. */
  withCachedPrompt(): this {
    this.blocks.withCachedPrompt();
    return this;
  }

  /** The app's own way to compact, instead of Perdure's summaries. */
  onCompaction(compact: CompactFunction): this {
    return this.#set({ compact });
  }

  /**
   * Compact when a turn has ended and the model would read more than this. Without it, Perdure knows by the limits of
   * the model. @throws PerdureError `bad_config`
   */
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
    return this.#home.owner()?.settings ?? this.#settings;
  }

  // Context blocks

  /** The context blocks of the session; a view has those of its session. */
  get blocks(): ContextBlocks {
    const owner = this.#home.owner();
    if (owner !== undefined) return owner.blocks;
    const { store, session, countTokens } = this.#home;
    const failed = (error: unknown) => this.#home.failed(error);
    return (this.#blocks ??= new ContextBlocks(store, { session, countTokens, failed }));
  }

  /** Adds a block: without a provider for good, with one for this life. */
  async addContext(label: string, options?: ContextOptions): Promise<ContextBlock> {
    await this.#home.configured();
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
    await this.#home.configured();
    return this.blocks.replaceContextBlock(label, content);
  }

  async appendContextBlock(label: string, content: string): Promise<ContextBlock> {
    await this.#home.configured();
    return this.blocks.appendContextBlock(label, content);
  }

  /** Writes the text behind a key of a block that has keys. */
  async setContextEntry(label: string, key: string, content: string, description?: string): Promise<void> {
    await this.#home.configured();
    return this.blocks.setContextEntry(label, key, content, description);
  }

  /** The text of the blocks as the model reads it. */
  async systemPrompt(): Promise<string> {
    await this.#home.configured();
    return this.blocks.systemPrompt();
  }

  async freezeSystemPrompt(): Promise<string> {
    await this.#home.configured();
    return this.blocks.freezeSystemPrompt();
  }

  /** Makes the text of the blocks anew. Until then a cached prompt is what it was. */
  async refreshSystemPrompt(): Promise<string> {
    await this.#home.configured();
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
}
