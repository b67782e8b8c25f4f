import { isRecord, utf8Length } from "./json.ts";

/** With less room than this, nothing more is kept. */
const MIN_ROOM = 48;
/** An item gets at least this much while there is room: better few items that say something than many that do not. */
const MIN_SHARE = 160;

/**
 * A smaller value of the same kind: long strings lose their end, lists and objects their last items. Each
 * item gets a fair share of the room, and what it does not use goes to the next.
 * @param room about how many bytes of JSON the result may have; it may exceed that by a few short notes.
 */
export function cutValue(value: unknown, room: number): unknown {
  if (typeof value === "string") return cutText(value, room);
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    const kept = share(value.length, room, (index, left) => {
      const item: unknown = cutValue(value[index], left);
      items.push(item);
      return jsonBytes(item);
    });
    if (kept < value.length) items.push(`… [${value.length - kept} more items cut]`);
    return items;
  }
  if (!isRecord(value)) return typeof value === "bigint" ? String(value) : value;
  const entries = Object.entries(value);
  const fields: [string, unknown][] = [];
  const kept = share(entries.length, room, (index, left) => {
    const [key, item] = entries[index] ?? ["", undefined];
    const name = cutText(key, left / 2);
    const field = cutValue(item, left - utf8Length(name));
    fields.push([name, field]);
    return utf8Length(name) + jsonBytes(field);
  });
  if (kept < entries.length) fields.push(["…", `[${entries.length - kept} more fields cut]`]);
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
function share(count: number, room: number, take: (index: number, left: number) => number): number {
  // The brackets count too: without that, nesting alone would never use the room up.
  let left = room - 2;
  for (let index = 0; index < count; index++) {
    if (left < MIN_ROOM) return index;
    left -= take(index, Math.min(left, Math.max(MIN_SHARE, Math.floor(left / (count - index))))) + 1;
  }
  return count;
}

function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value) ?? "");
}
