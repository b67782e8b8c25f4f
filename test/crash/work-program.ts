// An agent with state, tables, a queue and schedules, for the crash matrix.
import type { HostedAgentClass } from "perdure/host";
import type { QueueRun, ScheduleRun } from "perdure/work";
import { createHost } from "../../src/host/node/create-host.ts";
import { report } from "../../src/testing/crash/child.ts";
import { fastClock } from "./fast-clock.ts";
import { isLaterLife, obey, QUEUED, reportEvents, Watched, watchedOptions } from "./watched-host.ts";

interface Count {
  readonly n: number;
}

/** What every callback of this agent is given. */
interface Job {
  readonly key: string;
  /** A recurring one cancels itself in this occurrence. */
  readonly times?: number;
}

/** In a later life the agent does not come up at once. */
let failingStarts = Number(process.env["FAILING_STARTS"] ?? 0);

type Run = QueueRun<Job> | ScheduleRun<Job>;

/** Released by the driver; in a later life nobody would. */
const release = Promise.withResolvers<void>();
if (isLaterLife) release.resolve();

class Worker extends Watched<Count> {
  override initialState: Count = { n: 0 };

  override onStart(): void {
    if (isLaterLife && failingStarts-- > 0) throw new Error("not yet");
    super.onStart();
  }

  setUp(): void {
    this.sql`CREATE TABLE IF NOT EXISTS run (key TEXT NOT NULL, occurrence TEXT NOT NULL)`;
  }

  // State and tables

  set(n: number): number {
    this.setState({ n });
    return n;
  }

  note(n: number): number {
    this.sql`INSERT INTO run (key, occurrence) VALUES (${`note ${n}`}, ${String(n)})`;
    return n;
  }

  /** Two tables and the state, or none of them. */
  setAndNote(n: number): number {
    return this.transaction(() => {
      this.note(n);
      this.setState({ n });
      this.note(n + 1);
      return n;
    });
  }

  // Work

  add(
    callback: "sync" | "async" | "flaky" | "asyncFlaky" | "doomed" | "held" | "planter",
    key: string,
  ): Promise<string> {
    const retry = { maxAttempts: 2, baseDelayMs: 500, maxDelayMs: 500 };
    return this.queue(callback, { key, ...QUEUED }, { retry });
  }

  /** Its second try is long after the first. */
  addSlow(key: string): Promise<string> {
    return this.queue(
      "flaky",
      { key, ...QUEUED },
      { retry: { maxAttempts: 2, baseDelayMs: 20_000, maxDelayMs: 20_000 } },
    );
  }

  addPoison(callback: "poison" | "asyncPoison"): Promise<string> {
    return this.queue(callback, { key: callback, ...QUEUED }, { id: callback });
  }

  spawnPoison(): string {
    return this.spawnFiber("asyncPoison", { key: "fiber" }, { idempotencyKey: "fiber" });
  }

  async plan(when: "delayed" | "date" | "cron" | "every", callback: "sync" | "async", key: string): Promise<string> {
    const once = { key };
    const twice = { key, times: 2 };
    if (when === "delayed") return (await this.schedule(1, callback, once)).id;
    if (when === "date") return (await this.schedule(new Date(fastClock.now() + 1000), callback, once)).id;
    if (when === "cron") return (await this.schedule("* * * * * *", callback, twice)).id;
    return (await this.scheduleEvery(1, callback, twice)).id;
  }

  async planLate(key: string): Promise<string> {
    return (await this.schedule(20, "sync", { key })).id;
  }

  release(): void {
    release.resolve();
  }

  // Callbacks

  sync(job: Job, run: Run): void {
    this.#begin(job, run);
    this.#done(job, run);
  }

  async async(job: Job, run: Run): Promise<void> {
    this.#begin(job, run);
    await new Promise((resolve) => setImmediate(resolve));
    this.#done(job, run);
  }

  /** What it does before it throws must be undone, the state in memory too. */
  flaky(job: Job, run: Run): void {
    this.setState({ n: this.state.n + 1 });
    this.sync(job, run);
    if (run.attempt === 1) throw new Error("not at the first try");
  }

  async asyncFlaky(job: Job, run: Run): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (run.attempt === 1) throw new Error("not at the first try");
    return this.async(job, run);
  }

  doomed(job: Job, run: Run): void {
    this.sync(job, run);
    throw new Error("never");
  }

  async held(job: Job, run: Run): Promise<void> {
    await release.promise;
    await this.async(job, run);
  }

  /** Asks for more work at its end: in a host that stops, that is for the next one. */
  async planter(job: Job, run: Run): Promise<void> {
    await this.held(job, run);
    await this.schedule(1, "sync", { key: "planted schedule" }, { idempotent: true });
    await this.queue("sync", { key: "planted item", ...QUEUED }, { id: "planted" });
  }

  /** Ends the process whenever it runs. */
  poison({ key }: Job, { attempt }: { attempt: number }): void {
    report({ type: "poisoned", key, attempt });
    process.kill(process.pid, "SIGKILL");
  }

  async asyncPoison(job: Job, run: { attempt: number }): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.poison(job, run);
  }

  #begin({ key }: Job, { occurrence, attempt, id }: Run): void {
    report({ type: "ran", key, occurrence, attempt, id });
  }

  #done({ key, times }: Job, { occurrence, id }: Run): void {
    // Asynchronous work may be cut right after this row: that is what the occurrence is for.
    const [known] = this.sql`SELECT 1 FROM run WHERE occurrence = ${occurrence}`;
    if (known !== undefined) report({ type: "again", key, occurrence });
    this.sql`INSERT INTO run (key, occurrence) VALUES (${key}, ${occurrence})`;
    const [row] = this.sql<{ n: number }>`SELECT count(DISTINCT occurrence) AS n FROM run WHERE key = ${key}`;
    if (times !== undefined && (row?.n ?? 0) >= times) void this.cancelSchedule(id);
  }

  // What is left

  result() {
    const isSetUp = this.sql`SELECT 1 FROM sqlite_master WHERE name = 'run'`.length > 0;
    const runs = isSetUp ? this.sql`SELECT key, occurrence FROM run ORDER BY rowid` : [];
    return { state: this.state, runs, open: this.open() };
  }

  item(id: string) {
    const { status, error } = this.getQueue(id) ?? this.inspectFiberByKey(id) ?? {};
    return { status, error };
  }
}

/** Registered when the other one is not, so that the host has a class at all. */
class Other extends Watched {}

const { IDLE_MS, MAX_AGENTS, WITHOUT_WORKER } = process.env;
const agents: Record<string, HostedAgentClass> = WITHOUT_WORKER === undefined ? { Worker } : { Other };
reportEvents();
const host = createHost({
  agents,
  ...watchedOptions(),
  ...(IDLE_MS === undefined ? {} : { idleMs: Number(IDLE_MS) }),
  ...(MAX_AGENTS === undefined ? {} : { limits: { agents: Number(MAX_AGENTS) } }),
});
obey(host, agents, () => release.resolve());
