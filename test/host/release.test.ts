// The end of a life on a storage that is elsewhere: what it sent leaves when its rows are safe there, and not before.
import { Agent, callable } from "perdure";
import { memoryStorage, type Storage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, eventually, openHost, quiet } from "./open-host.ts";

let lives = 0;

class Note extends Agent {
  static {
    callable(this, "write");
  }
  override onStart(): void {
    lives++;
  }
  write(text: string): string {
    void this.sql`CREATE TABLE IF NOT EXISTS note (text TEXT)`;
    void this.sql`INSERT INTO note (text) VALUES (${text})`;
    this.broadcast(JSON.stringify({ wrote: text }));
    return text;
  }
}

class NewNote extends Note {}

/** Rows count as safe when the test says so; until then neither a sync nor the end of a life is done. */
function heldStorage() {
  const storage = memoryStorage();
  const safe = Promise.withResolvers<void>();
  let held = false;
  let released = 0;
  const open: Storage["open"] = (id, listener) => {
    const store = storage.open(id, listener);
    return new Proxy(store, {
      get(target, name) {
        if (name === "synced" && held) return -1;
        if (name === "durable") {
          return async () => {
            if (held) await safe.promise;
            await target.durable();
          };
        }
        if (name === "release") {
          return async () => {
            released++;
            await target.release();
            if (held) await safe.promise;
          };
        }
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  return {
    storage: { ...storage, open },
    hold: () => (held = true),
    get released() {
      return released;
    },
    settle(error?: Error): void {
      held = false;
      if (error === undefined) safe.resolve();
      else safe.reject(error);
    },
  };
}

async function endedWhileItWaits() {
  const rows = heldStorage();
  const failures: string[] = [];
  const host = await openHost({
    agents: { Note },
    storage: rows.storage,
    log: ({ stage, error }) => void failures.push(`${stage}: ${String(error)}`),
  });
  const client = await connect(host, "/agents/note/a");
  await client.call("write", "first");
  rows.hold();
  const before = lives;
  const second = client.call("write", "second").catch(() => "cut off");
  await quiet();
  host.replaceAgents({ agents: { Note: NewNote } });
  await eventually(() => rows.released > 0, "the life has let go of its rows");
  await quiet();
  expect(client.frames.filter(({ wrote }) => wrote === "second")).toEqual([]);
  // Its frames would overtake those that wait.
  expect(lives).toBe(before);
  return { rows, client, host, failures, second, before };
}

test("what a life sent leaves when its release resolves, and the next one begins after that", async () => {
  const { rows, client, before } = await endedWhileItWaits();
  rows.settle();
  await client.frame(({ wrote }) => wrote === "second");
  await eventually(() => lives > before, "the next life");
  expect(await client.call("write", "third")).toBe("third");
});

test("what a life sent is dropped when its release rejects; clients are sent away to come back, and it is said", async () => {
  const { rows, client, host, failures, second } = await endedWhileItWaits();
  rows.settle(new Error("nobody has it"));
  expect(await client.whenClosed()).toEqual({ code: 1011, reason: "storage failed" });
  expect(await second).toBe("cut off");
  expect(client.frames.filter(({ wrote }) => wrote === "second")).toEqual([]);
  expect(failures).toEqual(["sync: Error: nobody has it"]);
  const again = await connect(host, "/agents/note/a");
  expect(await again.call("write", "third")).toBe("third");
});

test("a host that stops waits for what lives have sent", async () => {
  const rows = heldStorage();
  const host = await openHost({ agents: { Note }, storage: rows.storage, graceMs: 0 });
  const client = await connect(host, "/agents/note/a");
  await client.call("write", "first");
  rows.hold();
  void client.call("write", "second").catch(() => undefined);
  await quiet();
  let stopped = false;
  const stopping = host.stop().then(() => (stopped = true));
  await eventually(() => rows.released > 0, "the life has let go of its rows");
  await quiet();
  expect(stopped).toBe(false);
  rows.settle();
  await stopping;
  await client.frame(({ wrote }) => wrote === "second");
});

test("an agent is claimed before its rows are opened, once for each life", async () => {
  const order: string[] = [];
  const storage = memoryStorage();
  const claimed: Storage = {
    ...storage,
    async claim(id) {
      await quiet(10);
      order.push(`claimed ${id}`);
    },
    open(id, listener) {
      order.push(`opened ${id}`);
      return storage.open(id, listener);
    },
  };
  const host = await openHost({ agents: { Note }, storage: claimed });
  await Promise.all([host.getAgentByName(Note, "a").write("one"), host.getAgentByName(Note, "a").write("two")]);
  expect(order).toEqual(["claimed Note/a", "opened Note/a"]);
});

test("who cannot be claimed is told why, and can be later", async () => {
  const storage = memoryStorage();
  let refuse = true;
  const claim = () => (refuse ? Promise.reject(new Error("it is elsewhere")) : Promise.resolve());
  const host = await openHost({ agents: { Note }, storage: { ...storage, claim } });
  await expect(host.getAgentByName(Note, "a").write("one")).rejects.toThrow("it is elsewhere");
  refuse = false;
  expect(await host.getAgentByName(Note, "a").write("two")).toBe("two");
});
