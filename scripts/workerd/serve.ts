// Serves a bundled Worker in the platform's own runtime: `PORT=8787 STATE_DIR=state npm run -s workerd:serve -- OUT`.
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

/** The platform behaves as it did on this day. */
export const COMPATIBILITY_DATE = "2026-06-11";

/** The runtime itself: what stands in `.bin` starts it, and would be killed in its place. */
const { default: program } = createRequire(import.meta.url)("workerd") as { readonly default: string };

/** How a Worker is served. */
export interface WorkerdOptions {
  readonly port: number;
  /** Where objects keep what they store. */
  readonly stateDir: string;
  readonly script: string;
  /** What the Worker writes to its console is not shown. */
  readonly quiet?: boolean;
}

/** Starts the runtime. It speaks once it listens; killing it is what a crash of the platform would be. */
export function startWorkerd({ port, stateDir, script, quiet = false }: WorkerdOptions): ChildProcess {
  mkdirSync(stateDir, { recursive: true });
  // The configuration names files beside itself.
  const config = join(mkdtempSync(join(tmpdir(), "perdure-workerd-")), "config.capnp");
  writeFileSync(config, configText(basename(script)));
  return spawn(
    program,
    [
      ...["serve", config],
      ...["--socket-addr", `http=127.0.0.1:${port}`, "--directory-path", `disk=${resolve(stateDir)}`],
      ...["--import-path", dirname(resolve(script))],
    ],
    { stdio: quiet ? "ignore" : ["ignore", "inherit", "inherit"] },
  );
}

function configText(script: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (writable = true)),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "/${script}")],
  compatibilityDate = "${COMPATIBILITY_DATE}",
  compatibilityFlags = ["nodejs_als"],
  bindings = [(name = "PERDURE", durableObjectNamespace = "PerdureObject")],
  durableObjectNamespaces = [(className = "PerdureObject", uniqueKey = "perdure", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
`;
}

if (process.argv[1] === import.meta.filename) {
  const { PORT = "8787", STATE_DIR = ".workerd" } = process.env;
  const script = process.argv[2];
  if (script === undefined) throw new Error("workerd:serve needs the file that workerd:build made");
  const server = startWorkerd({ port: Number(PORT), stateDir: STATE_DIR, script });
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => server.kill("SIGKILL"));
  server.on("exit", (code) => process.exit(code ?? 1));
}
