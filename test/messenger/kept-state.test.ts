import { Think } from "perdure";
import {
  type ChannelRoom,
  defineMessengers,
  messenger,
  MessengerStateAgent,
  type StateCall,
  ThinkMessengerStateAgent,
} from "perdure/messengers";
import { memoryStorage, serve, type ServedHost } from "perdure/node";
import { manualClock, memoryChannel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";

/** An agent whose channel keeps something; `ask` asks for it in each life. */
async function openRoom(where: (room: ChannelRoom) => StateCall) {
  const clock = manualClock();
  const storage = memoryStorage();
  let ask: StateCall | undefined;
  class Talk extends Think {
    override workspaceTools = false as const;
    override getMessengers() {
      const channel = { ...memoryChannel().channel(), open: (room: ChannelRoom) => void (ask = where(room)) };
      return defineMessengers({ there: messenger(channel, { allow: [] }) });
    }
  }
  const open = async (): Promise<ServedHost> => {
    const agents = { Talk, MessengerStateAgent };
    const host = await serve({ agents, storage, clock, port: 0, signals: false, idleMs: 1e9, log: false });
    await host.getAgentByName(Talk, "main").listDeliveries();
    return host;
  };
  let host = await open();
  onTestFinished(() => host.stop());
  return {
    clock,
    ask: ((op) => ask?.(op) ?? Promise.reject(new Error("It is not open."))) satisfies StateCall,
    url: () => host.url,
    async restart() {
      await host.stop();
      host = await open();
    },
  };
}

test.each<[string, (room: ChannelRoom) => StateCall]>([
  ["in rows of the agent", (room) => room.state],
  ["in a child", (room) => room.stateIn(MessengerStateAgent, "shard-1")],
])("%s: values, locks and lists are kept from one life to the next, and expire", async (_where, where) => {
  const { ask, clock, restart } = await openRoom(where);
  expect(await ask({ op: "get", key: "a" })).toBeNull();
  expect(await ask({ op: "set", key: "a", value: { n: 1 } })).toBe(true);
  expect(await ask({ op: "set", key: "a", value: 2, absent: true })).toBe(false);
  expect(await ask({ op: "set", key: "lock", value: "mine", ttlMs: 1_000, absent: true })).toBe(true);
  for (const value of [1, 2, 3]) await ask({ op: "append", key: "list", value, max: 2 });
  await restart();
  expect(await ask({ op: "get", key: "a" })).toEqual({ n: 1 });
  expect(await ask({ op: "get", key: "list" })).toEqual([2, 3]);
  expect(await ask({ op: "set", key: "lock", value: "yours", ttlMs: 1_000, absent: true })).toBe(false);
  // Only who has it lets go of it, or keeps it for longer.
  expect(await ask({ op: "extend", key: "lock", value: "yours", ttlMs: 9_000 })).toBe(false);
  await ask({ op: "delete", key: "lock", value: "yours" });
  expect(await ask({ op: "extend", key: "lock", value: "mine", ttlMs: 2_000 })).toBe(true);
  await clock.advance(1_500);
  expect(await ask({ op: "get", key: "lock" })).toBe("mine");
  await clock.advance(1_000);
  expect(await ask({ op: "extend", key: "lock", value: "mine", ttlMs: 2_000 })).toBe(false);
  expect(await ask({ op: "set", key: "lock", value: "yours", absent: true })).toBe(true);
  expect([await ask({ op: "shift", key: "list" }), await ask({ op: "shift", key: "list" })]).toEqual([2, 3]);
  expect(await ask({ op: "shift", key: "list" })).toBeNull();
  await ask({ op: "delete", key: "a" });
  expect(await ask({ op: "get", key: "a" })).toBeNull();
});

test("of two who want a lock at once, one has it", async () => {
  const { ask } = await openRoom((room) => room.state);
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) => ask({ op: "set", key: "lock", value: `${i}`, absent: true })),
  );
  expect(all.filter(Boolean)).toHaveLength(1);
});

test("nobody outside reaches what a child keeps", async () => {
  expect(ThinkMessengerStateAgent).toBe(MessengerStateAgent);
  const { ask, url } = await openRoom((room) => room.stateIn(MessengerStateAgent, "shard-1"));
  await ask({ op: "set", key: "a", value: 1 });
  const response = await fetch(`${url()}/agents/talk/main/sub/messenger-state-agent/shard-1/anything`);
  expect(response.status).toBe(403);
});

test("a class that the host does not know is refused when it is named", async () => {
  class Unknown extends MessengerStateAgent {}
  let refused: unknown;
  await openRoom((room) => {
    try {
      return room.stateIn(Unknown, "shard-1");
    } catch (thrown) {
      refused = thrown;
      return room.state;
    }
  });
  expect(refused).toMatchObject({ code: "unknown_agent" });
});
