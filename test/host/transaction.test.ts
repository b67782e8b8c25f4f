import { Agent, type AgentEnv } from "perdure";
import type { StateSource } from "perdure";
import { memoryStorage, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { MemoryAgentFile } from "../../src/host/node/agent-file.ts";
import { AgentDatabase, type DatabaseEvents } from "../../src/host/node/database.ts";
import { memoryBlobs } from "../../src/host/node/disk-blobs.ts";
import { HandlePool } from "../../src/host/node/handle-pool.ts";
import { openEmpty, templateBytes } from "../../src/host/node/open-sqlite.ts";
import { connect, eventually, openHost, quiet } from "./open-host.ts";

const quietEvents: DatabaseEvents = {
  refusal: () => undefined,
  mark: () => 0,
  rolledBack() {},
  committed() {},
  firstWrite() {},
  sync: (rows: () => Promise<void>) => rows(),
};

const ROUNDS = 50;

class Ledger extends Agent<AgentEnv, { total: number }> {
  override initialState = { total: 0 };
  told: number[] = [];

  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS entry (amount INTEGER)`;
  }
  override onStateChanged({ total }: { total: number }, _source: StateSource): void {
    this.told.push(total);
  }
  override onError(): void {}

  book(amount: number, fail = false): number {
    return this.transaction(() => {
      this.sql`INSERT INTO entry VALUES (${amount})`;
      this.setState({ total: this.state.total + amount });
      this.broadcast(`booked ${amount}`);
      if (fail) throw new Error("no");
      return this.state.total;
    });
  }
  bookTwo(first: number, second: number, failSecond: boolean): number {
    return this.transaction(() => {
      this.book(first);
      try {
        this.book(second, failSecond);
      } catch {
        // The outer one stands.
      }
      return this.state.total;
    });
  }
  promise(): unknown {
    return this.transaction(async () => {
      this.sql`INSERT INTO entry VALUES (1)`;
      await Promise.resolve();
    });
  }
  async plan(): Promise<void> {
    await this.schedule(0, "bookAndFail", undefined, { retry: { maxAttempts: 1 } });
  }
  /** Synchronous scheduled work is one transaction with the record of its end. */
  bookAndFail(): void {
    this.setState({ total: 1000 });
    throw new Error("no");
  }
  all(): unknown {
    return {
      rows: this.sql<{ amount: number }>`SELECT amount FROM entry`.map(({ amount }) => amount),
      total: this.state.total,
      told: this.told,
    };
  }
}

test("rows, state in memory, frames and hooks: all of it, or nothing", async () => {
  const events: string[] = [];
  onTestFinished(subscribe("state:changed", ({ id }) => events.push(id)));
  const host = await openHost({ agents: { Ledger } });
  const client = await connect(host, "/agents/ledger/a");
  const stub = host.getAgentByName(Ledger, "a");
  expect(await stub.book(5)).toBe(5);
  await expect(stub.book(7, true)).rejects.toThrow("no");
  expect(await stub.all()).toEqual({ rows: [5], total: 5, told: [5] });
  expect(await stub.bookTwo(1, 2, true)).toBe(6);
  expect(await stub.bookTwo(3, 4, false)).toBe(13);
  expect(await stub.all()).toEqual({ rows: [5, 1, 3, 4], total: 13, told: [5, 6, 9, 13] });
  await client.frame(({ text }) => text === "booked 4");
  expect(client.frames.flatMap(({ text }) => (text === undefined ? [] : [text]))).toEqual([
    "booked 5",
    "booked 1",
    "booked 3",
    "booked 4",
  ]);
  expect(client.states()).toEqual([0, 5, 6, 9, 13].map((total) => ({ total })));
  expect(events).toHaveLength(4);
});

test("a promise is refused, and its writes are undone", async () => {
  const host = await openHost({ agents: { Ledger }, storage: memoryStorage() });
  const stub = host.getAgentByName(Ledger, "a");
  await expect(stub.promise()).rejects.toMatchObject({ code: "bad_state" });
  expect(await stub.all()).toEqual({ rows: [], total: 0, told: [] });
});

test("scheduled work that throws takes its state change back, in memory too", async () => {
  const ran: boolean[] = [];
  onTestFinished(subscribe("schedule:ran", ({ payload }) => ran.push(payload.ok)));
  const host = await openHost({ agents: { Ledger } });
  const client = await connect(host, "/agents/ledger/a");
  const stub = host.getAgentByName(Ledger, "a");
  await stub.book(5);
  await stub.plan();
  await eventually(() => ran.length === 1, "the schedule ran");
  await quiet(20);
  expect(ran).toEqual([false]);
  expect(await stub.all()).toEqual({ rows: [5], total: 5, told: [5] });
  expect(client.states()).toEqual([{ total: 0 }, { total: 5 }]);
});

test("a transaction that SQLite has undone by itself takes nothing more, nested ones included", () => {
  const pool = new HandlePool(1, openEmpty());
  const file = new MemoryAgentFile(templateBytes());
  const undone: number[] = [];
  const events = { ...quietEvents, mark: () => undone.length, rolledBack: (mark: number) => void undone.push(mark) };
  const database = new AgentDatabase("Stubborn/a", file, pool, memoryBlobs(), events);
  const amounts = () => database.sql<{ amount: number }>("SELECT amount FROM entry").map(({ amount }) => amount);
  database.sql("CREATE TABLE entry (amount INTEGER PRIMARY KEY)");
  database.sql("INSERT INTO entry VALUES (1)");
  const write = () => database.sql("INSERT INTO entry VALUES (3)");
  for (const more of [write, () => database.tx(write)]) {
    const work = () => {
      database.sql("INSERT INTO entry VALUES (2)");
      // As on a full disk.
      pool.handle(file, true).db.exec("ROLLBACK");
      more();
    };
    expect(() => database.tx(work)).toThrow(expect.objectContaining({ code: "sql_failed" }));
  }
  expect(amounts()).toEqual([1]);
  expect(undone.length).toBe(2);
  database.sql("INSERT INTO entry VALUES (4)");
  expect(amounts()).toEqual([1, 4]);
  pool.closeAll();
});

test("a statement that would have SQLite undo the transaction around it is refused, and the transaction goes on", async () => {
  class Stubborn extends Agent {
    goOn(): void {
      this.sql`CREATE TABLE entry (amount INTEGER PRIMARY KEY)`;
      this.transaction(() => {
        this.sql`INSERT INTO entry VALUES (2)`;
        expect(() => this.sql`INSERT OR ROLLBACK INTO entry VALUES (2)`).toThrow(
          expect.objectContaining({ code: "sql_refused" }),
        );
        this.sql`INSERT INTO entry VALUES (3)`;
      });
    }
    all(): number[] {
      return this.sql<{ amount: number }>`SELECT amount FROM entry`.map(({ amount }) => amount);
    }
  }
  const host = await openHost({ agents: { Stubborn } });
  const stub = host.getAgentByName(Stubborn, "a");
  await stub.goOn();
  expect(await stub.all()).toEqual([2, 3]);
});

test("code that runs out of stack leaves no transaction open: what is written next is really stored", async () => {
  class Endless extends Agent {
    /** `extra` moves the place where the stack ends, through all that a transaction does. */
    dig(extra: number): void {
      if (extra > 0) return this.dig(extra - 1);
      this.transaction(() => this.sql`CREATE TABLE IF NOT EXISTS mark (round INTEGER)`);
      this.dig(0);
    }
    mark(round: number): void {
      this.sql`INSERT INTO mark VALUES (${round})`;
    }
    count(): number {
      return this.sql`SELECT round FROM mark`.length;
    }
  }
  const storage = memoryStorage();
  const first = await openHost({ agents: { Endless }, storage });
  const stub = first.getAgentByName(Endless, "a");
  for (let round = 0; round < ROUNDS; round++) {
    await expect(stub.dig(round)).rejects.toThrow();
    await stub.mark(round);
  }
  await first.stop();
  const second = await openHost({ agents: { Endless }, storage });
  expect(await second.getAgentByName(Endless, "a").count()).toBe(ROUNDS);
});
