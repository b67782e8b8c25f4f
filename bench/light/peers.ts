import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { withFolder } from "../foundation/agent.ts";
import { percentile } from "../foundation/measure.ts";
import { type Agents, ChatClient } from "./client.ts";

/** Folders of other servers of the protocol. Each has a `start.sh` that listens on PORT and keeps its data in STATE_DIR. */
export const PEERS = ["think", "ai-chat"] as const;

const STARTS = 5;
const IDLE_AGENTS = 2_000;
const CONNECT_AT_ONCE = 25;
const CONNECT_ATTEMPTS = 5;
/** They let agents leave memory after ten seconds. */
const ASLEEP_MS = 20_000;
const NEW_AGENTS = 30;
const MESSAGES = 2_000;
const TURNS = 20;
const TOOL_TURNS = 30;
const WATCHERS_MS = 500;
const SETTLED_MS = 1_000;
/** Turns of a fresh process that do not count. */
const WARM = 10;
const START_TIMEOUT_MS = 300_000;
const KIB = 1024;
const TURN = "chunks=50 tag=x";

/** What is measured of another server, in the units of our rows. */
export interface PeerFigures {
  readonly firstTurnMs: number;
  readonly startMib: number;
  readonly idleKib: number;
  readonly newAgentMs: number;
  readonly longTurnMs: number;
  readonly watchedKib: number;
  readonly toolStepsMs: number;
}

interface PeerServer {
  readonly agents: Agents;
  /** When it was asked to start. */
  readonly begun: number;
  rssKib(): number;
  stop(): Promise<void>;
}

/**
 * Measures the other servers in `folder`, one after the other; those that are not there are left out.
 * @param say is told what is under way.
 */
export async function measurePeers(
  folder: string | undefined,
  say: (text: string) => void,
): Promise<Readonly<Record<string, PeerFigures>>> {
  const measured: Record<string, PeerFigures> = {};
  for (const name of PEERS) {
    if (folder === undefined || !existsSync(join(folder, name, "start.sh"))) continue;
    measured[name] = await withFolder((dir) => measurePeer(join(folder, name), dir, (what) => say(`${name}: ${what}`)));
  }
  return measured;
}

async function measurePeer(program: string, dir: string, say: (text: string) => void): Promise<PeerFigures> {
  let folders = 0;
  const withServer = async <T>(work: (server: PeerServer) => Promise<T>): Promise<T> => {
    const server = await startPeer(program, join(dir, `state-${++folders}`));
    try {
      return await work(server);
    } finally {
      await server.stop();
    }
  };
  // It bundles itself at its first start.
  await withServer(async () => {});

  say("starts");
  const firstTurns: number[] = [];
  for (let i = 0; i < STARTS; i++) firstTurns.push(await withServer(firstTurn));
  say("connected agents that do nothing");
  const idle = await withServer(measureIdle);
  say("turns");
  const turns = await withServer(async ({ agents }) => ({
    newAgentMs: await measureNew(agents),
    toolStepsMs: await measureSteps(agents),
    ...(await measureLong(agents)),
  }));
  return { firstTurnMs: percentile(firstTurns, 50), ...idle, ...turns };
}

async function firstTurn({ agents, begun }: PeerServer): Promise<number> {
  const client = await ChatClient.open(agents, "first");
  await client.turn(TURN);
  const ms = performance.now() - begun;
  client.close();
  return ms;
}

async function measureIdle(server: PeerServer): Promise<Pick<PeerFigures, "startMib" | "idleKib">> {
  await quiet(SETTLED_MS);
  const startKib = server.rssKib();
  const clients: ChatClient[] = [];
  for (let from = 0; from < IDLE_AGENTS; from += CONNECT_AT_ONCE) {
    const some = Array.from({ length: CONNECT_AT_ONCE }, (_, i) => openAgain(server.agents, `idle-${from + i}`));
    clients.push(...(await Promise.all(some)));
  }
  await quiet(ASLEEP_MS);
  const idleKib = (server.rssKib() - startKib) / IDLE_AGENTS;
  for (const client of clients) client.close();
  return { startMib: startKib / KIB, idleKib };
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

/** From connecting to an agent that there was not to the first chunk of its first answer. */
async function measureNew(agents: Agents): Promise<number> {
  const firsts: number[] = [];
  for (let i = 0; i < NEW_AGENTS; i++) {
    const begun = performance.now();
    const client = await ChatClient.open(agents, `new-${i}`);
    const connected = performance.now();
    firsts.push(connected - begun + (await client.turn(TURN)).firstMs);
    client.close();
  }
  return percentile(firsts.slice(WARM), 50);
}

async function measureSteps(agents: Agents): Promise<number> {
  const client = await ChatClient.open(agents, "steps");
  const times: number[] = [];
  for (let i = 0; i < TOOL_TURNS; i++) times.push((await client.turn(`chunks=10 tools=3 tag=t${i}`)).ms);
  client.close();
  return percentile(times.slice(WARM), 50);
}

async function measureLong(agents: Agents): Promise<Pick<PeerFigures, "longTurnMs" | "watchedKib">> {
  const client = await ChatClient.open(agents, "long");
  const seeded = Array.from({ length: MESSAGES - 2 }, (_, at) => ({
    id: `m${at}`,
    role: at % 2 === 0 ? "user" : "assistant",
    parts: [{ type: "text", text: at % 2 === 0 ? `Question ${at}?` : `Answer ${at}: ${"word ".repeat(90)}` }],
  }));
  await client.turn("chunks=1 tag=s", seeded);
  // A server that takes nobody's word for what it has said itself.
  for (let left = MESSAGES - (await client.messages()).length; left > 0; left -= 2)
    await client.turn("chunks=90 tag=s");
  const watcher = await ChatClient.open(agents, "long");
  await quiet(WATCHERS_MS);
  const times: number[] = [];
  const before = watcher.bytesDown;
  for (let i = 0; i < TURNS; i++) times.push((await client.turn(TURN, await client.messages())).ms);
  await quiet(WATCHERS_MS);
  const watchedKib = (watcher.bytesDown - before) / TURNS / KIB;
  client.close();
  watcher.close();
  return { longTurnMs: percentile(times, 50), watchedKib };
}

async function startPeer(program: string, stateDir: string): Promise<PeerServer> {
  mkdirSync(stateDir, { recursive: true });
  const port = await freePort();
  const begun = performance.now();
  const child = spawn(join(program, "start.sh"), {
    env: { ...process.env, PORT: String(port), STATE_DIR: stateDir },
    // A group of its own: what it starts ends with it.
    detached: true,
    stdio: "ignore",
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} does not start.`);
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(url))) {
    if (child.exitCode !== null) throw new Error(`${program} ended at its start; run its start.sh by hand to see why.`);
    if (performance.now() - begun > START_TIMEOUT_MS) throw new Error(`${program} does not listen.`);
    await quiet(2);
  }
  return {
    agents: `${url}/agents/bench-agent`,
    begun,
    rssKib: () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]),
    async stop() {
      const gone = once(child, "exit");
      process.kill(-pid, "SIGKILL");
      await gone;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

function quiet(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
