import type { PerdureError } from "../base/error.ts";
import type { TxListener } from "./storage.ts";

/** What goes through the gate: a frame for a socket, or the end of one. */
export interface Delivery {
  /** Must not throw. */
  deliver(): void;
}

/** What the gate needs to know of the agent's rows. */
export interface GatedStore {
  readonly inTransaction: boolean;
  readonly needed: number;
  readonly synced: number;
  durable(): Promise<void>;
}

/** Told how the transaction ended that it was left in. */
interface Fate {
  readonly ended: (committed: boolean) => void;
}

interface Waiting {
  readonly need: number;
  readonly delivery: Delivery;
}

/**
 * Holds what an agent sends until the writes before it are durable, so that no client sees what a crash could undo.
 *
 * Nothing to wait for: it leaves at once, in the caller's turn. Inside a transaction: held until the commit, forgotten if undone.
 * After a write that must be synced: it waits in line, with everything behind it, so that the order is kept.
 */
export class Gate implements TxListener {
  readonly #store: () => GatedStore;
  readonly #failed: (error: unknown) => void;
  readonly refusal: () => PerdureError | undefined;
  #held: (Delivery | Fate)[] = [];
  #line: Waiting[] = [];
  #draining = false;
  readonly #watch: { now(): number; waited(sent: number, durationMs: number): void } | undefined;

  /** @param watch told how long what was sent has waited @param failed the store could not be synced: what waits is dropped @param refusal why nothing may be written now */
  constructor(
    store: () => GatedStore,
    failed: (error: unknown) => void,
    refusal: () => PerdureError | undefined = () => undefined,
    watch?: { now(): number; waited(sent: number, durationMs: number): void },
  ) {
    this.#watch = watch;
    this.#store = store;
    this.#failed = failed;
    this.refusal = refusal;
  }

  /** Whether everything has left. */
  get empty(): boolean {
    return this.#line.length === 0 && this.#held.length === 0;
  }

  /** Whether what is sent now may leave at once. */
  get clear(): boolean {
    const store = this.#store();
    return !store.inTransaction && this.#line.length === 0 && store.needed <= store.synced;
  }

  pass(delivery: Delivery): void {
    const store = this.#store();
    if (store.inTransaction) this.#held.push(delivery);
    else if (this.clear) delivery.deliver();
    else this.#wait(store, delivery);
  }

  mark(): number {
    return this.#held.length;
  }

  rolledBack(mark: number): void {
    // Last one first, as with any undo: whoever takes back what it handed on finds it in its old order.
    for (const undone of this.#held.splice(mark).reverse()) if ("ended" in undone) undone.ended(false);
  }

  committed(): void {
    if (this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    // All that was sent first: whoever hears of the end may send more.
    for (const item of held) if ("deliver" in item) this.pass(item);
    for (const item of held) if ("ended" in item) item.ended(true);
  }

  /** See `AgentHost.afterTx`. */
  afterTx(ended: (committed: boolean) => void): void {
    if (this.#store().inTransaction) this.#held.push({ ended });
    else ended(true);
  }

  /** Resolves when what was written so far may be shown. For answers that do not go through a socket. */
  async settled(): Promise<void> {
    const store = this.#store();
    if (store.needed > store.synced) await this.durable();
  }

  /**
   * Resolves when everything written so far survives. A failed sync ends the life and is never retried on the same log: the
   * operating system may report success without having written a byte.
   */
  async durable(): Promise<void> {
    try {
      await this.#store().durable();
    } catch (thrown) {
      this.#line = [];
      this.#failed(thrown);
      throw thrown;
    }
  }

  /** The life is over and its store safe: what waits leaves now, before the next life sends and before the sockets close. */
  released(): void {
    const line = this.#line;
    this.#line = [];
    for (const { delivery } of line) delivery.deliver();
  }

  /** The life is over, and what it wrote last may be lost: nobody hears of it. */
  dropped(): void {
    this.#line = [];
  }

  #wait(store: GatedStore, delivery: Delivery): void {
    this.#line.push({ need: store.needed, delivery });
    if (this.#draining) return;
    this.#draining = true;
    this.#drain(store).catch((error: unknown) => {
      this.#draining = false;
      this.#line = [];
      this.#failed(error);
    });
  }

  async #drain(store: GatedStore): Promise<void> {
    while (this.#line.length > 0) {
      const began = this.#watch?.now() ?? 0;
      await store.durable();
      let ready = 0;
      while (ready < this.#line.length && (this.#line[ready]?.need ?? 0) <= store.synced) ready++;
      for (const { delivery } of this.#line.splice(0, ready)) delivery.deliver();
      if (ready > 0) this.#watch?.waited(ready, Math.max(0, this.#watch.now() - began));
    }
    // In the same breath as the last look: what comes after it must find that nobody drains.
    this.#draining = false;
  }
}
