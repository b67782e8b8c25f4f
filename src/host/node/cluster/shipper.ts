import { errorText, PerdureError } from "../../../base/error.ts";
import type { Append, Engine } from "./engine.ts";

/** The most that one statement carries, apart from a delta that is larger by itself. */
const GROUP_BYTES = 8 * 1024 * 1024;
const GROUP_ITEMS = 1000;

interface Waiting {
  readonly item: Append;
  readonly done: PromiseWithResolvers<void>;
}

/** Something to be done behind all deltas that were handed over before. */
interface Order {
  readonly work: () => Promise<void>;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Sends what all agents of a node wrote, in groups: while one is under way the next one gathers. What becomes of a group whose
 * connection broke nobody knows, so nothing is ever sent twice: its roots are lost, and claimed anew by whoever needs them.
 */
export class Shipper {
  readonly #engine: Pick<Engine, "append">;
  readonly #lost: (root: string, epoch: number, why: PerdureError) => void;
  readonly #maxBytes: number;
  #line: (Waiting | Order)[] = [];
  #bytes = 0;
  #running = false;
  /** Epochs by root that are over: what is in line for them is not sent. */
  readonly #over = new Map<string, number>();

  /** @param lost nothing that was written under this epoch from here on is kept */
  constructor(
    engine: Pick<Engine, "append">,
    lost: (root: string, epoch: number, why: PerdureError) => void,
    maxBytes: number,
  ) {
    this.#engine = engine;
    this.#lost = lost;
    this.#maxBytes = maxBytes;
  }

  /** Bytes that wait, or are under way. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves when it is in the database. @throws PerdureError `fenced`, `limit` */
  append(item: Append): Promise<void> {
    const done = Promise.withResolvers<void>();
    if (this.#bytes + item.pages.length > this.#maxBytes) {
      const words = `${this.#bytes} bytes wait for the cluster's database, which does not keep up.`;
      this.#give([{ item, done }], new PerdureError("fenced", words));
      return done.promise;
    }
    this.#bytes += item.pages.length;
    this.#line.push({ item, done });
    void this.#run();
    return done.promise;
  }

  /** Does `work` when everything that was handed over before is in the database, or lost. */
  behind(work: () => Promise<void>): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#line.push({ work, done });
    void this.#run();
    return done.promise;
  }

  /** Sends nothing more under this epoch. */
  forget(root: string, epoch: number): void {
    this.#over.set(root, Math.max(epoch, this.#over.get(root) ?? 0));
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    // All that is written in this breath goes out together.
    await Promise.resolve();
    for (let next = this.#line[0]; next !== undefined; next = this.#line[0]) {
      if ("work" in next) {
        this.#line.shift();
        await next.work().then(next.done.resolve, next.done.reject);
      } else await this.#send(this.#group());
    }
    this.#running = false;
  }

  #group(): Waiting[] {
    const group: Waiting[] = [];
    let bytes = 0;
    for (const next of this.#line) {
      if ("work" in next || group.length >= GROUP_ITEMS) break;
      bytes += next.item.pages.length;
      if (group.length > 0 && bytes > GROUP_BYTES) break;
      group.push(next);
    }
    this.#line.splice(0, group.length);
    return group;
  }

  async #send(group: readonly Waiting[]): Promise<void> {
    const over = group.filter(({ item }) => this.#isOver(item));
    const live = group.filter(({ item }) => !this.#isOver(item));
    try {
      this.#give(over, new PerdureError("fenced", "This agent is another process's now."));
      if (live.length === 0) return;
      const there = await this.#engine.append(live.map(({ item }) => item));
      const refused = live.filter((_, place) => !there.has(place));
      live.forEach(({ done }, place) => {
        if (there.has(place)) done.resolve();
      });
      this.#give(refused, new PerdureError("fenced", "Another node of the cluster has taken this agent over."));
    } catch (thrown) {
      const words = `Nobody knows whether the cluster's database has the last rows: ${errorText(thrown)}. They are read anew.`;
      this.#give(live, new PerdureError("fenced", words, { cause: thrown }));
    } finally {
      for (const { item } of group) this.#bytes -= item.pages.length;
    }
  }

  #isOver({ root, epoch }: Append): boolean {
    return epoch <= (this.#over.get(root) ?? 0);
  }

  #give(group: readonly Waiting[], why: PerdureError): void {
    for (const { item, done } of group) {
      done.promise.catch(() => {});
      done.reject(why);
      if (this.#isOver(item)) continue;
      this.forget(item.root, item.epoch);
      this.#lost(item.root, item.epoch, why);
    }
  }
}
