import type { ToolSet } from "ai";
import { PerdureError } from "../base/error.ts";
import type { SessionStore } from "../store/session-store.ts";
import { deleteCell, readCell } from "../store/cell.ts";
import { type BlockChanges, readChanges, writeChanges } from "./changes.ts";
import { type ContextOptions, define, type Definition, isKeyed, isWritable, kindOf, MAX_BLOCKS } from "./definition.ts";
import { fingerprint, readFrozen, writeFrozen } from "./frozen.ts";
import { cellOf } from "./keys.ts";
import type { ContextKind } from "./provider.ts";
import { readSources, rememberSource } from "./read-sources.ts";
import { countByChars, type CountTokens, renderBlocks } from "./render.ts";
import { storedEntries } from "./stored-entries.ts";
import { readText } from "./stored-text.ts";
import { contextTools, type ToolBlocks } from "./tools.ts";
import { type BlockWrite, writeBlock } from "./write.ts";

/** What the blocks of a session are told. */
interface ContextBlocksOptions {
  /** Whose blocks: the id of a session. */
  readonly session: string;
  /** Default: four characters are a token. */
  readonly countTokens?: CountTokens;
  /** Hears of providers that could not be read. Must not throw. */
  readonly failed?: (error: unknown) => void;
}

/** A context block as it is now. */
export interface ContextBlock {
  readonly label: string;
  readonly description: string | undefined;
  readonly kind: ContextKind;
  /** What it holds; of a block with a provider, what that gave last. */
  readonly content: string;
  readonly tokens: number;
  readonly maxTokens: number | undefined;
  /** Whether the model may write to it. */
  readonly writable: boolean;
  readonly shared: boolean;
}

/**
 * The context blocks of one session: texts beside the conversation that the model reads with every request and, by their kind,
 * may write, load from and search. What the agent stores itself is in rows: whoever writes, in whatever session, nothing is lost.
 *
 * Their text is part of the prompt. {@link ContextBlocks.withCachedPrompt} keeps it byte for byte, across restarts, until {@link
 * ContextBlocks.refreshSystemPrompt}.
 */
export class ContextBlocks {
  readonly #host: SessionStore;
  readonly #session: string;
  readonly #count: CountTokens;
  readonly #failed: (error: unknown) => void;
  readonly #blocks: ToolBlocks;
  /** Those of the code, by label. */
  readonly #declared = new Map<string, Definition>();
  /** Those that were added with a provider. A provider cannot be stored: they end with this life. */
  readonly #added = new Map<string, Definition>();
  #cached = false;

  constructor(host: SessionStore, options: ContextBlocksOptions) {
    const { session, countTokens = countByChars, failed = () => {} } = options;
    this.#host = host;
    this.#session = session;
    this.#count = countTokens;
    this.#failed = failed;
    this.#blocks = {
      ...{ host, session, count: countTokens },
      definitions: () => this.#definitions(),
      write: async (definition, write) => this.#told(definition, await this.#write(definition, write)),
    };
  }

  // Declaring

  /** Declares a block. For code that runs at every start. @throws PerdureError `bad_config` */
  withContext(label: string, options?: ContextOptions): this {
    const definition = this.#define(label, options);
    if (this.#declared.has(label)) {
      throw new PerdureError("bad_config", `The context block "${label}" is declared twice. Give one another name.`);
    }
    if (this.#declared.size >= MAX_BLOCKS) throw tooMany("bad_config");
    this.#declared.set(label, definition);
    return this;
  }

  /** Freezes the blocks' text, across restarts and writes, until a refresh or until the code declares other blocks. */
  withCachedPrompt(): this {
    this.#cached = true;
    return this;
  }

  // At run time

  /** How many blocks there are. */
  get size(): number {
    return this.#definitions().length;
  }

  /** Whether the model can write to something that the agent does not store itself. */
  get writesElsewhere(): boolean {
    return this.#definitions().some(
      (definition) => definition.source !== undefined && definition.entries === undefined && isWritable(definition),
    );
  }

  /**
   * Adds or redeclares a block. One with a provider must be added again after a restart; a frozen prompt shows it after the next
   * refresh. @throws PerdureError `bad_config`, `limit`
   */
  async addContext(label: string, options: ContextOptions = {}): Promise<ContextBlock> {
    const definition = this.#define(label, options);
    const known = this.#definitions();
    if (known.length >= MAX_BLOCKS && !known.some((one) => one.label === label)) throw tooMany("limit");
    const { provider, ...stored } = options;
    this.#change(({ added, removed }) => ({
      added: [...added.filter((one) => one.label !== label), ...(provider === undefined ? [{ label, ...stored }] : [])],
      removed: removed.filter((one) => one !== label),
    }));
    if (provider === undefined) this.#added.delete(label);
    else this.#added.set(label, definition);
    await this.#read([definition]);
    await this.#host.durable();
    return this.#blockOf(definition);
  }

  /**
   * Takes a block away, also a declared one, until it is added again. What it holds stays stored unless `erase` is set. A frozen
   * prompt shows it until the next refresh. @returns whether it was there
   */
  removeContext(label: string, options: { readonly erase?: boolean } = {}): boolean {
    const definition = this.#find(label);
    if (definition === undefined) return false;
    this.#host.tx(() => {
      this.#change(({ added, removed }) => ({
        added: added.filter((one) => one.label !== label),
        removed: this.#declared.has(label) ? [...removed.filter((one) => one !== label), label] : removed,
      }));
      if (options.erase !== true) return;
      deleteCell(this.#host, this.#cellOf(definition));
      definition.entries?.erase();
    });
    this.#added.delete(label);
    return true;
  }

  /** A block as it is now; undefined when there is none of that name. */
  getContextBlock(label: string): ContextBlock | undefined {
    const definition = this.#find(label);
    return definition && this.#blockOf(definition);
  }

  /** Whether code has declared a block, or added it with a provider. Others were added with nothing but a label. */
  isOfCode(label: string): boolean {
    return this.#declared.has(label) || this.#added.has(label);
  }

  /** All blocks, those of the code first. */
  getContextBlocks(): ContextBlock[] {
    return this.#definitions().map((definition) => this.#blockOf(definition));
  }

  /**
   * Gives a block another text, whole. A frozen prompt does not change by it.
   * @throws PerdureError `not_found`, `read_only`, `bad_input`, `limit`, `provider_failed`, `timeout`
   */
  async replaceContextBlock(label: string, content: string): Promise<ContextBlock> {
    return this.#writeFromCode(label, { content, action: "replace" });
  }

  /** Adds to the text of a block, on a new line. As {@link ContextBlocks.replaceContextBlock}. */
  async appendContextBlock(label: string, content: string): Promise<ContextBlock> {
    return this.#writeFromCode(label, { content, action: "append" });
  }

  /** Writes the text behind a key; an empty one removes a stored key. @throws as {@link ContextBlocks.replaceContextBlock} */
  async setContextEntry(label: string, key: string, content: string, description?: string): Promise<void> {
    const definition = this.#known(label);
    if (!isKeyed(definition)) {
      throw new PerdureError("bad_input", `The block "${label}" has no keys. Use replaceContextBlock().`);
    }
    await this.#write(definition, { content, action: "replace", key, description });
    await this.#host.durable();
  }

  // The prompt

  /**
   * The text of all blocks for the model: the frozen one, else made from what they hold. Empty without blocks. A provider that
   * fails or takes too long is reported; its block stays as it was read last.
   */
  async systemPrompt(): Promise<string> {
    const frozen = this.#cached ? this.#frozen() : undefined;
    if (frozen !== undefined) return frozen;
    if (this.size === 0) return "";
    return this.#make((text) => {
      // Another may have frozen it while the providers were read.
      const earlier = this.#cached ? this.#frozen() : undefined;
      if (earlier === undefined && this.#cached) this.#freeze(text);
      return earlier ?? text;
    });
  }

  /** From now on, and in this life, as with {@link ContextBlocks.withCachedPrompt}. @returns the frozen text */
  async freezeSystemPrompt(): Promise<string> {
    this.#cached = true;
    return this.systemPrompt();
  }

  /** Makes the text anew from what the blocks hold now, and freezes that if it is to be frozen. @returns the text */
  async refreshSystemPrompt(): Promise<string> {
    return this.#make((text) => {
      if (this.#cached) this.#freeze(text);
      return text;
    });
  }

  /** Tools of the AI SDK with which a model uses the blocks: those that some block has use for. */
  tools(): ToolSet {
    return contextTools(this.#blocks);
  }

  async #make(use: (text: string) => string): Promise<string> {
    await this.#read(this.#definitions());
    // No waiting from here on: what is written meanwhile is either in it, or comes after it.
    const blocks = this.#definitions().map((definition) => ({ definition, content: this.#contentOf(definition) }));
    return use(renderBlocks(blocks, this.#count, this.#cached));
  }

  #frozen(): string | undefined {
    return readFrozen(this.#host, this.#session, fingerprint(this.#declared.values()));
  }

  #freeze(text: string): void {
    writeFrozen(this.#host, this.#session, fingerprint(this.#declared.values()), text);
  }

  #read(definitions: readonly Definition[]): Promise<void> {
    return readSources(this.#host, this.#session, definitions, this.#failed);
  }

  async #writeFromCode(label: string, write: BlockWrite): Promise<ContextBlock> {
    const definition = this.#known(label);
    if (isKeyed(definition)) {
      throw new PerdureError("bad_input", `The block "${label}" has keys. Use setContextEntry().`);
    }
    await this.#write(definition, write);
    await this.#host.durable();
    return this.#blockOf(definition);
  }

  async #write(definition: Definition, write: BlockWrite): Promise<string | undefined> {
    const { label, source } = definition;
    const content = await writeBlock(this.#blocks, definition, write);
    if (source !== undefined && content !== undefined) rememberSource(this.#host, this.#session, label, content);
    return content;
  }

  #told({ label, maxTokens }: Definition, content: string | undefined): string {
    if (content === undefined) return `Written to the block "${label}".`;
    const tokens = this.#count(content);
    const used = maxTokens === undefined ? "" : ` of ${maxTokens} (${Math.round((tokens / maxTokens) * 100)}%)`;
    return `Written. The block "${label}" has about ${tokens}${used} tokens now.`;
  }

  #blockOf(definition: Definition): ContextBlock {
    const { label, description, maxTokens, shared } = definition;
    const content = this.#contentOf(definition) ?? "";
    const tokens = this.#count(content);
    const writable = isWritable(definition);
    return { label, description, kind: kindOf(definition), content, tokens, maxTokens, writable, shared };
  }

  #contentOf(definition: Definition): string | undefined {
    // What is stored here needs no reading.
    if (definition.entries !== undefined) return definition.entries.get();
    const key = this.#cellOf(definition);
    return definition.source === undefined ? (readText(this.#host, key) ?? definition.initial) : this.#cell(key);
  }

  #cellOf({ label, shared, source }: Definition): string {
    if (source !== undefined) return cellOf.source(label, this.#session);
    return cellOf.block(label, shared ? undefined : this.#session);
  }

  #cell(key: string): string | undefined {
    return this.#host.blank ? undefined : readCell(this.#host, key);
  }

  #known(label: string): Definition {
    const definition = this.#find(label);
    if (definition !== undefined) return definition;
    throw new PerdureError("not_found", `There is no context block "${label}". Add it with addContext() first.`);
  }

  #define(label: string, options: ContextOptions = {}): Definition {
    return define(label, options, (name, shared) =>
      storedEntries(this.#host, name, shared ? undefined : this.#session),
    );
  }

  #find(label: string): Definition | undefined {
    return this.#definitions().find((definition) => definition.label === label);
  }

  #definitions(): Definition[] {
    const all = new Map(this.#declared);
    const { added, removed } = readChanges(this.#host, this.#session);
    for (const { label, ...options } of added) all.set(label, this.#define(label, options));
    for (const [label, definition] of this.#added) all.set(label, definition);
    for (const label of removed) all.delete(label);
    return [...all.values()];
  }

  #change(change: (changes: BlockChanges) => BlockChanges): void {
    this.#host.tx(() => {
      const before = readChanges(this.#host, this.#session);
      writeChanges(this.#host, this.#session, before, change(before));
    });
  }
}

function tooMany(code: "bad_config" | "limit"): PerdureError {
  return new PerdureError(code, `A session has at most ${MAX_BLOCKS} context blocks. Put several texts into one.`);
}
