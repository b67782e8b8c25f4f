import { errorText, PerdureError } from "../base/error.ts";
import type { AgentEvents, AgentEventType } from "../base/event.ts";
import type { Clock } from "../base/time.ts";
import type { Identity } from "../base/identity.ts";
import type {
  AboutFailure,
  AgentPath,
  AgentStep,
  AsyncContext,
  HostedAgent,
  HostedAgentClass,
  ReadVerdict,
  Sql,
} from "../port.ts";
import { prefixPath } from "../wire/address.ts";
import { agentId, buildAgentPath, leafOf, parseAgentId } from "../wire/agent-path.ts";
import { closeCode } from "../wire/close-code.ts";
import { Resident } from "./resident.ts";
import { Eviction } from "./eviction.ts";
import type { LifeSurroundings } from "./life.ts";
import type { LogEntry } from "./log.ts";
import type { Publish, Reach } from "./reach.ts";
import type { Registry } from "./registry.ts";
import { lookInto } from "./look-into.ts";
import type { Keeper, Storage } from "./storage.ts";
import { transfer } from "./transfer.ts";
import { WakeIndex } from "./wake-index.ts";

/** How long a stop waits for the closing handshakes of clients; each takes one round trip. */
const GOOD_BYE_MS = 500;
const SETTLED_POLL_MS = 10;

/** What the residents of a host are made of. */
interface ResidentsParts {
  readonly registry: Registry;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly context: AsyncContext;
  readonly breathe: () => Promise<void>;
  readonly publish: Publish;
  /** `this.env` of all agents. */
  readonly env: object;
  readonly log: (entry: LogEntry) => void;
  /** Keeps the process running until the returned function is called. Default: whatever else runs in it does. */
  readonly hold?: () => () => void;
  /** For `onStart`, unless the caller who wakes an agent brings its own. */
  readonly props?: unknown;
  /** First segments of every address. Default `agents`. */
  readonly prefix?: string | undefined;
  /** How long an agent that nothing needs stays in memory. */
  readonly idleMs: number;
  /** The most agents in memory at a time. */
  readonly maxLive: number;
}

/** All agents of a host: one live object per address, made on first use. Everything reaches it through its {@link Resident}. */
export class Residents implements LifeSurroundings, Reach {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly context: AsyncContext;
  readonly env: object;
  readonly props: unknown;
  readonly breathe: () => Promise<void>;
  readonly #registry: Registry;
  readonly #prefix: string;
  readonly #publish: Publish;
  readonly #log: (entry: LogEntry) => void;
  readonly hold: () => () => void;
  readonly dueClock: Clock;
  readonly #residents = new Map<string, Resident>();
  readonly #eviction: Eviction;
  readonly #index: WakeIndex;
  #live = 0;
  readonly #erasing = new Set<Promise<void>>();
  #stopping = false;

  constructor(parts: ResidentsParts) {
    this.storage = parts.storage;
    this.clock = parts.clock;
    this.context = parts.context;
    this.env = parts.env;
    this.props = parts.props;
    this.breathe = parts.breathe;
    this.#registry = parts.registry;
    this.#prefix = prefixPath(parts.prefix);
    this.#publish = parts.publish;
    this.#log = parts.log;
    this.hold = parts.hold ?? (() => () => {});
    this.dueClock = heldClock(parts.clock, this.hold);
    this.#eviction = new Eviction(this.#residents, this, parts, () => this.#index.rearm());
    this.#index = new WakeIndex(parts.storage.index, this.dueClock, (id) => this.#wake(id));
  }

  /** Carries on what an earlier process left behind and begins to watch the clock. */
  start(): void {
    for (const words of this.storage.notices ?? []) {
      this.report("host", new PerdureError("bad_state", words), { stage: "start" });
    }
    this.storage.attach?.(this.#keeper());
    this.#eraseDoomed(this.storage.index.doomed());
    this.#tellStrangers();
    this.#index.start();
    this.#eviction.start();
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** How many agents are in memory, and how many the host keeps anything of. */
  get counts(): { live: number; kept: number; connections: number } {
    let connections = 0;
    for (const resident of this.#residents.values()) connections += resident.connections;
    return { live: this.#live, kept: this.#residents.size, connections };
  }

  get live(): number {
    return this.#live;
  }

  makeRoom(): void {
    this.#eviction.makeRoom();
  }

  lived(change: 1 | -1): void {
    this.#live += change;
  }

  /** The one resident of an address. @throws PerdureError `unknown_agent`, `bad_input`, `host_stopped` */
  resident(path: AgentPath): Resident {
    if (this.#stopping) throw new PerdureError("host_stopped", "This host is stopping. Try again in a moment.");
    const id = agentId(path);
    return this.#residentOf(id, path);
  }

  #residentOf(id: string, path: AgentPath): Resident {
    const known = this.#residents.get(id);
    if (known !== undefined) return known;
    this.#registry.get(leafOf(path).className);
    const resident = new Resident(id, path, this);
    for (let above = parentIdOf(path); above !== undefined; above = parentIdOf(parseAgentId(above))) {
      const removal = this.#residents.get(above)?.removal;
      if (removal !== undefined) resident.waitFor(removal);
    }
    this.#residents.set(id, resident);
    return resident;
  }

  /** @param caller the agent that calls; without one it is server code */
  async call(
    path: AgentPath,
    method: string,
    args: readonly unknown[],
    { props, caller }: { readonly props?: unknown; readonly caller?: HostedAgent | undefined } = {},
  ): Promise<unknown> {
    const input = transfer(args, caller);
    return this.resident(path).use(async (agent, life) => {
      const value = await agent.invoke(method, input);
      await life.gate.settled();
      return transfer(value, agent);
    }, props);
  }

  isAwake(id: string): boolean {
    return this.#residents.get(id)?.live ?? false;
  }

  /** Reads rows of an agent as they are now; nobody wakes. `read` must be done when it returns. */
  look<T>(id: string, read: (rows: Sql) => T): T {
    const rows = this.#residents.get(id)?.rows;
    return rows === undefined ? lookInto(this.storage, id, read) : read(rows);
  }

  classNameOf(cls: HostedAgentClass): string {
    return this.#registry.nameOf(cls);
  }

  classOf(name: string): HostedAgentClass {
    return this.#registry.get(name);
  }

  /** These names mean other classes now. Agents in memory continue with the new code; those whose class is gone end, and wait. */
  renew(classNames: ReadonlySet<string>): void {
    if (this.#stopping) return;
    for (const resident of [...this.#residents.values()]) {
      const { className } = leafOf(resident.path);
      if (!classNames.has(className)) continue;
      const known = this.#registry.has(className);
      const why = known ? "its class was replaced by newer code" : "its class was taken away";
      resident.renew(new PerdureError("agent_gone", `${resident.id} was ended: ${why}.`));
      if (!known) resident.closeSockets(closeCode.goingAway, "agent class removed");
    }
  }

  abort(path: AgentPath, reason?: unknown): void {
    const id = agentId(path);
    const error = new PerdureError("agent_gone", `${id} was aborted.`, { cause: reason });
    for (const [key, resident] of this.#residents) if (key === id || key.startsWith(`${id}/`)) resident.end(error);
  }

  async remove(path: AgentPath): Promise<void> {
    const top = agentId(path);
    if (this.storage.claim !== undefined) await this.storage.claim(top);
    const ids = new Set(this.storage.index.tree(top));
    ids.add(top);
    for (const key of this.#residents.keys()) if (key.startsWith(`${top}/`)) ids.add(key);
    const parent = parentIdOf(path);
    // One commit: a crash leaves the whole tree, or nothing of it.
    this.storage.index.doom([...ids], parent === undefined ? undefined : { child: top, parent });
    await Promise.all([
      this.#erase([...ids]),
      parent === undefined ? undefined : this.#residents.get(parent)?.tellLost(),
    ]);
  }

  /** Before a child has rows, its parent lists it. */
  created(path: AgentPath): Promise<void> | undefined {
    const parent = parentPathOf(path);
    if (parent === undefined || !this.#registry.has(leafOf(parent).className)) return undefined;
    const told = this.#residentOf(agentId(parent), parent).childMade(leafOf(path));
    return told.catch((error: unknown) => this.failed(parent, "child", error));
  }

  addressOf(path: AgentPath): string {
    return buildAgentPath(path, { prefix: this.#prefix });
  }

  exists(path: AgentPath): Promise<boolean> {
    const id = agentId(path);
    return this.storage.exists?.(id) ?? Promise.resolve(this.storage.index.has(id));
  }

  async admitChild(
    parent: AgentPath,
    request: Request,
    child: AgentStep,
    identity: Identity | undefined,
  ): Promise<ReadVerdict> {
    return this.resident(parent).use((agent) => agent.admitChild(request, child, identity));
  }

  async request(
    path: AgentPath,
    request: Request,
    rest: string,
    identity: Identity | undefined,
    mayOnlyRead: boolean,
  ): Promise<Response> {
    return this.resident(path).use(async (agent, life) => {
      const response = await agent.request(request, rest, identity, mayOnlyRead);
      await life.gate.settled();
      return response;
    });
  }

  publish<T extends AgentEventType>(path: AgentPath, id: string, type: T, payload: AgentEvents[T]): void {
    this.#publish(path, id, type, payload);
  }

  report(agent: string, error: unknown, about: AboutFailure): void {
    this.#log({ agent, ...about, error, timestamp: this.clock.now() });
  }

  failed(path: AgentPath, stage: string, error: unknown): void {
    const id = agentId(path);
    this.#publish(path, id, "agent:failed", { stage, error: errorText(error) });
    this.report(id, error, { stage });
  }

  /** Takes no new work, waits at most `graceMs` for what runs, and ends every life. The next start continues what was cut off. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    this.#index.stop();
    this.#eviction.stop();
    // Sockets first: what clients send from now on waits on their side for the next host.
    for (const resident of this.#residents.values()) {
      resident.drain();
      resident.closeSockets(closeCode.serviceRestart, "host restarts");
    }
    await this.#settled(graceMs);
    const error = new PerdureError(
      "host_stopped",
      "The host stopped before this was done. It continues at the next start.",
    );
    const retired = [...this.#residents.values()];
    for (const resident of retired) resident.retire(error);
    this.#residents.clear();
    await Promise.all(retired.map((resident) => resident.left()));
    // What is being deleted needs the index to the end.
    await Promise.allSettled(this.#erasing);
  }

  /** Waits for running work, and a moment for clients to say good-bye, so that agents hear of it in this life. */
  async #settled(graceMs: number): Promise<void> {
    const begun = Date.now();
    const waits = (resident: Resident) =>
      resident.busy || (resident.connections > 0 && Date.now() < begun + GOOD_BYE_MS);
    while ([...this.#residents.values()].some(waits) && Date.now() < begun + graceMs) {
      await new Promise((resolve) => setTimeout(resolve, SETTLED_POLL_MS));
    }
  }

  /** Deletes what doomed agents have stored. All of their lives end first, so that none brings another one back. */
  async #erase(ids: readonly string[]): Promise<void> {
    const erased = this.#eraseNow(ids);
    this.#erasing.add(erased);
    try {
      await erased;
    } finally {
      this.#erasing.delete(erased);
    }
  }

  async #eraseNow(ids: readonly string[]): Promise<void> {
    const removed = Promise.withResolvers<void>();
    const left: Promise<void>[] = [];
    for (const id of ids) {
      const path = parseAgentId(id);
      const resident = this.#registry.has(leafOf(path).className) ? this.#residentOf(id, path) : undefined;
      resident?.erase(new PerdureError("agent_gone", `${id} was deleted.`), removed.promise);
      resident?.closeSockets(closeCode.goingAway, "agent deleted");
      if (resident !== undefined) left.push(resident.left());
    }
    try {
      await Promise.all(left);
      await this.storage.durable();
      for (const id of ids) {
        await this.storage.remove(id);
        this.#publish(parseAgentId(id), id, "agent:destroyed", {});
      }
      await this.storage.durable();
    } finally {
      removed.resolve();
    }
  }

  /** For a storage whose agents come and go while this host runs. */
  #keeper(): Keeper {
    const within = (root: string) => [...this.#residents].filter(([id]) => id === root || id.startsWith(`${root}/`));
    return {
      took: (cutOff, doomed) => {
        if (this.#stopping) return;
        this.#eraseDoomed(doomed);
        for (const id of cutOff) this.#wake(id);
        this.#index.rearm();
      },
      lost: (root, why) => {
        for (const [, resident] of within(root)) resident.lose(why);
        this.#index.rearm();
      },
      keeps: (root) => within(root).some(([, resident]) => !resident.empty),
      knows: (id) => this.#registry.has(leafOf(parseAgentId(id)).className),
      failed: (error) => this.report("host", error, { stage: "cluster" }),
    };
  }

  /** Finishes what an earlier process had begun to delete. */
  #eraseDoomed(ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.#erase(ids).catch((error: unknown) => {
      for (const id of ids) this.failed(parseAgentId(id), "delete", error);
    });
  }

  /** Says of each class that has agents here and is not registered that it is missing: it was renamed, or left out. */
  #tellStrangers(): void {
    for (let after = ""; ;) {
      const [id] = this.storage.index.list(after, 1);
      if (id === undefined) return;
      const path = parseAgentId(id);
      const { className } = path[0];
      if (!this.#registry.has(className)) {
        const words = `There are stored agents of the class "${className}", and no class is registered under that name. Nothing was deleted. If it was renamed, register it under its old name, such as agents: { ${className}: NewName }.`;
        this.failed(path, "start", new PerdureError("unknown_agent", words));
      }
      // Behind all ids of this class: "0" comes right after "/".
      after = `${id.slice(0, id.indexOf("/"))}0`;
    }
  }

  #wake(id: string): void {
    const path = parseAgentId(id);
    const { className } = leafOf(path);
    if (!this.#registry.has(className)) {
      const error = `No agent class is called "${className}" any more; its work is kept until it is registered again.`;
      this.failed(path, "wake", error);
      return;
    }
    this.resident(path).wakeUp();
  }
}

function parentPathOf(path: AgentPath): AgentPath | undefined {
  const [root, ...rest] = path.slice(0, -1);
  return root === undefined ? undefined : [root, ...rest];
}

function parentIdOf(path: AgentPath): string | undefined {
  const parent = parentPathOf(path);
  return parent && agentId(parent);
}

/** A clock whose timers keep the process running until they fire or are cancelled: for work that has a due time. */
function heldClock(clock: Clock, hold: () => () => void): Clock {
  return {
    now: () => clock.now(),
    after(ms, work) {
      const release = hold();
      const cancel = clock.after(ms, () => {
        // Behind the work: it may set the next timer.
        try {
          work();
        } finally {
          release();
        }
      });
      return () => {
        cancel();
        release();
      };
    },
  };
}
