import { join } from "node:path";
import Database from "better-sqlite3";
import { withFolder } from "../foundation/agent.ts";
import { percentile } from "../foundation/measure.ts";
import { type Agents, ChatClient } from "./client.ts";
import type { Row } from "./row.ts";
import {
  bounded,
  FLOOR,
  OUR_THINK,
  OURS,
  type Program,
  peersIn,
  type Server,
  withServer,
  YOUNG_BOUND,
} from "./server.ts";

/** Folders of public servers of the protocol. */
export const PEERS = ["think", "ai-chat"] as const;

const STARTS = 5;
const IDLE_AGENTS = 2_000;
const CONNECT_AT_ONCE = 25;
const CONNECT_ATTEMPTS = 5;
/** All of them let agents leave memory before that. */
const ASLEEP_MS = 20_000;
const NEW_AGENTS = 40;
const AT_ONCE = 50;
const MESSAGES = 2_000;
const TURNS = 20;
const TOOL_TURNS = 30;
const SYNCS = 50;
/** An answer of some 460 characters, about as long as those of our long conversations. */
const WORDS = 90;
const SETTLED_MS = 1_000;
/** Turns of a fresh process that do not count. */
const WARM = 10;
const KIB = 1024;
const TURN = "chunks=50 tag=x";

interface FreshFigures {
  readonly connectMs: number;
  readonly firstMs: number;
  readonly atOnceMs: number;
}

/** What lines of other files have beside them. */
export interface PeerFigures {
  readonly stepsMs: number;
  readonly longTurnMs: number;
  readonly watchedKib: number;
}

/**
 * What a chat server takes to start, to wait and to answer somebody new: ours from the built package, the floor and the public
 * servers, each measured by the same client, one after the other.
 * @param folder where the public servers are.
 */
export async function chatRows(
  folder: string | undefined,
  say: (text: string) => void,
): Promise<{ readonly rows: Row[]; readonly peers: ReadonlyMap<string, PeerFigures> }> {
  const peers = peersIn(folder, PEERS);
  const all = new Map<string, Program>([["ours", OURS], ["floor", FLOOR], ...peers]);
  const withThink = new Map<string, Program>([["our Think", OUR_THINK], ...all]);
  return withFolder(async (dir) => {
    say("public servers are compiled, once");
    await measureAll(peers, join(dir, "first"), async () => undefined);
    const starts = new Map([...all.keys()].map((name) => [name, [] as number[]]));
    for (let i = 0; i < STARTS; i++) {
      say(`starts, ${i + 1} of ${STARTS}`);
      const some = await measureAll(all, join(dir, `start-${i}`), firstTurn);
      for (const [name, ms] of some) starts.get(name)?.push(ms);
    }
    say("agents that are connected and do nothing");
    const idle = await measureAll(all, join(dir, "idle"), measureIdle);
    const both = new Map([
      ["ours", bounded(OURS)],
      ["floor", bounded(FLOOR)],
    ]);
    const idleBounded = await measureAll(both, join(dir, "idle-bounded"), measureIdle);
    say("new conversations, one after the other and at once");
    const fresh = await measureAll(withThink, join(dir, "new"), measureNew);
    say("tools and long conversations of public servers");
    const rest = await measureAll(peers, join(dir, "rest"), measureRest);
    const sync = syncMs(join(dir, "sync.db"));

    /** The same figure of all of them. */
    const beside = <T>(measured: ReadonlyMap<string, T>, read: (figures: T) => number, ours = "ours") => {
      const of = (name: string) => {
        const figures = measured.get(name);
        return figures === undefined ? Number.NaN : read(figures);
      };
      const others = Object.fromEntries([...peers.keys()].map((name) => [name, of(name)]));
      return { ours: of(ours), floor: of("floor"), others };
    };
    const rows: Row[] = [
      {
        what: "process start to first turn done",
        ...{ unit: "ms", ...beside(starts, (times) => percentile(times, 50)), aim: { timesFloor: 1.6 } },
      },
      {
        what: "memory of the process at start",
        ...{ unit: "MiB", ...beside(idle, ({ startMib }) => startMib), aim: { timesFloor: 1.4 } },
      },
      {
        what: "memory per connected idle agent, of 2,000",
        ...{ unit: "KiB", ...beside(idle, ({ eachKib }) => eachKib), aim: { atMost: 20 } },
      },
      {
        what: `the same, with \`${YOUNG_BOUND}\``,
        unit: "KiB",
        ours: idleBounded.get("ours")?.eachKib ?? Number.NaN,
        floor: idleBounded.get("floor")?.eachKib ?? Number.NaN,
        aim: { atMost: 20 },
      },
      {
        what: "new agent: connect to first chunk, p50",
        ...{ unit: "ms", ...beside(fresh, ({ connectMs }) => connectMs), aim: { timesFloor: 2 } },
      },
      {
        what: "first chunk of a new conversation's fast reply, `Think`, p50",
        ...{ unit: "ms", ...beside(fresh, ({ firstMs }) => firstMs, "our Think") },
        aim: { timesFloor: 1.5, plus: sync },
      },
      {
        what: "50 new conversations with a tool at once, `Think`, p50",
        ...{ unit: "ms", ...beside(fresh, ({ atOnceMs }) => atOnceMs, "our Think"), aim: { timesFloor: 1.5 } },
      },
    ];
    return { rows, peers: rest };
  });
}

/** The same work with each of them, on data of its own. */
async function measureAll<T>(
  programs: ReadonlyMap<string, Program>,
  dir: string,
  work: (server: Server) => Promise<T>,
): Promise<Map<string, T>> {
  const measured = new Map<string, T>();
  for (const [name, program] of programs)
    measured.set(name, await withServer(program, join(dir, name.replace(" ", "-")), work));
  return measured;
}

async function firstTurn({ agents, begun }: Server): Promise<number> {
  const client = await ChatClient.open(agents, "first");
  await client.turn(TURN);
  const ms = performance.now() - begun;
  client.close();
  return ms;
}

async function measureIdle(server: Server): Promise<{ readonly startMib: number; readonly eachKib: number }> {
  await quiet(SETTLED_MS);
  const before = server.memoryKib();
  const clients: ChatClient[] = [];
  for (let from = 0; from < IDLE_AGENTS; from += CONNECT_AT_ONCE) {
    const some = Array.from({ length: CONNECT_AT_ONCE }, (_, i) => openAgain(server.agents, `idle-${from + i}`));
    clients.push(...(await Promise.all(some)));
  }
  await quiet(ASLEEP_MS);
  const eachKib = (server.memoryKib() - before) / IDLE_AGENTS;
  for (const client of clients) client.close();
  return { startMib: before / KIB, eachKib };
}

/** Some refuse connections when many come. */
async function openAgain(agents: Agents, name: string): Promise<ChatClient> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ChatClient.open(agents, name);
    } catch (error) {
      if (attempt === CONNECT_ATTEMPTS) throw error;
      await quiet(SETTLED_MS);
    }
  }
}

async function measureNew({ agents }: Server): Promise<FreshFigures> {
  const connects: number[] = [];
  const firsts: number[] = [];
  for (let i = 0; i < NEW_AGENTS; i++) {
    const begun = performance.now();
    const client = await ChatClient.open(agents, `new-${i}`);
    const connected = performance.now() - begun;
    const { firstMs } = await client.turn(TURN);
    connects.push(connected + firstMs);
    firsts.push(firstMs);
    client.close();
  }
  const clients = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => openAgain(agents, `at-once-${i}`)));
  const answers = await Promise.all(clients.map((client) => client.turn("chunks=50 tools=1 tag=x")));
  for (const client of clients) client.close();
  return {
    connectMs: percentile(connects.slice(WARM), 50),
    firstMs: percentile(firsts.slice(WARM), 50),
    atOnceMs: percentile(
      answers.map(({ ms }) => ms),
      50,
    ),
  };
}

async function measureRest({ agents }: Server): Promise<PeerFigures> {
  const steps = await ChatClient.open(agents, "steps");
  const stepTimes: number[] = [];
  for (let i = 0; i < TOOL_TURNS; i++) stepTimes.push((await steps.turn(`chunks=10 tools=3 tag=t${i}`)).ms);
  steps.close();

  const client = await ChatClient.open(agents, "long");
  const seeded = Array.from({ length: MESSAGES - 2 }, (_, at) => ({
    id: `m${at}`,
    role: at % 2 === 0 ? "user" : "assistant",
    parts: [{ type: "text", text: at % 2 === 0 ? `Question ${at}?` : `Answer ${at}: ${"word ".repeat(WORDS)}` }],
  }));
  await client.turn("chunks=1 tag=s", seeded);
  const stored = (await client.messages()).length;
  if (stored !== MESSAGES) throw new Error(`A public server stored ${stored} of ${MESSAGES} messages.`);
  const watcher = await ChatClient.open(agents, "long");
  await quiet(SETTLED_MS);
  const before = watcher.bytesDown;
  const times: number[] = [];
  for (let i = 0; i < TURNS; i++) times.push((await client.turn(TURN, await client.messages())).ms);
  await quiet(SETTLED_MS);
  const watchedKib = (watcher.bytesDown - before) / TURNS / KIB;
  client.close();
  watcher.close();
  return { stepsMs: percentile(stepTimes.slice(WARM), 50), longTurnMs: percentile(times, 50), watchedKib };
}

/** What one sync to this disk takes: the least that is behind a row which survives a power loss. */
function syncMs(file: string): number {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE row (at INTEGER)");
  const insert = db.prepare("INSERT INTO row VALUES (?)");
  const times = Array.from({ length: SYNCS }, (_, at) => {
    const begun = performance.now();
    insert.run(at);
    return performance.now() - begun;
  });
  db.close();
  return percentile(times, 50);
}

function quiet(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
