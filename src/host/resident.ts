import { backOff } from "../base/time.ts";
import { errorText, PerdureError } from "../base/error.ts";
import { type AgentPath, type AgentStep, hosted, type HostedAgent, loads, type Socket, type Sql } from "../port.ts";
import { leafOf, parseAgentId } from "../wire/agent-path.ts";
import { closeCode } from "../wire/close-code.ts";
import { closeReason, failureCode, wasEnded } from "./failure.ts";
import type { Delivery } from "./gate.ts";
import type { HostSocket, SocketOwner } from "./host-socket.ts";
import { Life, type LifeOwner, type LifeSurroundings } from "./life.ts";
import type { AgentStorage } from "./storage.ts";

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 300_000;

/**
 * One agent as the host keeps it: its sockets, its alarm, and at most one life, which begins on first use and ends when nothing
 * needs it; the sockets stay. Whoever needs the agent while it starts waits for the same start.
 */
export class Resident implements LifeOwner, SocketOwner {
  readonly id: string;
  readonly path: AgentPath;
  readonly #around: LifeSurroundings;
  readonly #sockets = new Set<HostSocket>();
  readonly #news = new ChildNews();
  #life: Life | undefined;
  #starting: Promise<Life> | undefined;
  #under = 0;
  #lastUsed: number;
  #alarmAt: number | null = null;
  #cancelAlarm: (() => void) | undefined;
  #retries = 0;
  #cancelRetry: (() => void) | undefined;
  #draining = false;
  /** Why there is no next life here: the host has stopped. */
  #retired: PerdureError | undefined;
  /** The index counts on hearing how this life ends. */
  #indexed = false;
  /** A life is over, and what it sent has not left yet: the next one, and what sockets are told meanwhile, wait for this. */
  #leaving: Promise<void> | undefined;
  /** While the agent is being deleted, its next life waits for this. */
  #removal: Promise<void> | undefined;

  constructor(id: string, path: AgentPath, around: LifeSurroundings) {
    this.id = id;
    this.path = path;
    this.#around = around;
    this.#lastUsed = around.clock.now();
  }

  get live(): boolean {
    return this.#life !== undefined;
  }

  /** The rows of the agent in memory, for whoever only looks. */
  get rows(): Sql | undefined {
    return this.#life;
  }

  /** Nothing here that could not be made anew. */
  get empty(): boolean {
    const waits = this.#cancelAlarm !== undefined || this.#cancelRetry !== undefined || this.#removal !== undefined;
    return !this.busy && !waits && this.#life === undefined && this.#leaving === undefined && this.#sockets.size === 0;
  }

  /** Something is running, or about to leave. */
  get busy(): boolean {
    return this.#under > 0 || this.#starting !== undefined || this.#life?.gate.empty === false || this.#isDue;
  }

  /** Its alarm is about to run. Let go now, it would have to be woken at once, and could be let go again, for ever. */
  get #isDue(): boolean {
    return this.#cancelAlarm !== undefined && this.#alarmAt !== null && this.#alarmAt <= this.#around.clock.now();
  }

  get lastUsed(): number {
    return this.#lastUsed;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Runs `work` on the live agent, waking it if need be. Fails with `agent_gone` when the agent is ended meanwhile. */
  async use<T>(work: (agent: HostedAgent, life: Life) => Promise<T>, props?: unknown): Promise<T> {
    if (this.#retired !== undefined) throw this.#retired;
    this.#under++;
    const release = this.#around.hold();
    try {
      let life = this.#present;
      // Again, because others who waited for the same start may have ended that life.
      while (life === undefined || life.over) life = this.#present ?? (await this.#wake(props));
      if (life.agent === undefined) throw new PerdureError("agent_gone", `${this.id} is gone.`);
      return await life.orGone(work(life.agent, life));
    } finally {
      release();
      this.#under--;
      this.#lastUsed = this.#around.clock.now();
    }
  }

  /** Wakes the agent because it is due or was cut off. Failing, it is tried again later, less and less often. */
  wakeUp(): void {
    this.#indexed = true;
    this.use(() => Promise.resolve()).then(
      () => {
        this.#retries = 0;
      },
      (error: unknown) => {
        this.#publishFailure("wake", error);
        // A full host is no fault of the agent: it is tried again soon, however often that happens.
        if (PerdureError.is(error, "limit")) this.#retries = 0;
        if (!wasEnded(error)) this.#wakeLater();
      },
    );
  }

  connect(socket: HostSocket, request: Request): void {
    this.adopt(socket);
    this.use((agent) => agent.connect(socket, request)).then(
      () => this.#connected(socket),
      (error: unknown) => {
        this.#publishFailure("connect", error);
        socket.close(failureCode(error), closeReason(error));
      },
    );
  }

  /** Takes back a socket that the platform kept while nothing of this was in memory. */
  adopt(socket: HostSocket): void {
    this.#sockets.add(socket);
    socket.attach(this);
  }

  message(socket: HostSocket, data: string | Uint8Array): void {
    if (!socket.ready) return socket.hold(data);
    this.use((agent) => agent.message(socket, data)).catch((error: unknown) => {
      this.#publishFailure("message", error);
      // The frame was lost, and the client may be waiting for an answer to it.
      socket.close(failureCode(error), closeReason(error));
    });
  }

  /** A frame was thrown away unread. */
  refused(socket: HostSocket, what: string): void {
    this.#publish("frame:refused", { connectionId: socket.id, reason: `${what} is more than this host takes` });
  }

  disconnected(socket: HostSocket, code: number, reason: string, wasClean: boolean): void {
    socket.open = false;
    if (!this.#sockets.delete(socket) || !socket.ready) return;
    this.use((agent) => agent.close(socket, code, reason, wasClean)).catch((error: unknown) =>
      this.#publishFailure("close", error),
    );
  }

  closeSockets(code: number, reason: string): void {
    for (const socket of this.#sockets) socket.close(code, reason);
  }

  /** Starts nothing new. What the alarm is set to from now on is only noted, for the next start. */
  drain(): void {
    this.#draining = true;
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    this.#life?.agent?.drain();
  }

  /** Ends a life that nothing needs. The index learns when the next one is due. */
  evict(): void {
    const life = this.#life;
    if (life === undefined || this.busy) return;
    this.#life = undefined;
    const at = this.#alarmAt;
    this.#disarm();
    life.emit("agent:evicted", { awakeMs: this.#around.clock.now() - life.startedAt });
    this.#leave(life);
    if (life.wrote || this.#indexed || at !== null) this.#around.storage.index.settle(this.id, at);
    this.#indexed = false;
  }

  /** Ends the life whatever it does. Rows and alarm stay; the index keeps it as cut off, so that the next start continues it. */
  end(reason: PerdureError): void {
    const life = this.#life;
    if (life === undefined) return;
    // First: what leaves with the end of a life may be answered at once, and must not find the life that is over.
    this.#life = undefined;
    // If it was this one that started, the next use begins another.
    this.#starting = undefined;
    this.#leave(life, reason);
  }

  /** Its rows are another process's now, which does all that it has to do: clients are to go there. */
  lose(why: PerdureError): void {
    this.end(why);
    this.#disarm();
    this.#stopRetry();
    this.#indexed = false;
    this.closeSockets(closeCode.serviceRestart, "agent moved");
  }

  /** The class has other code now: a life with it continues what the old one did. Sockets stay. A failed start is tried again. */
  renew(reason: PerdureError): void {
    if (this.#life === undefined && this.#cancelRetry === undefined) return;
    this.end(reason);
    this.#stopRetry();
    this.#retries = 0;
    this.wakeUp();
  }

  /** Ends the life because its rows are being deleted. Calls under way fail, and the next life begins, after `removed`. */
  erase(reason: PerdureError, removed: Promise<void>): void {
    this.waitFor(removed);
    this.#disarm();
    this.#stopRetry();
    this.#indexed = false;
    const life = this.#life;
    this.#life = undefined;
    if (life !== undefined) this.#leave(life, reason, removed);
  }

  /** Resolves when nothing of an ended life waits any more. Never rejects. */
  async left(): Promise<void> {
    while (this.#leaving !== undefined) await this.#leaving;
  }

  /** The agent is being deleted, or one above it: no life begins here before that is over. */
  waitFor(removal: Promise<void>): void {
    const over = removal.then(() => {
      if (this.#removal === over) this.#removal = undefined;
    });
    this.#removal = over;
  }

  get removal(): Promise<void> | undefined {
    return this.#removal;
  }

  /** Tells the agent which of its children were deleted, if it is in memory; else its next start does. */
  async tellLost(): Promise<void> {
    if (this.#life?.agent !== undefined) await this.#news.tellLost(this.#life, this.#around.storage.index);
  }

  /** Has the agent list a child that is about to store its first row; wakes it if need be. Resolves when that is durable. */
  childMade(child: AgentStep): Promise<void> {
    if (!this.live) this.use(() => Promise.resolve()).catch((error: unknown) => this.#news.failed(error));
    return this.#news.made(child, this.#life);
  }

  /** Ends the life for good: the host has stopped, and what still comes in is refused. */
  retire(reason: PerdureError): void {
    this.#retired = reason;
    this.evict();
    this.end(reason);
    this.#disarm();
    this.#stopRetry();
  }

  // What the life sees of this place.

  sockets(tag?: string): Socket[] {
    const ready: Socket[] = [];
    for (const socket of this.#sockets) {
      if (socket.joined && socket.open && (tag === undefined || socket.tags.includes(tag))) ready.push(socket);
    }
    return ready;
  }

  setAlarm(at: number | null): void {
    if (at === this.#alarmAt && (at === null || this.#cancelAlarm !== undefined)) return;
    this.#disarm();
    this.#alarmAt = at;
    if (at !== null) this.#armAlarm(at);
  }

  keepAwake(work: Promise<unknown>): void {
    this.#under++;
    const release = this.#around.hold();
    const done = () => {
      release();
      this.#under--;
      this.#lastUsed = this.#around.clock.now();
    };
    work.then(done, done);
  }

  failed(life: Life, error: unknown): void {
    if (this.#life !== life) return;
    // Whoever took the rows away says so, and what comes next.
    if (PerdureError.is(error, "fenced")) return this.end(error);
    this.#publishFailure("sync", error);
    this.end(new PerdureError("agent_gone", `${this.id} could not make its rows durable: ${errorText(error)}`));
    this.closeSockets(closeCode.internalError, "storage failed");
    this.#wakeLater();
  }

  // What sockets see of it.

  get clear(): boolean {
    return this.#life === undefined ? this.#leaving === undefined : this.#life.gate.clear;
  }

  pass(delivery: Delivery): void {
    if (this.#life !== undefined) this.#life.gate.pass(delivery);
    else if (this.#leaving !== undefined) void this.#leaving.then(() => this.pass(delivery));
    else delivery.deliver();
  }

  dropped(socket: HostSocket, reason: string): void {
    this.#publish("connection:dropped", { connectionId: socket.id, reason });
  }

  /** The life that is in memory and has started. */
  get #present(): Life | undefined {
    return this.#starting === undefined ? this.#life : undefined;
  }

  #wake(props: unknown): Promise<Life> {
    if (this.#starting !== undefined) return this.#starting;
    // For nobody: it must be able to write, also when somebody woke it who may only read.
    const starting = this.#around.context
      .run(undefined, () => this.#start(props))
      .finally(() => {
        if (this.#starting === starting) this.#starting = undefined;
      });
    this.#starting = starting;
    return starting;
  }

  async #start(props: unknown): Promise<Life> {
    const { storage } = this.#around;
    while ((this.#removal ?? this.#leaving) !== undefined) await (this.#removal ?? this.#leaving);
    if (storage.claim !== undefined) await storage.claim(this.id);
    // An earlier removal failed: what a life wrote beside the old rows would go with them when the host starts again.
    if (storage.index.isDoomed(this.id)) await storage.remove(this.id);
    if (this.#retired !== undefined) throw this.#retired;
    const cls = this.#around.classOf(leafOf(this.path).className);
    this.#around.makeRoom();
    const life = new Life(this.#around, this);
    this.#life = life;
    try {
      const loading = cls[loads]?.();
      if (loading !== undefined) await life.orGone(loading);
      life.agent = new cls(life)[hosted];
      await this.tellLost();
      this.#news.tellMade(life);
      if (!life.over) await life.orGone(life.agent.start(props ?? this.#around.props));
      // Otherwise whoever waits would start it again, for ever.
      if (life.over) throw new PerdureError("agent_gone", `${this.id} was ended while it started.`);
    } catch (thrown) {
      const cut = life.over;
      // With a reason: its start may have set work going, which must hear that it is over.
      const gone = new PerdureError("agent_gone", `${this.id} did not start: ${errorText(thrown)}`, { cause: thrown });
      this.#leave(life, gone);
      if (this.#life === life) this.#life = undefined;
      if (cut) throw thrown;
      this.#disarm();
      // The index no longer knows when it is due: only this resident does something about it.
      if (life.wrote || this.#indexed) this.#wakeLater();
      throw thrown;
    }
    life.emit("agent:started", { durationMs: this.#around.clock.now() - life.startedAt });
    return life;
  }

  #leave(life: Life, reason?: PerdureError, removed?: Promise<void>): void {
    const leaving: Promise<void> = life
      .end(reason, removed)
      .catch((error: unknown) => this.#cutShort(error))
      .then(() => {
        if (this.#leaving === leaving) this.#leaving = undefined;
      });
    this.#leaving = leaving;
  }

  /** The last rows of a life that is over are not safe: clients did not get what it sent, and are to come back. */
  #cutShort(error: unknown): void {
    if (wasEnded(error)) return;
    this.#publishFailure("sync", error);
    this.closeSockets(closeCode.internalError, "storage failed");
    this.#wakeLater();
  }

  #connected(socket: HostSocket): void {
    socket.connected();
    for (const data of socket.takeHeld()) this.message(socket, data);
    if (!socket.open && !this.#sockets.has(socket)) this.#closedEarly(socket);
  }

  /** The client left while the agent was still greeting it: the agent is told now. */
  #closedEarly(socket: HostSocket): void {
    this.#sockets.add(socket);
    this.disconnected(socket, 1006, "", false);
  }

  #wakeLater(): void {
    if (this.#cancelRetry !== undefined || this.#retired !== undefined) return;
    const wait = backOff(++this.#retries, FIRST_RETRY_MS, LAST_RETRY_MS);
    this.#cancelRetry = this.#around.dueClock.after(wait, () => {
      this.#cancelRetry = undefined;
      this.wakeUp();
    });
  }

  #stopRetry(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #armAlarm(at: number): void {
    if (this.#draining) return;
    const wait = Math.max(0, at - this.#around.clock.now());
    this.#cancelAlarm = this.#around.dueClock.after(wait, () => {
      this.#cancelAlarm = undefined;
      if (this.#alarmAt === null) return;
      if (this.#alarmAt > this.#around.clock.now()) return this.#armAlarm(this.#alarmAt);
      this.#alarmAt = null;
      this.use((agent) => agent.alarm()).catch((error: unknown) => {
        this.#publishFailure("alarm", error);
        if (wasEnded(error)) return;
        if (this.#life === undefined) this.#wakeLater();
        else if (this.#alarmAt === null) this.setAlarm(this.#around.clock.now() + FIRST_RETRY_MS);
      });
    });
  }

  #disarm(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    this.#alarmAt = null;
  }

  #publishFailure(stage: string, error: unknown): void {
    this.#publish("agent:failed", { stage, error: errorText(error) });
    this.#around.report(this.id, error, { stage });
  }

  #publish: Life["emit"] = (type, payload) => this.#around.publish(this.path, this.id, type, payload);
}

/** A child that its parent is to list. */
interface Made {
  readonly child: AgentStep;
  readonly told: PromiseWithResolvers<void>;
}

/** News of children (reached from outside and storing, or deleted by others), told now or first thing in the next life. */
class ChildNews {
  #made: Made[] = [];

  /** A child is about to store its first row. Resolves when its parent's list, with it, is durable. */
  made(child: AgentStep, life: Life | undefined): Promise<void> {
    const told = Promise.withResolvers<void>();
    this.#made.push({ child, told });
    if (life?.agent !== undefined) this.tellMade(life);
    return told.promise;
  }

  /** Nobody can be told: the agent did not start. */
  failed(error: unknown): void {
    for (const { told } of this.#made.splice(0)) told.reject(error);
  }

  tellMade(life: Life): void {
    for (const { child, told } of this.#made.splice(0)) {
      try {
        life.agent?.childMade?.(child);
        told.resolve(life.durable());
      } catch (thrown) {
        told.reject(thrown);
      }
    }
  }

  /** Stored on both sides: after a crash in between it is told again. */
  async tellLost(life: Life, index: AgentStorage["index"]): Promise<void> {
    const lost = index.lost(life.id);
    if (lost.length === 0) return;
    for (const child of lost) life.agent?.childRemoved?.(leafOf(parseAgentId(child)));
    await life.durable();
    for (const child of lost) index.told(child);
  }
}
