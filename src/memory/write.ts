import { PerdureError } from "../base/error.ts";
import { InOrderByKey } from "../base/in-order.ts";
import type { SessionStore } from "../store/session-store.ts";
import { askProvider, textFrom, WORK_MS } from "./ask-provider.ts";
import { type Definition, isKeyed, MAX_CONTENT_CHARS } from "./definition.ts";
import { cellOf } from "./keys.ts";
import type { CountTokens } from "./render.ts";
import type { Source } from "./provider.ts";
import type { StoredEntries } from "./stored-entries.ts";
import { changeText } from "./stored-text.ts";

/** Where the blocks of a session live. */
export interface BlockStore {
  readonly host: SessionStore;
  readonly session: string;
  readonly count: CountTokens;
}

/** What is to be written. */
export interface BlockWrite {
  readonly content: string;
  readonly action: "replace" | "append";
  /** Of the entry, in a block that has keys. */
  readonly key?: string;
  readonly description?: string;
  /** The same name again does not write again, where the agent stores the text itself. */
  readonly call?: string;
}

const MAX_KEY_LENGTH = 512;

/** Who writes to a block's provider waits for the one before: nothing is lost between its `get` and its `set`. */
const writers = new WeakMap<SessionStore, InOrderByKey<string>>();

/**
 * Writes to a block, and to its provider if it has one. When it rejects nothing is written, unless the provider failed.
 * @returns the block's whole text now; undefined for one with keys
 * @throws PerdureError `read_only`, `bad_input`, `limit`, `provider_failed`, `timeout`
 */
export async function writeBlock(
  store: BlockStore,
  definition: Definition,
  write: BlockWrite,
): Promise<string | undefined> {
  const { label, source } = definition;
  if (definition.entries !== undefined) return changeEntry(definition, definition.entries, write);
  if (isKeyed(definition)) return inTurn(store.host, label, () => writeEntry(store, definition, write));
  if (write.key !== undefined) {
    throw new PerdureError("bad_input", `The block "${label}" is one text without keys. Leave "key" out.`);
  }
  if (source !== undefined) return inTurn(store.host, label, () => writeSource(store, definition, source, write));
  const key = cellOf.block(label, definition.shared ? undefined : store.session);
  const change = (before: string = definition.initial) => checked(store, definition, joined(before, write));
  return changeText(store.host, key, change, write.call);
}

/** Runs `work` when all that came before for this block has ended. */
function inTurn<T>(host: SessionStore, label: string, work: () => Promise<T>): Promise<T> {
  let labels = writers.get(host);
  if (labels === undefined) writers.set(host, (labels = new InOrderByKey()));
  return labels.run(label, work);
}

async function writeSource(
  store: BlockStore,
  definition: Definition,
  source: Source,
  write: BlockWrite,
): Promise<string | undefined> {
  const { set } = source;
  const { label } = definition;
  if (set === undefined) throw readOnly(label);
  const { clock } = store.host;
  const reading = `Reading the block "${label}", to add to it,`;
  const before =
    write.action === "append" ? textFrom(reading, await askProvider(clock, WORK_MS, reading, () => source.get())) : "";
  const content = checked(store, definition, joined(before, write));
  await askProvider(clock, WORK_MS, `Writing the block "${label}"`, () => set(content));
  return content;
}

function changeEntry({ label }: Definition, entries: StoredEntries, write: BlockWrite): undefined {
  const key = checkKey(label, write.key);
  entries.change(key, (before = "") => checkLength(label, joined(before, write)), write);
}

async function writeEntry(store: BlockStore, definition: Definition, write: BlockWrite): Promise<undefined> {
  const { label, source } = definition;
  if (source?.setEntry === undefined) throw readOnly(label);
  const { load, setEntry } = source;
  const key = checkKey(label, write.key);
  const { clock } = store.host;
  let before = "";
  if (write.action === "append") {
    if (load === undefined) {
      throw new PerdureError("bad_input", `Entries of the block "${label}" are written whole: use "replace".`);
    }
    const reading = `Reading ${JSON.stringify(key)} of the block "${label}", to add to it,`;
    before = textFrom(reading, await askProvider(clock, WORK_MS, reading, () => load(key)));
  }
  const content = checkLength(label, joined(before, write));
  const writing = `Writing ${JSON.stringify(key)} of the block "${label}"`;
  await askProvider(clock, WORK_MS, writing, () => setEntry(key, content, write.description));
}

/** @throws PerdureError `bad_input` for what cannot be a key */
export function checkKey(label: string, key: string | undefined): string {
  if (key !== undefined && key !== "" && key.length <= MAX_KEY_LENGTH) return key.toWellFormed();
  throw new PerdureError(
    "bad_input",
    `The block "${label}" has keys: name the entry with "key", in at most ${MAX_KEY_LENGTH} characters.`,
  );
}

function joined(before: string, { action, content }: BlockWrite): string {
  const text = content.toWellFormed();
  if (action === "replace" || before === "") return text;
  return before.endsWith("\n") ? before + text : `${before}\n${text}`;
}

function checked({ count }: BlockStore, { label, maxTokens }: Definition, content: string): string {
  checkLength(label, content);
  const tokens = count(content);
  if (maxTokens === undefined || tokens <= maxTokens) return content;
  throw new PerdureError(
    "limit",
    `Nothing was written: the block "${label}" would have about ${tokens} tokens, and the limit is ${maxTokens}. ` +
      `Replace it with a text that is about ${tokens - maxTokens} tokens shorter.`,
  );
}

function checkLength(label: string, content: string): string {
  if (content.length <= MAX_CONTENT_CHARS) return content;
  throw new PerdureError(
    "limit",
    `Nothing was written: this would have ${content.length} characters, and the block "${label}" ` +
      `takes ${MAX_CONTENT_CHARS}. Write less.`,
  );
}

function readOnly(label: string): PerdureError {
  return new PerdureError("read_only", `The block "${label}" is read-only.`);
}
