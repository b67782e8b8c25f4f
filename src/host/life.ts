import { PerdureError } from "../base/error.ts";
import type { AgentEvents, AgentEventType, Emit } from "../base/event.ts";
import type { Clock } from "../base/time.ts";
import type {
  AboutFailure,
  AgentHost,
  AgentPath,
  AsyncContext,
  Blobs,
  HostedAgent,
  HostedAgentClass,
  Socket,
  Sockets,
  SqlRow,
  SqlValue,
  WriteLevel,
} from "../port.ts";
import { Gate } from "./gate.ts";
import type { AgentStorage, AgentStore } from "./storage.ts";

/** What a life asks of the host around it. */
export interface LifeSurroundings {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  /** The same time; what it is set to keeps the process running until then. For work with a due time. */
  readonly dueClock: Clock;
  readonly context: AsyncContext;
  readonly env: object;
  /** For `onStart`, unless the caller who wakes an agent brings its own. */
  readonly props: unknown;
  publish<T extends AgentEventType>(path: AgentPath, id: string, type: T, payload: AgentEvents[T]): void;
  /** Writes a failure into the host's log. Never throws. */
  report(agentId: string, error: unknown, about: AboutFailure): void;
  call(
    path: AgentPath,
    method: string,
    args: readonly unknown[],
    from: { readonly caller: HostedAgent | undefined },
  ): Promise<unknown>;
  breathe(): Promise<void>;
  classNameOf(cls: HostedAgentClass): string;
  /** The class that is registered under a name now. @throws PerdureError `unknown_agent` */
  classOf(name: string): HostedAgentClass;
  abort(path: AgentPath, reason?: unknown): void;
  remove(path: AgentPath): Promise<void>;
  /** The path of an agent's URL. */
  addressOf(path: AgentPath): string;
  /** An agent is about to store its first row. Resolves when whoever must know of it does. Never rejects. */
  created(path: AgentPath): Promise<void> | undefined;
  /** Before a life begins. @throws PerdureError `limit` when there is no room for it. */
  makeRoom(): void;
  /** Keeps the process running until the returned function is called. */
  hold(): () => void;
  /** A life began or ended. */
  lived(change: 1 | -1): void;
}

/** What a life asks of the place that it is in. */
export interface LifeOwner {
  readonly id: string;
  readonly path: AgentPath;
  sockets(tag?: string): Socket[];
  setAlarm(at: number | null): void;
  keepAwake(work: Promise<unknown>): void;
  /** The rows of this life can no longer be made durable. Called once or more. */
  failed(life: Life, error: unknown): void;
}

/**
 * One stay of an agent in memory: the {@link AgentHost} of its object. Afterwards every use throws, so that work left running by
 * mistake cannot write beside the next life.
 */
export class Life implements AgentHost {
  readonly id: string;
  readonly path: AgentPath;
  readonly clock: Clock;
  readonly context: AsyncContext;
  readonly env: object;
  readonly emit: Emit;
  readonly sockets: Sockets;
  readonly gate: Gate;
  readonly startedAt: number;
  readonly #around: LifeSurroundings;
  readonly #resident: LifeOwner;
  readonly #store: AgentStore;
  /** Who is waiting for this life to answer. A shared promise would keep every wait it ever raced with. */
  readonly #waiting = new Set<(error: PerdureError) => void>();
  #over: PerdureError | undefined;
  #left: Promise<void> = Promise.resolve();
  /** Those who wait have heard that it is over. */
  #told = false;
  agent: HostedAgent | undefined;

  constructor(around: LifeSurroundings, resident: LifeOwner) {
    this.#around = around;
    this.#resident = resident;
    this.id = resident.id;
    this.path = resident.path;
    this.clock = around.clock;
    this.context = around.context;
    this.env = around.env;
    this.startedAt = around.clock.now();
    this.emit = (type, payload) => around.publish(resident.path, resident.id, type, payload);
    // Not to those who are over: what they broadcast would reach clients of the next life.
    this.sockets = { all: (tag) => (this.over ? [] : resident.sockets(tag)) };
    this.gate = new Gate(
      () => this.#store,
      (error) => resident.failed(this, error),
      () => this.agent?.refusal?.(),
      {
        now: () => around.clock.now(),
        waited: (sent, durationMs) => this.emit("gate:waited", { sent, durationMs }),
      },
    );
    const { gate } = this;
    this.#store = around.storage.open(resident.id, {
      refusal: () => gate.refusal(),
      mark: () => gate.mark(),
      rolledBack: (mark) => gate.rolledBack(mark),
      committed: () => gate.committed(),
      created: () => around.created(resident.path),
    });
    around.lived(1);
  }

  get over(): boolean {
    return this.#over !== undefined;
  }

  get address(): string {
    return this.#around.addressOf(this.path);
  }

  get blank(): boolean {
    return this.#store.blank;
  }

  get wrote(): boolean {
    return this.#store.wrote;
  }

  get blobs(): Blobs {
    const { blobs } = this.#alive();
    const refusal = this.agent?.refusal?.();
    if (refusal === undefined) return blobs;
    const refuse = () => Promise.reject(refusal);
    return { get: (name) => blobs.get(name), put: refuse, delete: refuse };
  }

  sql<T = SqlRow>(query: string, ...args: SqlValue[]): T[] {
    return this.#alive().sql<T>(query, ...args);
  }

  tx<T>(work: () => T, level?: WriteLevel): T {
    return this.#alive().tx(work, level);
  }

  report(error: unknown, about: AboutFailure): void {
    this.#around.report(this.id, error, about);
  }

  durable(): Promise<void> {
    return this.gate.durable();
  }

  async scrub(): Promise<void> {
    this.#writable();
    await this.durable();
    await this.#alive().scrub?.();
  }

  async erased(scope: string): Promise<void> {
    this.#writable();
    await this.#around.storage.index.erased?.(this.id, scope);
  }

  afterTx(ended: (committed: boolean) => void): void {
    this.#alive();
    this.gate.afterTx(ended);
  }

  show(work: () => void): void {
    this.#alive();
    this.gate.pass({ deliver: work });
  }

  alarm(at: number | null): void {
    this.#alive();
    this.#resident.setAlarm(at);
  }

  keepAwake<T>(work: Promise<T>): Promise<T> {
    if (this.#over !== undefined) {
      // Who gave it away hears of the end of this life instead.
      work.catch(() => {});
      throw this.#over;
    }
    this.#resident.keepAwake(work);
    return work;
  }

  breathe(): Promise<void> {
    return this.#around.breathe();
  }

  call(path: AgentPath, method: string, args: readonly unknown[]): Promise<unknown> {
    this.#alive();
    return this.#around.call(path, method, args, { caller: this.agent });
  }

  classNameOf(cls: HostedAgentClass): string {
    return this.#around.classNameOf(cls);
  }

  abort(path: AgentPath, reason?: unknown): void {
    this.#writable();
    this.#around.abort(path, reason);
  }

  async remove(path: AgentPath): Promise<void> {
    this.#writable();
    return this.#around.remove(path);
  }

  /** Settles as `work` does, or fails when this life is ended from outside before that. */
  orGone<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      work.then(resolve, reject).finally(() => this.#waiting.delete(reject));
      // It may have ended this life itself, before anyone could wait for it.
      if (this.#told) this.#tell();
    });
  }

  /**
   * Ends this life. Calls under way fail with `reason`, after `grace`: a call that deletes its agent must hear so.
   * @returns resolves when what it sent has left; rejects when its last rows are not safe, so that this was dropped
   */
  end(reason?: PerdureError, grace?: Promise<void>): Promise<void> {
    if (this.#over !== undefined) return this.#left;
    this.#over =
      reason ??
      new PerdureError(
        "agent_gone",
        `${this.id} had left memory when this ran. Work that outlives its caller belongs in keepAliveWhile(), a fiber, a schedule or the queue.`,
      );
    if (reason === undefined) this.agent?.left?.();
    else {
      this.agent?.halt(reason);
      if (grace === undefined) this.#tell();
      else void grace.then(() => setTimeout(() => this.#tell(), 0));
    }
    this.#around.lived(-1);
    this.#left = this.#leave();
    return this.#left;
  }

  async #leave(): Promise<void> {
    try {
      await this.#store.release();
    } catch (thrown) {
      this.gate.dropped();
      throw thrown;
    }
    this.gate.released();
  }

  #tell(): void {
    this.#told = true;
    if (this.#over !== undefined) for (const reject of this.#waiting) reject(this.#over);
  }

  /** @throws PerdureError `agent_gone`; `read_only` when run for somebody who may only read */
  #writable(): void {
    this.#alive();
    const refusal = this.agent?.refusal?.();
    if (refusal !== undefined) throw refusal;
  }

  #alive(): AgentStore {
    if (this.#over !== undefined) throw this.#over;
    return this.#store;
  }
}
