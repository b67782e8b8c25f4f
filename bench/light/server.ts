import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Agents } from "./client.ts";

/** A server that can be started again and again. It listens on PORT and keeps its data in STATE_DIR. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** Where it has its agents. */
  readonly path: string;
}

/** One that runs, in a process of its own. */
export interface Server {
  readonly agents: Agents;
  /** When it was asked to start. */
  readonly begun: number;
  /** As the operating system counts it. */
  memoryKib(): number;
  stop(): Promise<void>;
}

/** By default V8 takes more on a machine with more memory: 64 MiB twice, with some GiB. */
export const YOUNG_BOUND = "--max-semi-space-size=16";
const bench = join(import.meta.dirname, "..");
const START_TIMEOUT_MS = 300_000;
const ASK_AGAIN_MS = 2;

/** Our own, as an app runs it: from `dist`. */
export const OURS: Program = {
  command: process.execPath,
  args: [join(bench, "chat", "server.ts")],
  path: "/agents/bench-agent",
};
/** The same with the steps run by the engine. */
export const OUR_THINK: Program = { ...OURS, path: "/agents/bench-think" };
/** The least server that holds a chat. */
export const FLOOR: Program = {
  command: process.execPath,
  args: [join(bench, "light", "floor.ts")],
  path: "/agents/bench-agent",
};

/** The same program, with a bound for what V8 lets new objects take before it looks which of them are still used. */
export function bounded(program: Program): Program {
  return { ...program, args: [YOUNG_BOUND, ...program.args] };
}

/** Other servers in `folder`, by their names; those that are not there are left out. */
export function peersIn(folder: string | undefined, names: readonly string[]): Map<string, Program> {
  const found = new Map<string, Program>();
  for (const name of names) {
    const command = join(folder ?? "", name, "start.sh");
    if (folder !== undefined && existsSync(command))
      found.set(name, { command, args: [], path: "/agents/bench-agent" });
  }
  return found;
}

/** Starts it; resolves when it answers. It has no goodbye: all are killed, with whatever they started. */
export async function start({ command, args, path }: Program, stateDir: string): Promise<Server> {
  mkdirSync(stateDir, { recursive: true });
  const port = await freePort();
  const begun = performance.now();
  const env = { ...process.env, PORT: String(port), STATE_DIR: stateDir };
  const child = spawn(command, args, { env, detached: true, stdio: "ignore" });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} cannot be started.`);
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(url))) {
    if (child.exitCode !== null) throw new Error(`${[command, ...args].join(" ")} ended: start it by hand to see why.`);
    if (performance.now() - begun > START_TIMEOUT_MS) throw new Error(`${command} does not listen.`);
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
  return {
    agents: `${url}${path}`,
    begun,
    memoryKib: () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]),
    async stop() {
      const gone = once(child, "exit");
      process.kill(-pid, "SIGKILL");
      await gone;
    },
  };
}

/** Works with one that is killed behind it, whatever happens. */
export async function withServer<T>(program: Program, dir: string, work: (server: Server) => Promise<T>): Promise<T> {
  const server = await start(program, dir);
  try {
    return await work(server);
  } finally {
    await server.stop();
  }
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
