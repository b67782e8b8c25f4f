import { PerdureError } from "../../base/error.ts";
import type { AgentHost } from "../../port.ts";
import type { Probe } from "./probe.ts";

/** One client's end of a socket, as a suite needs it. */
export interface ConformanceClient {
  /** Frames so far, in the order they came: text as string, binary as bytes. */
  readonly received: readonly (string | Uint8Array)[];
  /** Set when the socket was closed. */
  readonly closed: { readonly code: number; readonly reason: string } | undefined;
  send(data: string | Uint8Array): void;
  close(): void;
}

/** A host under test. Everything else the suites see through the port and through the probe. */
export interface ConformanceHost {
  /** Wakes the probe called `name` and returns the port of its present life. */
  agent(name: string): AgentHost | Promise<AgentHost>;
  /**
   * The same storage in a new life of the host, as after a crash: nothing settles that did not ask for it. The old life is not
   * used again.
   */
  reopen(): Promise<ConformanceHost>;
  close(): Promise<void>;
  /** Connects a client to probe `name`, with `query` in the URL (no "?"); resolves once open. Optional if `sockets: false`. */
  connect?(name: string, query: string): Promise<ConformanceClient>;
}

/** What a case works with: the host that is open now, also after a `reopen`. */
export interface Bench {
  readonly probe: Probe;
  agent(name?: string): Promise<AgentHost>;
  reopen(): Promise<void>;
  connect(name: string, query?: string): Promise<ConformanceClient>;
}

/** What a host has to do, by its name. */
export type BenchCases = Readonly<Record<string, (bench: Bench) => void | Promise<void>>>;

/** Runs `work` on a host of its own and closes it whatever happens. */
export async function withBench(
  probe: Probe,
  open: () => Promise<ConformanceHost>,
  work: (bench: Bench) => void | Promise<void>,
): Promise<void> {
  let host = await open();
  try {
    await work({
      probe,
      agent: async (name = "a") => host.agent(name),
      reopen: async () => void (host = await host.reopen()),
      async connect(name, query = "") {
        if (host.connect !== undefined) return host.connect(name, query);
        throw new PerdureError("bad_config", "This host offers no connect(): add it, or run with { sockets: false }.");
      },
    });
  } finally {
    await host.close();
  }
}
