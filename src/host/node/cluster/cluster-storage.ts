import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { errorText, PerdureError } from "../../../base/error.ts";
import { monotonicClock } from "../../../base/time.ts";
import type { Keeper, Storage, StorageHealth, TxListener } from "../../storage.ts";
import { agentFileName } from "../agent-file.ts";
import { AgentDatabase } from "../database.ts";
import { blobName } from "../disk-blobs.ts";
import { HandlePool } from "../handle-pool.ts";
import { openEmpty, templateBytes } from "../open-sqlite.ts";
import { ClusterIndex } from "./cluster-index.ts";
import type { Claim, Engine } from "./engine.ts";
import { ReplicaFile } from "./replica-file.ts";
import { Shipper } from "./shipper.ts";

/** How many of a node's due or orphaned agents are taken at a time. */
const DUE_AT_ONCE = 64;
const POLL_MS = 400;
/** Each node asks at a moment of its own. */
const POLL_SPREAD = 0.5;
const RENEWALS_PER_TTL = 3;
const RECOVER_MS = 250;

/** What a node of a cluster is made of. */
interface ClusterParts {
  readonly engine: Engine;
  /** For files that live as long as a claim. */
  readonly dir: string;
  /** Where others reach this node. */
  readonly address: string;
  /** How long others wait before they take over from a node that is silent. */
  readonly ttlMs: number;
  /** How long a tree that nothing needs stays this node's. */
  readonly idleMs: number;
  readonly openDatabases: number;
  readonly databaseBytes: number;
  readonly queueBytes: number;
  readonly foldBytes?: number;
  readonly onCommit?: (id: string) => void;
  /** All is given back. */
  readonly closed: () => void;
}

/** A tree of agents that is this node's. */
interface Root {
  readonly id: string;
  readonly epoch: number;
  readonly files: Map<string, Promise<ReplicaFile>>;
  lastUsed: number;
  /** Claims and orders that are under way. */
  under: number;
}

/**
 * Agents in a database that many nodes share. Each tree of them belongs to one node at a time, under an epoch that every write names;
 * what is here besides is a cache that ends with the claim.
 */
export class ClusterStorage implements Storage {
  readonly index: ClusterIndex;
  readonly notices: readonly string[];
  readonly #parts: ClusterParts;
  readonly #engine: Engine;
  readonly #shipper: Shipper;
  readonly #pool: HandlePool;
  readonly #template: { readonly hash: string; readonly bytes: Uint8Array };
  readonly #roots = new Map<string, Root>();
  readonly #claiming = new Map<string, Promise<Root>>();
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #orders = new Set<Promise<unknown>>();
  #keeper: Keeper | undefined;
  #node: string;
  /** When the database last heard of this node, by a clock that nobody sets. */
  #heard: number;
  #cutOff = false;
  #timers: NodeJS.Timeout[] = [];
  #closing = false;

  private constructor(parts: ClusterParts, node: string, notices: readonly string[], bytes: Uint8Array) {
    this.#parts = parts;
    this.#engine = parts.engine;
    this.#node = node;
    this.notices = notices;
    this.#heard = monotonicClock.now();
    this.#template = { hash: hashOf(bytes), bytes };
    this.#pool = new HandlePool(parts.openDatabases, openEmpty());
    this.#pool.onCommit = parts.onCommit;
    this.#shipper = new Shipper(parts.engine, (root, epoch, why) => this.#lose(root, epoch, why), parts.queueBytes);
    this.index = new ClusterIndex({
      settle: (id, alarm) =>
        this.#order(id, ({ id: root, epoch }) => this.#engine.settle({ root, epoch, asleep: [{ id, alarm }] })),
      doom: (ids, lost) => {
        const [first] = ids;
        if (first !== undefined) this.#order(first, ({ id, epoch }) => this.#engine.doom(id, epoch, ids, lost));
      },
      told: (child) => this.#order(child, ({ id, epoch }) => this.#engine.told(id, epoch, child)),
    });
  }

  /** Enters the cluster. @throws PerdureError `bad_config`, `database_newer` */
  static async open(parts: ClusterParts): Promise<ClusterStorage> {
    const node = randomUUID();
    const notices = await parts.engine.join(node, parts.address, parts.ttlMs);
    const bytes = templateBytes();
    await parts.engine.keepTemplate(hashOf(bytes), bytes);
    return new ClusterStorage(parts, node, notices, bytes);
  }

  get health(): StorageHealth {
    const { ok, roundTripMs } = this.#engine.health;
    const cluster = {
      node: this.#node,
      engineMs: roundTripMs,
      owned: this.#roots.size,
      queueBytes: this.#shipper.bytes,
    };
    return { ok: !this.#cutOff && (ok || monotonicClock.now() - this.#heard < this.#parts.ttlMs), cluster };
  }

  attach(keeper: Keeper): void {
    this.#keeper = keeper;
    this.#every(this.#parts.ttlMs / RENEWALS_PER_TTL, () => this.#renew());
    this.#every(POLL_MS, () => this.#lookForWork());
    this.#every(Math.max(POLL_MS, this.#parts.idleMs / 2), () => this.#giveBackIdle());
  }

  async claim(id: string): Promise<void> {
    const root = await this.#own(rootOf(id));
    root.under++;
    try {
      await this.#fileOf(root, id);
    } finally {
      root.under--;
      root.lastUsed = monotonicClock.now();
    }
  }

  open(id: string, listener: TxListener): AgentDatabase {
    const root = this.#roots.get(rootOf(id));
    const file = root && this.#loaded.get(`${root.epoch} ${id}`);
    if (root === undefined || file === undefined) throw new PerdureError("fenced", `${id} is not this node's now.`);
    root.lastUsed = monotonicClock.now();
    const blobs = {
      put: async (bytes: Uint8Array) => {
        const name = blobName(bytes);
        this.#check(root, await this.#engine.putBlob(root.id, root.epoch, id, name, bytes));
        return name;
      },
      get: (name: string) => this.#engine.getBlob(id, name),
      delete: async (name: string) => {
        this.#check(root, await this.#engine.deleteBlob(root.id, root.epoch, id, name));
      },
    };
    return new AgentDatabase(id, file, this.#pool, blobs, {
      refusal: () => listener.refusal(),
      mark: () => listener.mark(),
      rolledBack: (mark) => listener.rolledBack(mark),
      committed: () => listener.committed(),
      firstWrite: () => {
        // Who only looks makes nothing known.
        if (!this.index.has(id)) file.listed = listener.created?.();
        this.index.wake(id);
      },
      async sync(rows) {
        await file.listed;
        await rows();
      },
    });
  }

  exists(id: string): Promise<boolean> {
    return this.#engine.exists(id);
  }

  async remove(id: string): Promise<void> {
    const root = this.#roots.get(rootOf(id));
    if (root === undefined) throw new PerdureError("fenced", `${id} is not this node's now.`);
    const file = await root.files.get(id);
    await this.#shipper.behind(async () => {
      this.#check(root, await this.#engine.remove(root.id, root.epoch, id));
    });
    root.files.delete(id);
    this.#loaded.delete(`${root.epoch} ${id}`);
    file?.remove();
    this.index.removed(id);
  }

  async durable(): Promise<void> {
    await Promise.all(this.#orders);
  }

  /** Gives everything back. All lives are over, and what they wrote is in the database. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.allSettled(this.#claiming.values());
    await Promise.allSettled([...this.#roots.values()].map((root) => this.#giveBack(root)));
    this.#pool.closeAll();
    await this.#engine.leave(this.#node).catch(() => {});
    await this.#engine.close();
    fs.rmSync(path.join(this.#parts.dir, "agents"), { recursive: true, force: true });
    this.#parts.closed();
  }

  /** Files by epoch and agent, once they are there. */
  readonly #loaded = new Map<string, ReplicaFile>();

  async #own(id: string): Promise<Root> {
    await this.#leaving.get(id);
    const known = this.#roots.get(id);
    if (known !== undefined) return known;
    let claiming = this.#claiming.get(id);
    if (claiming === undefined) {
      claiming = this.#claim(id).finally(() => this.#claiming.delete(id));
      this.#claiming.set(id, claiming);
    }
    return claiming;
  }

  async #claim(id: string): Promise<Root> {
    if (this.#closing) throw new PerdureError("host_stopped", "This node is leaving the cluster.");
    if (this.#cutOff) throw new PerdureError("fenced", "This node has lost the cluster's database, and tries again.");
    const claim = await this.#engine.claim(id, this.#node);
    if ("owner" in claim) {
      throw new PerdureError("fenced", `${id} is on another node of the cluster (${claim.owner}). Try again there.`);
    }
    const root: Root = { id, epoch: claim.epoch, files: new Map(), lastUsed: monotonicClock.now(), under: 0 };
    this.#roots.set(id, root);
    this.index.took(claim);
    this.#tell(claim);
    return root;
  }

  #tell({ agents }: Claim): void {
    const cutOff = agents.filter(({ awake, doomed }) => awake && !doomed).map(({ id }) => id);
    const doomed = agents.filter((entry) => entry.doomed).map(({ id }) => id);
    this.#keeper?.took(cutOff, doomed);
  }

  #fileOf(root: Root, id: string): Promise<ReplicaFile> {
    let file = root.files.get(id);
    if (file === undefined) {
      file = this.#load(root, id);
      root.files.set(id, file);
      file.catch(() => root.files.delete(id));
    }
    return file;
  }

  async #load(root: Root, id: string): Promise<ReplicaFile> {
    const stored = await this.#engine.load(id);
    if (this.#roots.get(root.id) !== root) throw new PerdureError("fenced", `${id} was lost while it was loaded.`);
    const { dir, databaseBytes: maxBytes, foldBytes } = this.#parts;
    const base = { root: root.id, epoch: root.epoch, id };
    const sink = {
      append: (seq: number, pages: Buffer) =>
        this.#shipper.append({ ...base, seq, template: this.#template.hash, pages }),
      fold: async (seq: number, parts: AsyncIterable<Uint8Array>) => {
        this.#check(root, await this.#engine.fold({ ...base, seq }, parts));
      },
    };
    const file = new ReplicaFile(path.join(dir, agentFileName(id)), sink, this.#template.bytes, {
      maxBytes,
      ...(foldBytes !== undefined && { foldBytes }),
    });
    file.load(stored);
    this.#loaded.set(`${root.epoch} ${id}`, file);
    return file;
  }

  #order(id: string, work: (root: Root) => Promise<boolean>): void {
    const root = this.#roots.get(rootOf(id));
    if (root === undefined) return;
    root.under++;
    const done = this.#shipper
      .behind(async () => this.#check(root, await work(root)))
      .catch((thrown: unknown) => {
        // What was to be noted may not be: whoever owns the tree next finds it as it was, and looks for itself.
        this.#lose(root.id, root.epoch, asFenced(thrown));
        throw asFenced(thrown);
      })
      .finally(() => {
        root.under--;
        this.#orders.delete(done);
      });
    done.catch(() => {});
    this.#orders.add(done);
  }

  /** @throws PerdureError `fenced` */
  #check(root: Root, counts: boolean): void {
    if (counts) return;
    const why = new PerdureError("fenced", "Another node of the cluster has taken this agent over.");
    this.#lose(root.id, root.epoch, why);
    throw why;
  }

  /** Nothing that is written under this epoch is kept any more. */
  #lose(id: string, epoch: number, why: PerdureError): void {
    const root = this.#roots.get(id);
    if (root === undefined || root.epoch !== epoch) return;
    this.#roots.delete(id);
    this.#shipper.forget(id, epoch);
    const files = this.#filesOf(root);
    for (const file of files) file.die(why);
    this.#keeper?.lost(id, why);
    this.index.forget(id);
    for (const file of files) file.remove();
    if (!this.#closing) this.#recover(id);
  }

  /** What was under way there goes on: here, unless another node has it. */
  #recover(id: string): void {
    const timer = setTimeout(() => {
      if (this.#closing || this.#keeper?.knows(id) !== true) return;
      this.#own(id).catch((thrown: unknown) => {
        if (!PerdureError.is(thrown)) this.#recover(id);
      });
    }, RECOVER_MS);
    timer.unref();
  }

  #filesOf(root: Root): ReplicaFile[] {
    const files: ReplicaFile[] = [];
    for (const id of root.files.keys()) {
      const file = this.#loaded.get(`${root.epoch} ${id}`);
      if (file !== undefined) files.push(file);
      this.#loaded.delete(`${root.epoch} ${id}`);
    }
    return files;
  }

  #giveBack(root: Root): Promise<void> {
    this.#roots.delete(root.id);
    const files = this.#filesOf(root);
    this.index.forget(root.id);
    const left = this.#shipper
      .behind(async () => {
        // From here on nothing of it may be sent: the next owner may have read it.
        this.#shipper.forget(root.id, root.epoch);
        await this.#engine.release(root.id, root.epoch);
      })
      .catch((thrown: unknown) => this.#keeper?.failed(thrown))
      .then(() => {
        for (const file of files) file.remove();
        this.#leaving.delete(root.id);
      });
    this.#leaving.set(root.id, left);
    return left;
  }

  #giveBackIdle(): Promise<void> {
    const before = monotonicClock.now() - this.#parts.idleMs;
    for (const root of this.#roots.values()) {
      if (root.lastUsed > before || root.under > 0 || this.#keeper?.keeps(root.id) === true) continue;
      void this.#giveBack(root);
    }
    return Promise.resolve();
  }

  async #renew(): Promise<void> {
    const sent = monotonicClock.now();
    const { ttlMs } = this.#parts;
    const renewed = this.#engine.renew(this.#node, ttlMs).then((known) => {
      if (known) this.#heard = sent;
      return known;
    });
    // Without an answer the clock says whether others count it as dead by now.
    const unsaid = new Promise<boolean>((resolve) => setTimeout(resolve, ttlMs / RENEWALS_PER_TTL, true).unref());
    const known = await Promise.race([renewed.catch(() => true), unsaid]);
    if (known && monotonicClock.now() - this.#heard < this.#parts.ttlMs) this.#cutOff = false;
    else await this.#startAgain();
  }

  /** Others may have everything by now. Comes back under another name, when the database is there. */
  async #startAgain(): Promise<void> {
    if (!this.#cutOff) {
      this.#cutOff = true;
      const why = new PerdureError("fenced", "This node was cut off from the cluster's database.");
      for (const { id, epoch } of [...this.#roots.values()]) this.#lose(id, epoch, why);
      this.#keeper?.failed(why);
    }
    const node = randomUUID();
    try {
      await this.#engine.join(node, this.#parts.address, this.#parts.ttlMs);
    } catch {
      return;
    }
    this.#node = node;
    this.#heard = monotonicClock.now();
    this.#cutOff = false;
  }

  /** Takes trees in which something is due, or was cut off, and that nobody has. */
  async #lookForWork(): Promise<void> {
    if (this.#cutOff || this.#keeper === undefined) return;
    const ids = await this.#engine.due(Date.now(), DUE_AT_ONCE);
    const roots = new Set(ids.filter((id) => this.#keeper?.knows(id)).map(rootOf));
    for (const root of roots) {
      await this.#own(root).catch((thrown: unknown) => {
        if (!PerdureError.is(thrown)) throw thrown;
      });
    }
  }

  /** Again and again, a while after the last time is over. */
  #every(ms: number, work: () => Promise<void>): void {
    const place = this.#timers.length;
    const next = () => {
      const wait = ms * (1 - POLL_SPREAD / 2 + Math.random() * POLL_SPREAD);
      const timer = setTimeout(() => {
        work()
          .catch(() => {
            // The database is away: the next time may find it.
          })
          .finally(() => {
            if (!this.#closing) next();
          });
      }, wait);
      this.#timers[place] = timer;
    };
    next();
  }
}

/** Class and name of the agent at the top. A tree is owned as a whole. */
function rootOf(id: string): string {
  return id.split("/").slice(0, 2).join("/");
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function asFenced(thrown: unknown): PerdureError {
  if (PerdureError.is(thrown, "fenced")) return thrown;
  return new PerdureError("fenced", `The cluster's database did not take it: ${errorText(thrown)}`, { cause: thrown });
}
