import { fork, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { format, type Section, type Table } from "../foundation/section.ts";

const AGENTS = 2_000;
const CLIENTS = 50;
const ROUNDS = 3;
/** How long clients are measured with no backup, in each round. */
const QUIET_MS = 5_000;
const PAUSE_MS = 25;
const FLAGS = ["--conditions=perdure-source", "--disable-warning=ExperimentalWarning"];
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** What clients of other agents wait while all agents are copied. */
export const backup: Section = {
  title: "Backup under load",
  notes: [
    `${AGENTS} agents of about 20 KiB; ${CLIENTS} clients, each of another agent, write a row and wait for the answer, again and again. ` +
      "`perdure backup` runs beside them: the first copies every agent, the others what has changed since.",
    "Host, clients and the command share the two cores of the machine, so part of what is added is the work of the command itself.",
  ],
  async run(say): Promise<Table> {
    const folder = mkdtempSync(join(tmpdir(), "perdure-bench-backup-"));
    const dir = join(folder, "data");
    const host = fork(file("server.ts"), [dir, String(AGENTS)], { execArgv: FLAGS });
    try {
      const { url } = await new Promise<{ url: string }>((resolve) =>
        host.once("message", (told) => resolve(told as { url: string })),
      );
      const load = await startClients(url);
      const [without, first, later]: number[][] = [[], [], []];
      const took: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const quiet = load.begin();
        await sleep(QUIET_MS);
        without?.push(...quiet());
        const busy = load.begin();
        const begun = Date.now();
        await backUp(dir, join(folder, "backups"));
        took.push(Date.now() - begun);
        (round === 0 ? first : later)?.push(...busy());
        say(`round ${round}: a backup took ${took.at(-1)} ms`);
      }
      load.stop();
      const base = without ?? [];
      const row = (what: string, waits: readonly number[]) => {
        const added = at(waits, 0.99) - at(base, 0.99);
        return [
          what,
          String(waits.length),
          format(at(waits, 0.5)),
          format(at(waits, 0.99)),
          waits === base ? "" : format(added),
        ];
      };
      return {
        head: ["clients wait, ms", "calls", "p50", "p99", "p99 added"],
        rows: [row("no backup", base), row("the first backup", first ?? []), row("later backups", later ?? [])],
        notes: [
          `The backups took ${took.map((ms) => `${(ms / 1000).toFixed(1)} s`).join(", ")}.`,
          `Other work ran on the machine: its load was ${loadavg()[0]?.toFixed(0)} on two cores. On an idle one all of these are smaller.`,
        ],
      };
    } finally {
      host.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function backUp(dir: string, to: string): Promise<void> {
  const command = file("../../src/cli/perdure.ts");
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...FLAGS, command, "backup", "--dir", dir, "--to", to], { stdio: "ignore" });
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`The backup ended with ${code}.`))));
  });
}

/** Clients that call all the time. `begin` returns what gives the waits since then, in ms. */
async function startClients(url: string) {
  let waits: number[] = [];
  let over = false;
  const sockets = await Promise.all(
    Array.from({ length: CLIENTS }, (_, i) => open(`${url.replace("http", "ws")}/agents/box/b${i * 7}`)),
  );
  for (const socket of sockets) {
    void (async () => {
      for (let id = 0; !over; id++) {
        const begun = performance.now();
        await call(socket, String(id));
        waits.push(performance.now() - begun);
        await sleep(PAUSE_MS);
      }
    })();
  }
  return {
    begin() {
      const mine: number[] = (waits = []);
      return () => mine;
    },
    stop() {
      over = true;
      for (const socket of sockets) socket.terminate();
    },
  };
}

function open(url: string): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    socket.once("open", () => resolve(socket));
    socket.once("error", reject);
  });
}

function call(socket: WebSocket, id: string): Promise<void> {
  return new Promise((resolve) => {
    const heard = (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as { type: string; id?: string };
      if (frame.type !== "rpc" || frame.id !== id) return;
      socket.off("message", heard);
      resolve();
    };
    socket.on("message", heard);
    socket.send(JSON.stringify({ type: "rpc", id, method: "note", args: ["more"] }));
  });
}

function at(waits: readonly number[], share: number): number {
  const sorted = [...waits].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
