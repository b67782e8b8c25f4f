import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { WebSocket } from "ws";
import { bundleWorker } from "../../scripts/workerd/bundle.ts";
import { startWorkerd } from "../../scripts/workerd/serve.ts";
import { until } from "../support/until.ts";
import type { Called } from "./called.ts";

const LOOK_AGAIN_MS = 50;

/** A frame that came, or text that is none. */
export type Frame = Readonly<Record<string, unknown>>;

/** A client's end of a socket, and what came. */
export interface Line {
  readonly frames: Frame[];
  readonly closed: () => number | undefined;
  send(frame: object | string): void;
  close(): void;
}

/** A Worker in the platform's own runtime, on storage that outlives kills. */
export class Workerd {
  readonly #script: string;
  readonly #stateDir: string;
  readonly port: number;
  #running: ReturnType<typeof startWorkerd> | undefined;

  constructor(script: string, stateDir: string, port: number) {
    this.#script = script;
    this.#stateDir = stateDir;
    this.port = port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    this.#running = startWorkerd({ port: this.port, stateDir: this.#stateDir, script: this.#script, quiet: true });
    for (;;) {
      const up = await fetch(`http://${this.address}/`).then(
        () => true,
        () => false,
      );
      if (up) return;
      await setTimeout(LOOK_AGAIN_MS);
    }
  }

  /** As a crash: nothing settles. */
  async kill(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    const gone = new Promise((resolve) => running.once("exit", resolve));
    running.kill("SIGKILL");
    await gone;
  }

  async ask(body: Called): Promise<{ readonly ok?: unknown; readonly error?: { message: string; code?: string } }> {
    const answer = await fetch(`http://${this.address}/call`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as { ok?: unknown };
  }

  /** Calls a method of an agent of the test Worker. */
  async call(cls: string, name: string, method: string, ...args: readonly unknown[]): Promise<unknown> {
    const { ok, error } = await this.ask({ cls, name, method, args });
    if (error !== undefined) throw Object.assign(new Error(error.message), { code: error.code });
    return ok;
  }

  async open(path: string): Promise<Line> {
    const ws = new WebSocket(`ws://${this.address}${path}`);
    const frames: Frame[] = [];
    let closed: number | undefined;
    ws.on("message", (data: Buffer) => {
      const text = data.toString("utf8");
      frames.push(text.startsWith("{") ? (JSON.parse(text) as Frame) : { text });
    });
    ws.on("close", (code) => (closed = code));
    ws.on("error", () => undefined);
    await until(() => ws.readyState === WebSocket.OPEN || closed !== undefined, `${path} opens`);
    return {
      frames,
      closed: () => closed,
      send: (frame) => ws.send(typeof frame === "string" ? frame : JSON.stringify(frame)),
      close: () => ws.close(),
    };
  }
}

/** Bundles a Worker of the tests, to be started on as many storages as are asked for. `stop` ends all of them. */
export async function bundled(entry: string): Promise<{
  readonly start: () => Promise<Workerd>;
  readonly stop: () => Promise<void>;
}> {
  const dir = mkdtempSync(join(tmpdir(), "perdure-cloudflare-"));
  const { file } = await bundleWorker(join(import.meta.dirname, entry), join(dir, "worker.js"));
  const started: Workerd[] = [];
  return {
    async start() {
      const worker = new Workerd(file, join(dir, `state-${started.length}`), await freePort());
      started.push(worker);
      await worker.start();
      return worker;
    },
    async stop() {
      for (const worker of started) await worker.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
