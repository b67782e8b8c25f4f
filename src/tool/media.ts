import { isRecord } from "../base/json.ts";

/** Shorter texts are never taken for base64: words without spaces look the same. */
const MIN_BASE64 = 1_000;

const dataUrl = /^data:[\w.+-]+\/[\w.+-]+[;,]/;
const notBase64 = /[^A-Za-z0-9+/=_-]/;
const mediaMark = /^\ue000media \d{1,9}\ue000$/;
/** Real bytes use all of these; long runs of one letter, hex and most identifiers do not. */
const base64Kinds = [/[a-z]/, /[A-Z]/, /[0-9]/];

/** A picture, a sound or a file inside of an output: a text that means nothing when a piece of it is missing. */
export interface Media {
  /** What stands in its place while the rest is cut. */
  readonly mark: string;
  /** A string, or the part that holds it. */
  readonly value: unknown;
  /** The data itself. */
  readonly text: string;
  readonly mediaType: string;
}

/** Takes the media out of a JSON value. @returns a value with marks in their places, the same one if there are none. */
export function takeMedia(value: unknown): { readonly value: unknown; readonly media: readonly Media[] } {
  const media: Media[] = [];
  const rest = replace(value, (item) => {
    const found = asMedia(item);
    if (found === undefined) return undefined;
    const mark = `\ue000media ${media.length}\ue000`;
    media.push({ mark, value: item, ...found });
    return mark;
  });
  return { value: media.length === 0 ? value : rest, media };
}

/** Whether `value` stands for something that {@link takeMedia} took. */
export function isMediaMark(value: unknown): boolean {
  return typeof value === "string" && mediaMark.test(value);
}

/** Puts something in the places of marks. */
export function putMedia(value: unknown, places: ReadonlyMap<unknown, unknown>): unknown {
  return replace(value, (item) => places.get(item));
}

/** A copy in which everything for which `by` gives something else has been replaced. */
function replace(value: unknown, by: (item: unknown) => unknown): unknown {
  const other = by(value);
  if (other !== undefined) return other;
  if (Array.isArray(value)) return value.map((item) => replace(item, by));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replace(item, by)]));
}

function asMedia(item: unknown): Pick<Media, "text" | "mediaType"> | undefined {
  if (typeof item === "string") {
    if (dataUrl.test(item)) return { text: item, mediaType: /[^:;,]+(?=[;,])/.exec(item)?.[0] ?? "data" };
    return isBase64(item) ? { text: item, mediaType: "base64" } : undefined;
  }
  if (!isRecord(item)) return undefined;
  // The names of the AI SDK, of MCP and of providers.
  const mediaType = [item.mediaType, item.mimeType, item.media_type].find((name) => typeof name === "string");
  if (mediaType === undefined) return undefined;
  const holder = isRecord(item.data) ? item.data : item;
  const text = [holder.data, holder.blob].find((data) => typeof data === "string");
  if (text === undefined || (mediaType.startsWith("text/") && !isBase64(text))) return undefined;
  return { text, mediaType };
}

function isBase64(text: string): boolean {
  return text.length >= MIN_BASE64 && !notBase64.test(text) && base64Kinds.every((kind) => kind.test(text));
}
