import type { ChatMessage } from "../message/parts.ts";

/** How many messages one stretch has at most: about a screen. */
const LENGTH = 12;

/** Messages that follow each other and are drawn, or left out, together. */
export interface Stretch {
  readonly key: string;
  readonly messages: readonly ChatMessage[];
}

/**
 * Cuts a list into stretches. A message stays in its stretch when others come before or behind it, so that what is drawn
 * stays as it is; a stretch of which nothing has changed is the same object as before.
 */
export class Stretches {
  #keys = new Map<string, string>();
  #before = new Map<string, Stretch>();

  split(messages: readonly ChatMessage[]): Stretch[] {
    const cut: { key: string; messages: ChatMessage[] }[] = [];
    const used = new Set<string>();
    for (const message of messages) {
      const last = cut.at(-1);
      const known = this.#keys.get(message.id);
      const joins = known === undefined ? last !== undefined && last.messages.length < LENGTH : known === last?.key;
      if (last !== undefined && joins) {
        last.messages.push(message);
        continue;
      }
      const key = known === undefined || used.has(known) ? message.id : known;
      used.add(key);
      cut.push({ key, messages: [message] });
    }
    const stretches = cut.map((stretch) => {
      const before = this.#before.get(stretch.key);
      return before !== undefined && isSame(before.messages, stretch.messages) ? before : stretch;
    });
    this.#before = new Map(stretches.map((stretch) => [stretch.key, stretch]));
    this.#keys = new Map(stretches.flatMap(({ key, messages: all }) => all.map(({ id }) => [id, key] as const)));
    return stretches;
  }
}

function isSame(a: readonly ChatMessage[], b: readonly ChatMessage[]): boolean {
  return a.length === b.length && a.every((message, at) => message === b[at]);
}
