import { firstChars } from "../message/cut-value.ts";
import { type Definition, isKeyed, isWritable, kindOf } from "./definition.ts";

/** About how many tokens a text has. Must be quick and must not throw. */
export type CountTokens = (text: string) => number;

/** Characters of a text per token, where nothing better is known. */
const CHARS_PER_TOKEN = 4;
const PERCENT = 100;

export const countByChars: CountTokens = (text) => Math.ceil(text.length / CHARS_PER_TOKEN);

/** A block and what it holds; undefined when its provider has never been read. */
interface FilledBlock {
  readonly definition: Definition;
  readonly content: string | undefined;
}

/** The blocks as the model reads them: same blocks, same bytes. `frozen`: it may be read when no longer true, and says so. */
export function renderBlocks(blocks: readonly FilledBlock[], count: CountTokens, frozen: boolean): string {
  if (blocks.length === 0) return "";
  const can = (what: (definition: Definition) => boolean) => blocks.some(({ definition }) => what(definition));
  const intro = ["These context blocks are kept for you beside the conversation."];
  if (can(isWritable)) intro.push("What you should still know later, write into a writable one with set_context.");
  if (can(({ source }) => source?.load !== undefined))
    intro.push("A loadable one lists keys: read what is behind a key with load_context, and unload it when done.");
  if (can(({ source }) => source?.search !== undefined))
    intro.push("A searchable one is looked through with search_context.");
  if (frozen && can(isWritable))
    intro.push("They are shown as they were earlier; what was written since stands in the results of those calls.");
  return [intro.join(" "), ...blocks.map((block) => renderBlock(block, count))].join("\n\n");
}

/** Whether a text that {@link renderBlocks} made has a block which the model cannot change: one that tells it something. */
export function saysWhoItIs(text: string): boolean {
  return /^<block name="[^"]*" kind="read-only"/m.test(text);
}

/** The blocks of a text that {@link renderBlocks} made, each as the model reads it. */
export function splitBlocks(text: string): { readonly label: string; readonly text: string }[] {
  const found = text.matchAll(/^<block name="([^"]*)"[^]*?^<\/block>$/gm);
  return [...found].map(([whole, label = ""]) => ({ label, text: whole }));
}

function renderBlock({ definition, content }: FilledBlock, count: CountTokens): string {
  const { label, description, maxTokens, source } = definition;
  const head = [`name="${label}"`, `kind="${kindText(definition)}"`];
  if (description !== undefined && description !== "") head.push(`about="${oneLine(description)}"`);
  if (maxTokens !== undefined) {
    const used = Math.round((count(content ?? "") / maxTokens) * PERCENT);
    head.push(`used="${used}% of ${maxTokens} tokens"`);
  }
  // A text that the model would write back is never cut: what it did not see would be lost.
  const shown = source !== undefined && source.set === undefined ? cutTo(content ?? "", maxTokens, count) : content;
  const text = content === undefined ? "(could not be read yet)" : shown === "" ? "(empty)" : shown;
  return `<block ${head.join(" ")}>\n${harmless(text ?? "")}\n</block>`;
}

function kindText(definition: Definition): string {
  const kinds: string[] = [kindOf(definition)];
  const { source } = definition;
  if (source?.load !== undefined && source.search !== undefined) kinds.push("searchable");
  if (isKeyed(definition) && isWritable(definition)) kinds.push("writable");
  return kinds.join(", ");
}

/** No text may look as if it ended its block and began another. */
function harmless(text: string): string {
  return text.replaceAll(/<(?=\/?block\b)/gi, "&lt;");
}

function oneLine(text: string): string {
  return harmless(text.replaceAll(/\s+/g, " ").replaceAll('"', "'").trim());
}

/** The beginning of a text, as much as is allowed, with a note on how much is missing. */
function cutTo(text: string, maxTokens: number | undefined, count: CountTokens): string {
  const tokens = count(text);
  if (maxTokens === undefined || tokens <= maxTokens) return text;
  let kept = text;
  for (let now = tokens; now > maxTokens && kept !== ""; now = count(kept)) {
    kept = firstChars(kept, Math.min(kept.length - 1, Math.floor((kept.length * maxTokens) / now)));
  }
  return `${kept}\n[Cut here: the whole has about ${tokens} tokens, and ${maxTokens} are allowed.]`;
}
