import { tryParseJson, isRecord } from "../base/json.ts";

/** Where it is kept which branch a tab shows: `sessionStorage`, say. */
export interface BranchStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Keeps a tab's own place in a session, so that it is there again after a reload. A storage that fails is no storage. */
export class BranchMemory {
  readonly #storage: BranchStorage | undefined;
  readonly #url: () => string;

  /** @param url of the agent; asked only when there is a storage. */
  constructor(storage: BranchStorage | undefined, url: () => string) {
    this.#storage = storage;
    this.#url = url;
  }

  /** The tab's own place in `session`; undefined when it has none. @param session undefined: the current one. */
  read(session: string | undefined): string | undefined {
    try {
      const value = tryParseJson(this.#storage?.getItem(this.#key) ?? "");
      if (!isRecord(value) || typeof value.view !== "string") return undefined;
      return (value.session ?? undefined) === session ? value.view : undefined;
    } catch {
      return undefined;
    }
  }

  /** @param view undefined: it has none any more. */
  write(session: string | undefined, view: string | undefined): void {
    try {
      if (view === undefined) this.#storage?.removeItem(this.#key);
      else this.#storage?.setItem(this.#key, JSON.stringify({ session, view }));
    } catch {
      // Full, or not allowed.
    }
  }

  get #key(): string {
    return `perdure.branch ${this.#url()}`;
  }
}
