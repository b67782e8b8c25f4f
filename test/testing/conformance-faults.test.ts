// The conformance suite must be able to fail: each fault below is planted in a host that otherwise passes.
import { memoryStorage } from "perdure/node";
import { hostConformance } from "perdure/testing";
import type { ConformanceHost, ConformanceProbe } from "perdure/testing";
import { expect, test } from "vitest";
import type { AgentHost } from "../../src/port.ts";
import { openMemoryHost, openOn } from "./conformance-hosts.ts";

type Fault = (host: AgentHost) => Partial<AgentHost>;

/** Cases that do not wait for something that a fault prevents: those would only show by a long wait. */
async function failing(open: (probe: ConformanceProbe) => Promise<ConformanceHost>, only: RegExp): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of hostConformance(open)) {
    if (!only.test(name)) continue;
    await run().catch(() => failed.push(name));
  }
  return failed;
}

/** The same host, except for what `fault` replaces in the port of each agent. */
function withFault(fault: Fault): (probe: ConformanceProbe) => Promise<ConformanceHost> {
  return (probe) => {
    class Faulty extends probe.Agent {
      constructor(host: AgentHost) {
        super({ ...forward(host), ...fault(host) });
      }
    }
    return openMemoryHost({ ...probe, Agent: Faulty });
  };
}

function forward(host: AgentHost): AgentHost {
  const { id, path, address, clock, emit, sockets, blobs, context, env } = host;
  return {
    id,
    path,
    address,
    get blank() {
      return host.blank;
    },
    clock,
    emit,
    report: (error, about) => host.report(error, about),
    sockets,
    blobs,
    context,
    env,
    sql: (query, ...args) => host.sql(query, ...args),
    tx: (work, level) => host.tx(work, level),
    durable: () => host.durable(),
    afterTx: (ended) => host.afterTx(ended),
    show: (work) => host.show(work),
    alarm: (at) => host.alarm(at),
    keepAwake: (work) => host.keepAwake(work),
    breathe: () => host.breathe(),
    call: (to, method, args) => host.call(to, method, args),
    classNameOf: (cls) => host.classNameOf(cls),
    abort: (to, reason) => host.abort(to, reason),
    remove: (to) => host.remove(to),
  };
}

const faults: readonly (readonly [string, Fault, RegExp, readonly string[]])[] = [
  [
    "tx that undoes nothing",
    () => ({ tx: (work) => work() }),
    /^(tx|gate: what a tx)/,
    [
      "tx: commits all or nothing (sync)",
      "tx: commits all or nothing (commit)",
      "tx: an inner one that throws undoes only itself",
      "tx: an outer one that throws undoes inner ones that were done",
      "tx: nests deeply",
      "tx: a promise is refused and its writes undone",
      "tx: works again after one was undone",
      "gate: what a tx sent leaves only if it commits",
    ],
  ],
  [
    "errors of SQLite that come out as they are",
    (host) => ({
      sql(query, ...args) {
        try {
          return host.sql(query, ...args);
        } catch (error) {
          throw new Error("SQLITE_ERROR", { cause: error });
        }
      },
    }),
    /^sql: (statements|what|two)/,
    [
      "sql: statements that reach around the host are refused and change nothing",
      "sql: two statements in one query are not half done",
      "sql: what SQLite refuses is sql_failed and changes nothing",
    ],
  ],
  [
    "queries that are several statements",
    (host) => ({ sql: (query, ...args) => query.split(";").map((one) => host.sql<never>(one, ...args))[0] ?? [] }),
    /^sql: (two|no)/,
    ["sql: two statements in one query are not half done"],
  ],
  [
    "queries of which only the first statement runs",
    (host) => ({ sql: (query, ...args) => host.sql(query.split(";")[0] ?? "", ...args) }),
    /^sql: (two|no)/,
    ["sql: two statements in one query are not half done"],
  ],
  [
    "text that loses what is not Latin",
    (host) => ({
      sql: (query, ...args) =>
        host.sql(query, ...args.map((arg) => (typeof arg === "string" ? arg.replace(/[^\0-\xff]/g, "?") : arg))),
    }),
    /^sql: (every|large)/,
    ["sql: every kind of value comes back as it was stored", "sql: large text and large bytes"],
  ],
  [
    "blobs that stay when deleted and follow the buffer",
    () => {
      const kept = new Map<string, Uint8Array>();
      const put = async (bytes: Uint8Array) => {
        const name = [...bytes.subarray(0, 64)].join("-");
        kept.set(name, bytes);
        return name;
      };
      return { blobs: { put, get: async (name) => kept.get(name), delete: async () => undefined } };
    },
    /^blobs: (only|deleted|empty)/,
    [
      "blobs: empty and large, there after a reopen without more ado",
      "blobs: only the window that was put, whatever becomes of the buffer",
      "blobs: deleted and unknown ones are undefined",
    ],
  ],
  [
    "an alarm that cannot be taken back",
    (host) => ({ alarm: (at) => (at === null ? undefined : host.alarm(at)) }),
    /^alarm: one that was taken back/,
    ["alarm: one that was taken back does not ring in the same life"],
  ],
  [
    "calls that share data",
    (host) => ({
      async call(to, method, args) {
        if (method !== "change" || !Array.isArray(args[0])) return host.call(to, method, args);
        args[0].push("changed");
        return args[0];
      },
    }),
    /^call: wakes/,
    ["call: wakes another agent, copies plain data both ways, hands on errors"],
  ],
];

test.for(faults)("caught: %s", async ([, fault, only, expected]) => {
  expect(await failing(withFault(fault), only)).toEqual(expected);
});

test("caught: a host that forgets everything", async () => {
  const forgetful = async (probe: ConformanceProbe): Promise<ConformanceHost> => ({
    ...(await openOn(probe, memoryStorage())),
    reopen: () => forgetful(probe),
  });
  expect(await failing(forgetful, /^(durable|id|gate: what a client|blobs: empty)/)).toEqual([
    "durable: what it covered is there after a reopen, at both levels and in order",
    "durable: nothing of an undone tx is there after a reopen",
    "durable: survives several lives, each writing",
    "durable: what a caller was told is there after a reopen",
    "blobs: empty and large, there after a reopen without more ado",
    "gate: what a client has seen is there after a reopen",
  ]);
});

test("caught: agents that share a database, and frames that change places", async () => {
  const WITNESS = "witness";
  const shared = async (probe: ConformanceProbe): Promise<ConformanceHost> => {
    const host = await openMemoryHost(probe);
    return { ...host, call: (name, method, args) => host.call(name === WITNESS ? name : "the only one", method, args) };
  };
  expect(await failing(shared, /^isolation: (each|a table|a tx)/)).toEqual([
    "isolation: each agent has a database of its own, whatever the names",
    "isolation: a table of one agent is unknown to another",
    "isolation: a tx that is undone leaves other agents' writes alone",
  ]);
  const shuffled = async (probe: ConformanceProbe): Promise<ConformanceHost> => {
    const host = await openMemoryHost(probe);
    return {
      ...host,
      async connect(name, query) {
        const client = await host.connect?.(name, query);
        if (client === undefined) throw new Error("the memory host has sockets");
        return {
          send: (data) => client.send(data),
          close: () => client.close(),
          get closed() {
            return client.closed;
          },
          get received() {
            return client.received.toReversed();
          },
        };
      },
    };
  };
  expect(await failing(shuffled, /^(sockets: (frames leave|close)|gate: what a tx)/)).toEqual([
    "sockets: frames leave in the order of the sends, between writes of every kind",
    "gate: what a tx sent leaves only if it commits",
    "sockets: close comes after everything sent before, and ends the socket for good",
  ]);
});

test("a host without sockets says so, or fails", async () => {
  const bare = async (probe: ConformanceProbe): Promise<ConformanceHost> => ({
    ...(await openMemoryHost(probe)),
    connect: undefined,
  });
  const names = (options?: { sockets: boolean }) => hostConformance(bare, options).map(({ name }) => name);
  expect(names({ sockets: false }).filter((name) => /^(sockets|gate)/.test(name))).toEqual([]);
  expect(await failing(bare, /^sockets: text/)).toEqual(["sockets: text stays text and bytes stay bytes"]);
});
