import { PerdureError } from "../base/error.ts";
import { deleteCell, readCell, writeCell } from "../store/cell.ts";
import { parseQuery } from "../search/search-query.ts";
import type { SessionStore } from "../store/session-store.ts";
import { wordsOf } from "../search/words.ts";
import { cellOf } from "./keys.ts";
import type { ContextHit } from "./provider.ts";
import { type KeyDescription, listOf } from "./providers.ts";
import { changeText, readText } from "./stored-text.ts";

/** The most entries of one block: its list goes into a prompt. */
export const MAX_ENTRIES = 256;

/** Texts under keys that the agent stores itself. An entry that is emptied is gone. */
export type StoredEntries = ReturnType<typeof storedEntries>;

/** @param session undefined: all sessions share them. */
export function storedEntries(host: SessionStore, label: string, session: string | undefined) {
  const indexCell = cellOf.entries(label, session);
  const index = (): readonly KeyDescription[] => {
    const json = host.blank ? undefined : readCell(host, indexCell);
    return json === undefined ? [] : (JSON.parse(json) as readonly KeyDescription[]);
  };
  const load = (key: string) => readText(host, cellOf.entry(label, session, key));

  /** Keeps the list true to what is stored. What is not described anew stays described as it was. */
  function list(key: string, content: string, description: string | undefined): void {
    const before = index();
    const known = before.find((entry) => entry.key === key);
    const others = before.filter((entry) => entry.key !== key);
    if (content !== "" && others.length >= MAX_ENTRIES) {
      throw new PerdureError(
        "limit",
        `Nothing was written: the block "${label}" has ${MAX_ENTRIES} entries, which is the limit. Empty one first.`,
      );
    }
    const about = description ?? known?.description;
    const entry: KeyDescription = about === undefined ? { key } : { key, description: about };
    const after = content === "" ? others : [...others, entry];
    if (after.length > 0) writeCell(host, indexCell, JSON.stringify(after));
    else deleteCell(host, indexCell);
  }

  return {
    get: () => listOf(index()),
    load,
    search(query: string, { limit }: { readonly limit: number }): ContextHit[] {
      const wanted = parseQuery(query, true);
      const hits = index().map(({ key, description = "" }) => {
        const content = load(key) ?? "";
        const words = [...wordsOf(`${key} ${description} ${content}`)];
        return { key, content, found: new Set(wanted.spots(words).map(({ term }) => term)).size };
      });
      return hits
        .filter(({ found }) => found > 0)
        .sort((a, b) => b.found - a.found || (a.key < b.key ? -1 : 1))
        .slice(0, limit)
        .map(({ key, content }) => ({ key, content }));
    },
    /** Changes an entry in one transaction. A known `call` changes nothing. @throws PerdureError `limit`, what `change` throws */
    change(
      key: string,
      change: (content: string | undefined) => string,
      { description, call }: { readonly description?: string; readonly call?: string },
    ): void {
      const cell = cellOf.entry(label, session, key);
      host.tx(() => {
        const content = changeText(host, cell, change, call);
        if (content === "") deleteCell(host, cell);
        list(key, content, description);
      });
    },
    /** Deletes all of them, in the caller's transaction. */
    erase(): void {
      for (const { key } of index()) deleteCell(host, cellOf.entry(label, session, key));
      deleteCell(host, indexCell);
    },
  };
}
