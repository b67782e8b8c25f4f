import { PerdureError } from "../../base/error.ts";
import type { AgentHost } from "../../port.ts";

/** One client's end of a socket, as a suite needs it. */
export interface ConformanceClient {
  /** Frames so far, in the order they came: text as string, binary as bytes. */
  readonly received: readonly (string | Uint8Array)[];
  /** Set when the socket was closed. */
  readonly closed: { readonly code: number; readonly reason: string } | undefined;
  send(data: string | Uint8Array): void;
  close(): void;
}

/** A host under test. Everything else happens inside of the probe, on the port that the host gave to it. */
export interface ConformanceHost {
  /** Calls a method of the probe called `name`, waking it. Arguments and results are JSON; what it throws keeps its message. */
  call(name: string, method: string, args: readonly unknown[]): Promise<unknown>;
  /**
   * The same storage in a new life of the host, as after a crash: nothing settles that did not ask for it. The old life is not
   * used again. The probe may live in another process, which is killed here.
   */
  reopen(): Promise<ConformanceHost>;
  close(): Promise<void>;
  /** Connects a client to probe `name`, with `query` in the URL (no "?"); resolves once open. Optional if `sockets: false`. */
  connect?(name: string, query: string): Promise<ConformanceClient>;
}

/**
 * What a case does inside of an agent, on its own port. It may run in another process than the case: arguments and results are JSON,
 * and nothing around it is shared with its case.
 */
type Act = (agent: AgentHost, ...args: never[]) => unknown;
type Acts = Readonly<Record<string, Act>>;
type ArgsOf<A extends Act> = A extends (agent: AgentHost, ...args: infer Args) => unknown ? Args : never;

/** That an agent was started, or its alarm rang: told to an agent that looks on, so that asking wakes nobody else. */
export interface Note {
  readonly what: "started" | "alarm";
  /** Of the agent that it is about. */
  readonly id: string;
}

/** What a case works with: the host that is open now, also after a `reopen`. */
export interface Bench<A extends Acts = Acts> {
  act<K extends keyof A & string>(name: string, act: K, ...args: ArgsOf<A[K]>): Promise<Awaited<ReturnType<A[K]>>>;
  call(name: string, method: string, ...args: readonly unknown[]): Promise<unknown>;
  /** All notes about one agent, or about all. */
  notes(what: Note["what"], id?: string): Promise<Note[]>;
  reopen(): Promise<void>;
  connect(name: string, query?: string): Promise<ConformanceClient>;
}

/** One thing that a host has to do. */
export interface BenchCase {
  readonly acts: Acts;
  run(bench: Bench<Acts>): Promise<void>;
}

/** What a host has to do, by its name. */
export type BenchCases = Readonly<Record<string, BenchCase>>;

/** A case with parts inside of agents, called by their names, and a part that sees the host from outside. */
export function scenario<A extends Acts>(acts: A, run: (bench: Bench<A>) => Promise<void>): BenchCase {
  return { acts, run: (bench) => run(bench as unknown as Bench<A>) };
}

/** A case within one agent. */
export function inside(all: (agent: AgentHost) => unknown): BenchCase {
  return scenario({ all }, async (bench) => void (await bench.act("a", "all")));
}

/** A case within one agent that goes on in the host's next life. */
export function halves(first: (agent: AgentHost) => unknown, second: (agent: AgentHost) => unknown): BenchCase {
  return scenario({ first, second }, async (bench) => {
    await bench.act("a", "first");
    await bench.reopen();
    await bench.act("a", "second");
  });
}

/** The agent that looks on. Nothing is told of itself. */
export const WITNESS = "witness";

/** Runs a case on a host of its own and closes it whatever happens. */
export async function runCase(name: string, one: BenchCase, open: () => Promise<ConformanceHost>): Promise<void> {
  let host = await open();
  const call: Bench["call"] = (agent, method, ...args) => host.call(agent, method, args);
  try {
    await one.run({
      call,
      act: (agent, act, ...args) => call(agent, "act", name, act, ...args),
      async notes(what, id) {
        const all = (await call(WITNESS, "notes")) as Note[];
        return all.filter((note) => note.what === what && (id === undefined || note.id === id));
      },
      reopen: async () => void (host = await host.reopen()),
      async connect(agent, query = "") {
        if (host.connect !== undefined) return host.connect(agent, query);
        throw new PerdureError("bad_config", "This host offers no connect(): add it, or run with { sockets: false }.");
      },
    });
  } finally {
    await host.close();
  }
}
