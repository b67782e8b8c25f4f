import type { Sql } from "../port.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { cellOf } from "./keys.ts";

/** A text that a call of `load_context` put into the conversation. */
interface LoadedKey {
  readonly label: string;
  readonly key: string;
  /** `message id:tool call id` where that is known, else the id of the call alone. */
  readonly call: string;
}

/** `leaving`: to be taken out at the next compaction. `gone`: the model reads a marker in its place. */
interface Load extends LoadedKey {
  readonly state: "loaded" | "leaving" | "gone";
}

/** How many loads of a session are remembered; the oldest are forgotten first, and stay as they are. */
const KEPT_LOADS = 500;

/** A call has loaded something. The same call again changes nothing. */
export function noteLoaded(db: Sql, session: string, loaded: LoadedKey): void {
  db.tx(() => {
    const loads = read(db, session);
    if (loads.some(({ call }) => call === loaded.call)) return;
    write(db, session, [...loads, { ...loaded, state: "loaded" as const }].slice(-KEPT_LOADS));
  });
}

/** Marks loads under a key. They stay until {@link settleUnloads}: the same bytes are sent till then. @returns how many */
export function noteUnloaded(db: Sql, session: string, label: string, key: string): number {
  return db.tx(() => {
    let marked = 0;
    const loads = read(db, session).map((load) => {
      if (load.label !== label || load.key !== key || load.state !== "loaded") return load;
      marked += 1;
      return { ...load, state: "leaving" as const };
    });
    if (marked > 0) write(db, session, loads);
    return marked;
  });
}

/** Marks that were made since the last time take effect now. For the transaction that commits a compaction. */
export function settleUnloads(db: Sql, session: string): void {
  const loads = read(db, session);
  if (!loads.some(({ state }) => state === "leaving")) return;
  write(
    db,
    session,
    loads.map((load) => (load.state === "leaving" ? { ...load, state: "gone" as const } : load)),
  );
}

/** What is loaded and was not unloaded, oldest first. */
export function loadedKeys(db: Sql, session: string): LoadedKey[] {
  return read(db, session).flatMap(({ state, label, key, call }) => (state === "loaded" ? [{ label, key, call }] : []));
}

/** The calls whose output is not to be shown any more, with what is shown instead. See {@link markerFor}. */
export function unloadedCalls(db: Sql, session: string): ReadonlyMap<string, string> {
  const gone = read(db, session).filter(({ state }) => state === "gone");
  return new Map(gone.map(({ call, label, key }) => [call, marker(label, key)]));
}

/** What the model reads instead of the output of a call; undefined: the output. */
export function markerFor(
  unloaded: ReadonlyMap<string, string>,
  messageId: string,
  toolCallId: string,
): string | undefined {
  return unloaded.get(callName(messageId, toolCallId)) ?? unloaded.get(toolCallId);
}

/** Call ids alone may come again in another message: some providers count from one. */
function callName(messageId: string, toolCallId: string): string {
  return `${messageId}:${toolCallId}`;
}

function marker(label: string, key: string): string {
  return `[${JSON.stringify(key)} of the context block "${label}" was unloaded. Load it again if it is needed.]`;
}

function read(db: Sql, session: string): readonly Load[] {
  const json = readCell(db, cellOf.loaded(session));
  return json === undefined ? [] : (JSON.parse(json) as readonly Load[]);
}

function write(db: Sql, session: string, loads: readonly Load[]): void {
  writeCell(db, cellOf.loaded(session), JSON.stringify(loads));
}
