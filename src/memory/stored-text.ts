import { isRecord } from "../base/json.ts";
import type { SessionStore } from "../store/session-store.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { keepCellAside, readStored } from "../store/damaged.ts";

/** How many of the last calls that wrote to a text are remembered, so that one that runs again writes once. */
const KEPT_CALLS = 32;

interface Stored {
  readonly content: string;
  readonly calls: readonly string[];
}

/** What stands in a cell that {@link changeText} wrote; undefined when nobody wrote yet. */
export function readText(host: SessionStore, key: string): string | undefined {
  return read(host, key)?.content;
}

/** Changes a text in one transaction. A known `call`, or a throw of `change`, changes nothing. @returns the text now */
export function changeText(
  host: SessionStore,
  key: string,
  change: (content: string | undefined) => string,
  call?: string,
): string {
  let aside: string | undefined;
  const now = host.tx(() => {
    const before = read(host, key);
    if (before === undefined) aside = keepDamaged(host, key);
    const calls = before?.calls ?? [];
    if (before !== undefined && call !== undefined && calls.includes(call)) return before.content;
    const content = change(before?.content);
    const after: Stored = { content, calls: call === undefined ? calls : [...calls, call].slice(-KEPT_CALLS) };
    writeCell(host, key, JSON.stringify(after));
    return content;
  });
  if (aside !== undefined) host.emit("row:set_aside", { what: textName(key), key: aside });
  return now;
}

function read(host: SessionStore, key: string): Stored | undefined {
  const json = host.blank ? undefined : readCell(host, key);
  const value = readStored(host, json, textName(key));
  if (!isRecord(value) || typeof value.content !== "string") return undefined;
  const calls = Array.isArray(value.calls) ? value.calls.filter((one) => typeof one === "string") : [];
  return { content: value.content, calls };
}

/** What cannot be read is not lost to what is written now: whoever knows how may still mend it. */
function keepDamaged(host: SessionStore, key: string): string | undefined {
  return host.blank || readCell(host, key) === undefined ? undefined : keepCellAside(host, key, host.clock.now());
}

function textName(cell: string): string {
  return `the text of ${cell}`;
}
