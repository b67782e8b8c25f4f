import type { UIMessage } from "../message/types.ts";
import type { BranchPlaces } from "../wire/frames.ts";

/** Which of the messages of its place one is. */
export interface BranchPlace {
  /** From 0. */
  readonly index: number;
  readonly count: number;
}

/** Which messages of a list have others in their place, as the agent tells with the messages. */
export class KnownBranches {
  readonly #places = new Map<string, BranchPlace>();
  #find: ((messageId: string) => BranchPlace | undefined) | undefined;

  /** The same function until something changes. */
  get find(): (messageId: string) => BranchPlace | undefined {
    if (this.#find === undefined) {
      const places = new Map(this.#places);
      this.#find = (messageId) => places.get(messageId);
    }
    return this.#find;
  }

  of(messageId: string): BranchPlace | undefined {
    return this.#places.get(messageId);
  }

  /** These messages were told, with their places. */
  told(messages: readonly UIMessage[], places: BranchPlaces | undefined): void {
    for (const { id } of messages) {
      const told = places !== undefined && Object.hasOwn(places, id) ? places[id] : undefined;
      const known = this.#places.get(id);
      if (told?.[0] === known?.index && told?.[1] === known?.count) continue;
      if (told === undefined) this.#places.delete(id);
      else this.#places.set(id, { index: told[0], count: told[1] });
      this.#find = undefined;
    }
  }

  renamed(from: string, to: string): void {
    const place = this.#places.get(from);
    if (place === undefined) return;
    this.#places.delete(from);
    this.#places.set(to, place);
    this.#find = undefined;
  }

  /** Forgets all that is not shown. */
  keep(shown: readonly UIMessage[]): void {
    if (this.#places.size === 0) return;
    const ids = new Set(shown.map(({ id }) => id));
    for (const id of this.#places.keys()) {
      if (ids.has(id)) continue;
      this.#places.delete(id);
      this.#find = undefined;
    }
  }
}
