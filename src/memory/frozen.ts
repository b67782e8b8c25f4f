import { readCell, writeCell } from "../store/cell.ts";
import type { SessionStore } from "../store/session-store.ts";
import { type Definition, isWritable, kindOf } from "./definition.ts";
import { cellOf } from "./keys.ts";

/** A text that was frozen, and what the code declared when it was. */
interface FrozenPrompt {
  readonly text: string;
  readonly declared: string;
}

/** What the code declares. Another version of it must not go on with the text of the one before. */
export function fingerprint(declared: Iterable<Definition>): string {
  const facts = [...declared].map((definition) => {
    const { label, description = null, maxTokens = null, shared, initial } = definition;
    return [label, description, maxTokens, shared, initial, kindOf(definition), isWritable(definition)];
  });
  return JSON.stringify(facts);
}

/** The frozen text of a session's blocks; undefined when there is none, or other code froze it. */
export function readFrozen(host: SessionStore, session: string, declared: string): string | undefined {
  const json = host.blank ? undefined : readCell(host, cellOf.prompt(session));
  if (json === undefined) return undefined;
  const frozen = JSON.parse(json) as FrozenPrompt;
  return frozen.declared === declared ? frozen.text : undefined;
}

/** What is frozen already is not written again. */
export function writeFrozen(host: SessionStore, session: string, declared: string, text: string): void {
  if (readFrozen(host, session, declared) === text) return;
  const frozen: FrozenPrompt = { text, declared };
  writeCell(host, cellOf.prompt(session), JSON.stringify(frozen));
}
