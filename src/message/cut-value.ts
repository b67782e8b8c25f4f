import { isRecord, utf8Length } from "../base/json.ts";

/** With less room than this, nothing more is kept. */
const MIN_ROOM = 48;
/** A list or an object is not cut below this: better few items that say something than many that do not. */
const MIN_SHARE = 160;

/** How a value is cut: in what room is counted, and what stands for that which is left out. */
export interface Cutting {
  /** How much room a piece of JSON takes. */
  size(json: string): number;
  /** A text that is to take `room` as JSON; the same text when it fits. */
  text(text: string, room: number): string;
  /** Stands behind the items of `list` that were kept. */
  moreItems(count: number, list: readonly unknown[]): unknown;
  /** Stands behind the fields that were kept. */
  moreFields(count: number): string;
}

/** Room is bytes, as in a row. */
const inBytes: Cutting = {
  size: utf8Length,
  text: cutText,
  moreItems: (count) => `… [${count} more items cut]`,
  moreFields: (count) => `[${count} more fields cut]`,
};

/**
 * A smaller value of the same kind: long strings lose their end, lists and objects their last items. Small items stay whole,
 * large ones share what is left; if there are too many, the first are kept. `room`: about how much JSON, plus a few short notes.
 */
export function cutValue(value: unknown, room: number, how: Cutting = inBytes): unknown {
  if (typeof value === "string") return how.text(value, room);
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value;
    const sizes = list.map((item) => sizeUpTo(item, room, how));
    const items: unknown[] = [];
    const kept = share(list, sizes, room, (index, left) => {
      const item = cutValue(list[index], left, how);
      items.push(item);
      return how.size(toJson(item));
    });
    if (kept < list.length) items.push(how.moreItems(list.length - kept, list));
    return items;
  }
  if (!isRecord(value)) return typeof value === "bigint" ? String(value) : value;
  const entries = Object.entries(value);
  const sizes = entries.map(([key, item]) => nameSize(key, how) + sizeUpTo(item, room, how));
  const fields: [string, unknown][] = [];
  const kept = share(Object.values(value), sizes, room, (index, left) => {
    const [key, item] = entries[index] ?? ["", undefined];
    const name = cutText(key, Math.max(left / 2, MIN_ROOM));
    const field = cutValue(item, left - nameSize(name, how), how);
    fields.push([name, field]);
    return nameSize(name, how) + how.size(toJson(field));
  });
  if (kept < entries.length) fields.push(["…", how.moreFields(entries.length - kept)]);
  return Object.fromEntries(fields);
}

/** The beginning of a text, with a note of how long it was. */
export function cutText(text: string, room: number): string {
  if (text.length * 3 <= room || (text.length <= room && utf8Length(text) <= room)) return text;
  const note = `… [cut, ${text.length} characters in all]`;
  // Three bytes is the most that one unit of a string can take.
  return firstChars(text, Math.max(0, Math.floor((room - note.length) / 3))) + note;
}

/** The first `count` characters, without half of a surrogate pair at the end. */
export function firstChars(text: string, count: number): string {
  const last = text.charCodeAt(count - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? count - 1 : count);
}

/** Lets as many items as fit take their share. @returns how many did. */
function share(
  items: readonly unknown[],
  sizes: readonly number[],
  room: number,
  take: (index: number, left: number) => number,
): number {
  // The brackets count too: without that, nesting alone would never use the room up.
  let left = room - 2;
  const fair = fairShare(sizes, left);
  if (fair >= MIN_SHARE) {
    for (const index of items.keys()) take(index, Math.min(left, fair));
    return items.length;
  }
  for (const [index, item] of items.entries()) {
    const least = typeof item === "object" && item !== null ? MIN_SHARE : MIN_ROOM;
    if (left < least && left < (sizes[index] ?? 0)) return index;
    left -= take(index, Math.min(left, MIN_SHARE)) + 1;
  }
  return items.length;
}

/** The most that an item may take so that all fit: what the small ones do not need goes to the large ones. */
function fairShare(sizes: readonly number[], room: number): number {
  let left = room;
  let waiting = sizes.length;
  for (const size of sizes.toSorted((a, b) => a - b)) {
    if (size + 1 > left / waiting) return Math.floor(left / waiting) - 1;
    left -= size + 1;
    waiting -= 1;
  }
  return Number.POSITIVE_INFINITY;
}

/** How much room a value takes; infinite above `limit`, and then not counted further. */
function sizeUpTo(value: unknown, limit: number, how: Cutting): number {
  if (typeof value === "string") return value.length > limit ? Number.POSITIVE_INFINITY : how.size(toJson(value));
  if (typeof value !== "object" || value === null) return how.size(toJson(value));
  let size = 2;
  for (const [key, item] of Object.entries(value)) {
    if (size > limit) break;
    size += (Array.isArray(value) ? 0 : nameSize(key, how)) + sizeUpTo(item, limit - size, how) + 1;
  }
  return size > limit ? Number.POSITIVE_INFINITY : size;
}

/** How much room the name of a field takes, with its quotes and its colon. */
function nameSize(name: string, how: Cutting): number {
  return how.size(toJson(name)) + 1;
}

function toJson(value: unknown): string {
  return (typeof value === "bigint" ? String(value) : JSON.stringify(value)) ?? "";
}
