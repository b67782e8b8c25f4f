import { serve } from "perdure/node";
import { Bench, withFolder } from "./agent.ts";
import { startClient } from "./client-process.ts";
import { memory, rate, until } from "./measure.ts";
import type { Figure } from "./section.ts";

const AGENTS = 1_000;
const SCHEDULES_EACH = 10;
const AT_ONCE = 50;
const IDLE_MS = 1_000;

/** A thousand agents with ten schedules each: what they cost in memory while nothing happens. */
export function measureIdle(): Promise<Figure[]> {
  return withFolder(async (dir) => {
    // Awake agents first; a second host on the same files lets them leave.
    const awake = await serve({ agents: { Bench }, dir, port: 0, signals: false, idleMs: 3_600_000 });
    await awake.getAgentByName(Bench, "warm").plan(1);
    const client = startClient();
    const urls = (url: string) =>
      Array.from({ length: AGENTS }, (_, i) => `${url.replace("http", "ws")}/agents/bench/idle-${i}`);
    const base = await memory();
    const scheduled = await rate(AGENTS * SCHEDULES_EACH, async () => {
      for (let i = 0; i < AGENTS; i += AT_ONCE) {
        const some = Array.from({ length: AT_ONCE }, (_, k) => awake.getAgentByName(Bench, `idle-${i + k}`));
        await Promise.all(some.map((agent) => agent.plan(SCHEDULES_EACH)));
      }
    });
    const live = await memory();
    await client.run({ type: "connect", urls: urls(awake.url) });
    const connected = await memory();
    await client.run({ type: "disconnect" });
    await awake.stop();

    const asleep = await serve({ agents: { Bench }, dir, port: 0, signals: false, idleMs: IDLE_MS });
    await asleep.getAgentByName(Bench, "warm").read();
    await until(() => asleep.status().live === 0);
    const empty = await memory();
    await client.run({ type: "connect", urls: urls(asleep.url) });
    await until(() => asleep.status().live === 0 && asleep.status().connections === AGENTS);
    const evictedConnected = await memory();
    await client.run({ type: "disconnect" });
    await until(() => asleep.status().live === 0 && asleep.status().kept === 0);
    const evicted = await memory();
    client.close();
    await asleep.stop();

    const each = (what: string, after: { heap: number }, before: { heap: number }): Figure => ({
      what: `memory of an agent: ${what}`,
      unit: "KiB",
      ours: Math.max(0, after.heap - before.heap) / AGENTS / 1024,
    });
    return [
      { what: `schedules, ${SCHEDULES_EACH} per new agent and commit`, unit: "schedules/s", ours: scheduled },
      each("awake", live, base),
      each("awake, one client connected", connected, base),
      each("asleep, one client connected", evictedConnected, empty),
      each("asleep", evicted, empty),
      {
        what: `memory of the process with ${AGENTS} agents awake and connected`,
        unit: "MiB",
        ours: connected.rss / 1024 ** 2,
      },
      { what: `memory of the process with ${AGENTS} agents asleep`, unit: "MiB", ours: evicted.rss / 1024 ** 2 },
    ];
  });
}
