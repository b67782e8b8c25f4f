import { firstChars } from "../message/cut-value.ts";
import { readCell, writeCell } from "../store/cell.ts";
import type { SessionStore } from "../store/session-store.ts";
import { askProvider, READ_MS, textFrom } from "./ask-provider.ts";
import { type Definition, MAX_CONTENT_CHARS } from "./definition.ts";
import { cellOf } from "./keys.ts";

const CUT = `[Cut here: more than ${MAX_CONTENT_CHARS} characters.]`;

/** Asks all providers for their texts and stores them. One that fails or is slow is reported and keeps its last text. */
export async function readSources(
  host: SessionStore,
  session: string,
  definitions: readonly Definition[],
  failed: (error: unknown) => void,
): Promise<void> {
  const texts = await Promise.all(
    definitions.map(async ({ label, source, entries }) => {
      if (source === undefined || entries !== undefined) return undefined;
      const what = `Reading the block "${label}"`;
      try {
        return { label, text: textFrom(what, await askProvider(host.clock, READ_MS, what, () => source.get())) };
      } catch (thrown) {
        failed(thrown);
        return undefined;
      }
    }),
  );
  const read = texts.filter((text) => text !== undefined);
  if (read.length === 0) return;
  // The provider has it: nothing waits for this to be safe from more than the death of the process.
  host.tx(() => {
    for (const { label, text } of read) rememberSource(host, session, label, text);
  }, "commit");
}

/** Stores what a provider has now; the same again is not written. */
export function rememberSource(host: SessionStore, session: string, label: string, text: string): void {
  const key = cellOf.source(label, session);
  const kept = text.length > MAX_CONTENT_CHARS ? `${firstChars(text, MAX_CONTENT_CHARS)}\n${CUT}` : text;
  if (host.blank || readCell(host, key) !== kept) writeCell(host, key, kept);
}
