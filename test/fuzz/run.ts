import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import v8 from "node:v8";
import vm from "node:vm";
import { serve, subscribe } from "perdure/node";
import { parseFrame } from "../../src/wire/parse.ts";
import { type Random, seeded } from "../support/seeded.ts";
import { PATIENCE_MS, until } from "../support/until.ts";
import { ANSWER, besideAgents, Leaf, Mind, ON_PURPOSE, Plain, Talk } from "./agents.ts";
import { broken, pick } from "./breaking.ts";
import { goodFrame, type Known, MARK } from "./frames.ts";
import { makeRequest, type Sent } from "./routes.ts";
import { ask, Wire } from "./wire.ts";

/** What is attacked. */
const ATTACKED = ["/agents/plain/a", "/agents/plain/a/sub/leaf/x", "/agents/talk/a", "/agents/mind/a"] as const;
/** What nobody attacks, in the same host. */
const BESIDE = ["/agents/plain/b", "/agents/talk/b", "/agents/mind/b"] as const;
/** What only refused frames are sent to. */
const UNTOUCHED = ["/agents/plain/r", "/agents/talk/r", "/agents/mind/r"] as const;
/** The same agents, for those who may only look: whatever they send. */
const VIEWED = UNTOUCHED.map((path) => `${path}?view`);
const SECRET = "«secret»";

const BARRIER_EVERY = 40;
const ROUND = 200;
/** What a heap may hold more at the end than after the first round: far more than noise, far less than what was sent. */
const HEAP_GROWTH = 96 * 1024 * 1024;

/** A host under attack: what is sent to it, and what must hold. */
export class Target {
  readonly faults: string[] = [];
  #wires: Wire[] = [];
  #beside: Wire[] = [];
  #still: Wire[] = [];
  #untouched: Wire[] = [];
  #viewers: Wire[] = [];
  readonly #used = new Set<string>();
  #host: Awaited<ReturnType<typeof serve>> | undefined;
  readonly #dir = mkdtempSync(join(tmpdir(), "perdure-fuzz-"));
  readonly #ends: (() => unknown)[] = [];
  #names = 0;
  #added = 0;
  #floor = 0;
  /** What was sent since the last time that all was well, newest last. */
  recent: string[] = [];

  get url(): string {
    return this.#host?.url ?? "";
  }

  async open(): Promise<void> {
    const beside = besideAgents((error) => this.faults.push(`the webhook failed: ${String(error)}`));
    this.#ends.push(() => beside.close());
    this.#ends.push(
      subscribe("agent:failed", ({ payload }) => {
        if (!String(payload.error).includes(ON_PURPOSE)) this.faults.push(`${payload.stage}: ${String(payload.error)}`);
      }),
    );
    const agents = { Plain, Talk, Mind };
    const place = { port: 0, dir: this.#dir, signals: false, graceMs: 500, idleMs: 2_000, log: false } as const;
    this.#host = await serve({ ...place, agents, subAgents: { Leaf }, fetch: beside.fetch });
    this.#ends.unshift(() => this.#host?.stop());
    for (const path of ATTACKED) {
      this.#wires.push(this.#wire(path, SECRET), this.#wire(`${path}?_history=pages`, SECRET));
    }
    this.#beside = BESIDE.map((path) => this.#wire(path, MARK));
    this.#untouched = UNTOUCHED.map((path) => this.#wire(path, MARK));
    this.#viewers = VIEWED.map((path) => this.#wire(path, SECRET));
    for (const wire of [...this.#wires, ...this.#beside, ...this.#untouched, ...this.#viewers])
      await wire.open(this.url);
    for (const wire of this.#beside.slice(1)) await this.#say(wire, SECRET);
    // Another conversation of an agent that is attacked: whoever is in it hears nothing of the first.
    for (const Class of [Talk, Mind]) {
      const { id } = await this.#host.getAgentByName(Class, "a").createSession({ name: "still" });
      const wire = this.#wire(`/agents/${Class.name.toLowerCase()}/a?_session=${id}`, MARK);
      await wire.open(this.url);
      this.#still.push(wire);
    }
  }

  #all(): Wire[] {
    return [...this.#wires, ...this.#beside, ...this.#still, ...this.#untouched, ...this.#viewers];
  }

  #wire(path: string, never: string): Wire {
    return new Wire(path, { never, used: this.#used });
  }

  async close(): Promise<void> {
    for (const wire of this.#all()) wire.cut();
    for (const end of this.#ends) await end();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** What a frame of this socket may refer to. */
  known(wire?: Wire): Known {
    const { messages, calls, sessions, turns } = wire ?? (this.#wires[0] as Wire);
    return { fresh: () => `f${++this.#names}`, messages, calls, sessions, turns };
  }

  wire(random: Random): Wire {
    return pick(random, this.#wires);
  }

  /** An agent that is attacked, and what its clients know. */
  agent(random: Random): Known & { readonly path: string } {
    const wire = this.wire(random);
    return { ...this.known(wire), path: wire.path.replace(/\?.*/, "") };
  }

  /** The sockets of the attacked agent at this path. */
  wiresOf(path: string): readonly Wire[] {
    return this.#wires.filter((wire) => wire.path.startsWith(path) && !wire.path.slice(path.length).startsWith("/"));
  }

  async send(wire: Wire, data: string | Uint8Array): Promise<void> {
    this.recent.push(`${wire.path} ${String(data).slice(0, 300)}`);
    if (!wire.isOpen) await wire.open(this.url);
    wire.send(data);
  }

  async request(sent: Sent): Promise<number> {
    this.recent.push(JSON.stringify(sent).slice(0, 400));
    const status = await ask(this.url, sent);
    if (status >= 500) this.faults.push(`${status} for ${JSON.stringify(sent).slice(0, 400)}`);
    return status;
  }

  /** Waits until all that was sent is answered as it must be. `turns`: also the turns. */
  async settle(turns: boolean): Promise<void> {
    for (const wire of this.#wires) if (!wire.isOpen) await wire.open(this.url);
    await Promise.all(this.#wires.map((wire) => wire.call("add")));
    const end = Date.now() + PATIENCE_MS;
    const debts = () => this.#wires.flatMap((wire) => wire.debts(turns));
    while (debts().length > 0 && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
    this.faults.push(...debts());
    if (!turns) return;
    for (const wire of this.#wires) wire.settle();
  }

  /** Fails when a promise was broken. */
  async check(): Promise<void> {
    await this.settle(true);
    const [plain, ...talks] = this.#beside;
    const added = await plain?.call("add");
    if (added !== ++this.#added && added !== 1) this.faults.push(`add() beside gave ${String(added)}`);
    if (added === 1) this.#added = 1;
    for (const wire of talks) await this.#say(wire, "hello beside");
    for (const wire of this.#all()) {
      this.faults.push(...wire.faults.splice(0));
    }
    for (const wire of [...this.#beside, ...this.#still, ...this.#untouched]) {
      if (!wire.isOpen) this.faults.push(`${wire.path} is closed`);
    }
    if (Object.hasOwn(Object.prototype, "polluted")) this.faults.push("Object.prototype was changed");
    if (this.faults.length === 0) this.recent = [];
    else
      throw new Error(`${this.faults.slice(0, 5).join("\n")}\nafter:\n${this.recent.slice(-BARRIER_EVERY).join("\n")}`);
  }

  /** An ordinary turn, which must end as usual. */
  async #say(wire: Wire, text: string): Promise<void> {
    const id = `turn-${++this.#names}`;
    const message = { id: `m-${id}`, role: "user", parts: [{ type: "text", text }] };
    const body = JSON.stringify({ messages: [message], trigger: "submit-message" });
    wire.send(JSON.stringify({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } }));
    await until(() => wire.debts(true).length === 0, `the end of a turn on ${wire.path}`);
    wire.settle();
    const stored = await (await fetch(`${this.url}${wire.path}/get-messages?last=1`)).text();
    if (!stored.includes(ANSWER)) this.faults.push(`${wire.path} answered ${stored.slice(0, 300)}`);
  }

  /** What must be refused, and what viewers may not do, is sent to agents that nobody else uses: no row may change. */
  async refuse(random: Random, count: number): Promise<void> {
    const host = this.#host;
    if (host === undefined) return;
    const dumps = () =>
      Promise.all([
        host.getAgentByName(Plain, "r").dump(),
        host.getAgentByName(Talk, "r").dump(),
        host.getAgentByName(Mind, "r").dump(),
      ]);
    const before = await dumps();
    for (const wire of this.#untouched) {
      for (let sent = 0; sent < count;) {
        const text = broken(random, goodFrame(random, this.known())).toWellFormed();
        if (!isRefused(text, wire.isChat)) continue;
        this.recent.push(`${wire.path} ${text.slice(0, 300)}`);
        wire.send(text);
        sent++;
      }
      await wire.call("add");
    }
    for (const wire of this.#viewers) {
      if (!wire.isOpen) await wire.open(this.url);
      for (let sent = 0; sent < count; sent++) {
        const good = goodFrame(random, this.known(wire));
        const text = random(3) > 0 ? JSON.stringify(good) : broken(random, good).toWellFormed();
        this.recent.push(`${wire.path} ${text.slice(0, 300)}`);
        wire.send(text);
      }
      await wire.call("add");
      const isTold = () => wire.debts(true).length === 0;
      await until(isTold, "an answer").catch(() => this.faults.push(...wire.debts(true)));
    }
    const after = await dumps();
    for (const [at, rows] of after.entries()) {
      if (rows !== before[at])
        this.faults.push(`a frame that was refused, or of a viewer, changed rows of ${UNTOUCHED[at]}`);
    }
    for (const wire of [...this.#untouched, ...this.#viewers]) wire.settle();
  }

  /** Fails when the heap grows with what was sent. */
  checkMemory(): void {
    const used = heapUsed();
    if (this.#floor === 0) this.#floor = used;
    if (used > this.#floor + HEAP_GROWTH) this.faults.push(`the heap grew from ${this.#floor} to ${used} bytes`);
  }
}

/** Nobody takes such a frame: it can do nothing. */
function isRefused(text: string, isChat: boolean): boolean {
  const { kind } = parseFrame(text);
  if (kind === "other" || kind.includes("refused")) return true;
  return !isChat && (kind.startsWith("chat-") || kind === "session" || kind.startsWith("tool-"));
}

function heapUsed(): number {
  v8.setFlagsFromString("--expose-gc");
  (vm.runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

/** Sends `count` frames and requests made from a seed. @throws when a promise was broken, with what was sent last. */
export async function fuzz(
  seed: number,
  count: number,
): Promise<{ readonly sent: number; readonly kinds: ReadonlyMap<string, number> }> {
  const random = seeded(seed);
  const kinds = new Map<string, number>();
  const note = (kind: string) => kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const target = new Target();
  try {
    await target.open();
    const answers: Promise<unknown>[] = [];
    for (let sent = 1; sent <= count; sent++) {
      if (random(5) === 0) {
        const { path, ...known } = target.agent(random);
        const wanted = makeRequest(random, known, path);
        note(`HTTP ${wanted.method}`);
        answers.push(target.request(wanted));
      } else {
        const wire = target.wire(random);
        if (random(150) === 0) wire.cut();
        const good = goodFrame(random, target.known(wire));
        // A socket carries no half characters: what it makes of them is what the host is sent.
        const text = random(2) === 0 ? JSON.stringify(good) : broken(random, good).toWellFormed();
        const data = random(40) === 0 ? bytes(random) : text;
        note(typeof data === "string" ? parseFrame(data).kind : "bytes");
        await target.send(wire, data);
      }
      if (sent % BARRIER_EVERY === 0) {
        await Promise.all(answers.splice(0));
        await target.settle(false);
      }
      if (sent % ROUND === 0 || sent === count) {
        await Promise.all(answers.splice(0));
        await target.refuse(random, 10);
        if (sent % (ROUND * 10) === 0) target.checkMemory();
        await target.check();
      }
    }
    return { sent: count, kinds };
  } catch (error) {
    throw new Error(`seed ${seed}: npm run fuzz -- --seed ${seed} --count ${count}`, { cause: error });
  } finally {
    await target.close();
  }
}

function bytes(random: Random): Uint8Array {
  return Uint8Array.from({ length: random(100) }, () => random(256));
}
