import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStorage, serve } from "perdure/node";
import type { ServeOptions, Storage } from "perdure/node";
import type { ConformanceClient, ConformanceHost, ConformanceProbe } from "perdure/testing";
import { WebSocket } from "ws";

type Methods = Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>;

/** A host on disk. A new life opens a copy of the files, taken while the old host still runs: what a kill would leave. */
export async function openDiskHost(probe: ConformanceProbe): Promise<ConformanceHost> {
  const root = mkdtempSync(join(tmpdir(), "perdure-host-"));
  let lives = 0;
  const life = async (dir: string): Promise<ConformanceHost> =>
    start(
      probe,
      { dir },
      async (stop) => {
        const copy = join(root, `life-${++lives}`);
        cpSync(dir, copy, { recursive: true });
        await stop();
        return life(copy);
      },
      () => rmSync(root, { recursive: true, force: true }),
    );
  return life(join(root, "life-0"));
}

/** A host in memory. A new life is a second host on the same storage, after a stop that waits for nothing. */
export function openMemoryHost(probe: ConformanceProbe): Promise<ConformanceHost> {
  return openOn(probe, memoryStorage());
}

export function openOn(probe: ConformanceProbe, storage: Storage): Promise<ConformanceHost> {
  const reopen = async (stop: () => Promise<void>): Promise<ConformanceHost> => {
    await stop();
    return openOn(probe, storage);
  };
  return start(probe, { storage }, reopen, () => undefined);
}

export async function start(
  probe: ConformanceProbe,
  options: Pick<ServeOptions, "dir" | "storage" | "cluster">,
  reopen: (stop: () => Promise<void>) => Promise<ConformanceHost>,
  cleanUp: () => void,
): Promise<ConformanceHost> {
  const agents = { [probe.className]: probe.Agent };
  const host = await serve({ ...options, agents, port: 0, graceMs: 0, signals: false });
  return {
    call(name, method, args) {
      const methods = host.getAgentByName(probe.Agent, name) as unknown as Methods;
      return methods[method]?.(...args) ?? Promise.reject(new Error(`no ${method}`));
    },
    connect: (name, query) => openClient(`${host.url}/agents/probe/${encodeURIComponent(name)}?${query}`),
    reopen: () => reopen(() => host.stop()),
    async close() {
      await host.stop();
      cleanUp();
    },
  };
}

/** A client of a host that listens. */
export function openClient(url: string): Promise<ConformanceClient> {
  const socket = new WebSocket(url);
  const received: (string | Uint8Array)[] = [];
  let closed: ConformanceClient["closed"];
  socket.binaryType = "nodebuffer";
  socket.on("message", (data, isBinary) => {
    if (Buffer.isBuffer(data)) received.push(isBinary ? new Uint8Array(data) : data.toString("utf8"));
  });
  socket.on("close", (code, reason) => (closed = { code, reason: reason.toString("utf8") }));
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("open", () =>
      resolve({
        received,
        get closed() {
          return closed;
        },
        send: (data) => socket.send(data),
        close: () => socket.close(),
      }),
    );
  });
}
