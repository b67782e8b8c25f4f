import { cutMiddle, hasMoreLines } from "../message/cut-middle.ts";
import { type Cutting, cutValue } from "../message/cut-value.ts";
import { isRecord } from "../base/json.ts";
import type { ToolOptions } from "./define.ts";
import { isMediaMark, type Media, putMedia, takeMedia } from "./media.ts";

/** Errors of calls go to the model with every later request, so that more of one would cost more than it helps. */
export const MAX_ERROR_BYTES = 6_000;

/** Media of one output beyond this are left out whole: a message has to fit into a row. */
export const MAX_MEDIA_CHARS = 1_000_000;

/** How much of an output is kept in the conversation. */
export type OutputLimits = Pick<ToolOptions, "maxOutputLines" | "maxOutputChars">;

/** Stores a text; resolves to a name by which the model finds it. `undefined` or a rejection: not stored. May be slow. */
export type KeepText = (text: string) => Promise<string | undefined>;

/**
 * Bounds a tool's output (plain JSON), once, when it is produced. Long texts at any depth lose their middle, oversized lists and
 * objects their last items; the rest keeps its shape. A note says how much is missing and where the whole was kept. Media do not
 * count: kept or left out whole. Never rejects: what could not be kept is cut all the same, and says so.
 * @returns the same value when it is within the limits.
 */
export async function boundOutput(output: unknown, limits: OutputLimits, keep: KeepText): Promise<unknown> {
  const found = survey(output, limits);
  const whole = found.whole === undefined ? undefined : await tryKeep(keep, found.whole.text);
  const names: (string | undefined)[] = [];
  for (const media of found.oversized) names.push(await tryKeep(keep, media.text));
  return apply(found, limits, whole, names);
}

/** The same for an output that another will follow: nothing is kept. */
export function boundPreview(output: unknown, limits: OutputLimits): unknown {
  return apply(survey(output, limits), limits, undefined, []);
}

/** An output as it may stand in a text: pictures and other media are kept aside, and notes say where. */
export async function withoutMedia(output: unknown, keep: KeepText): Promise<unknown> {
  const { value, media } = takeMedia(output);
  const places = new Map<unknown, unknown>();
  for (const one of media) places.set(one.mark, noteOn(one, await tryKeep(keep, one.text), "left out of this text"));
  return media.length === 0 ? output : putMedia(value, places);
}

/** What has to be done with an output. */
interface Survey {
  readonly output: unknown;
  /** The output with marks in the places of its media. */
  readonly rest: unknown;
  readonly media: readonly Media[];
  readonly oversized: readonly Media[];
  /** What to keep, when the rest has to be cut. */
  readonly whole: { readonly text: string; readonly what: string } | undefined;
}

function survey(output: unknown, limits: OutputLimits): Survey {
  const { value: rest, media } = takeMedia(output);
  let room = MAX_MEDIA_CHARS;
  const oversized = media.filter(({ text }) => {
    if (text.length > room) return true;
    room -= text.length;
    return false;
  });
  return { output, rest, media, oversized, whole: wholeOf(output, rest, limits) };
}

/** What is kept: a long text as it is, so that it can be read line by line; anything else as JSON. */
function wholeOf(output: unknown, rest: unknown, limits: OutputLimits): Survey["whole"] {
  const { maxOutputChars } = limits;
  if (typeof rest === "string") return isLong(rest, limits) ? { text: rest, what: "text" } : undefined;
  const size = JSON.stringify(rest).length;
  const long = longTexts(rest, limits);
  if (size <= maxOutputChars && long.length === 0) return undefined;
  const [only, ...others] = long;
  // With this much besides it, nothing else will be cut.
  if (only !== undefined && others.length === 0 && size - JSON.stringify(only).length <= maxOutputChars / 2) {
    return { text: only, what: "text" };
  }
  return { text: JSON.stringify(output, null, 2), what: "output, as JSON," };
}

function apply(
  found: Survey,
  limits: OutputLimits,
  whole: string | undefined,
  names: readonly (string | undefined)[],
): unknown {
  const { output, rest, media, oversized } = found;
  if (found.whole === undefined && oversized.length === 0) return output;
  const where = whole === undefined ? "the rest was not kept" : `the whole ${found.whole?.what} is in ${whole}`;
  const bounded = found.whole === undefined ? rest : cut(rest, limits, where);
  const places = new Map<unknown, unknown>(media.map(({ mark, value }) => [mark, value]));
  for (const [index, one] of oversized.entries()) places.set(one.mark, noteOn(one, names[index]));
  return putMedia(bounded, places);
}

function cut(value: unknown, { maxOutputLines, maxOutputChars }: OutputLimits, where: string): unknown {
  const full = (chars: number, lines: number) =>
    `[… ${chars} characters${lines === 0 ? "" : ` (${lines} lines)`} left out; ${where} …]`;
  const short = (chars: number) => `[… ${chars} characters left out …]`;
  if (typeof value === "string") return cutMiddle(value, maxOutputLines, maxOutputChars, full);
  const inChars: Cutting = {
    size: (json) => json.length,
    text(text, room) {
      const json = JSON.stringify(text).length;
      // The marks of media are among the texts that are shorter than any note on them.
      const fits = json <= room || text.length <= short(text.length).length;
      if (fits && !hasMoreLines(text, maxOutputLines)) return text;
      // Quotes and line breaks take more room as JSON than they are long.
      const chars = Math.floor(Math.max(0, room - 2) * Math.min(1, text.length / (json - 2)));
      // A note that is longer than what stands around it helps nobody.
      const note = chars < 2 * full(text.length, text.length).length ? short : full;
      return cutMiddle(text, maxOutputLines, chars, note);
    },
    moreItems(count, list) {
      const note = `[… ${count} more items left out; ${where} …]`;
      return isPartList(list) ? { type: "text", text: note } : note;
    },
    moreFields: (count) => `[${count} more fields left out; ${where}]`,
  };
  return cutValue(value, maxOutputChars, inChars);
}

function noteOn(media: Media, name: string | undefined, why = "left out because it is too large"): unknown {
  const where = name === undefined ? "it was not kept" : `it is in ${name}`;
  const note = `[${media.mediaType}, ${media.text.length} characters, ${why}; ${where}]`;
  return isPart(media.value) ? { type: "text", text: note } : note;
}

/** Lists of parts (content for a model, MCP results) go to code that expects each item to be a part. */
function isPartList(list: readonly unknown[]): boolean {
  return list.length > 0 && list.every((item) => isPart(item) || isMediaMark(item));
}

function isPart(value: unknown): boolean {
  return isRecord(value) && typeof value.type === "string";
}

function isLong(text: string, { maxOutputLines, maxOutputChars }: OutputLimits): boolean {
  return text.length > maxOutputChars || hasMoreLines(text, maxOutputLines);
}

function longTexts(value: unknown, limits: OutputLimits): string[] {
  if (typeof value === "string") return isLong(value, limits) ? [value] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((item) => longTexts(item, limits));
}

async function tryKeep(keep: KeepText, text: string): Promise<string | undefined> {
  try {
    return await keep(text);
  } catch {
    return undefined;
  }
}
