import { PerdureError } from "../../base/error.ts";
import { hostable, hosted } from "../../port.ts";
import type { AgentHost, AgentPath, HostedAgent, HostedAgentClass } from "../../port.ts";
import { type BenchCases, type Note, WITNESS } from "./bench.ts";

/** Anything that a host can run, with the method that {@link ConformanceHost.call} goes to. */
export interface ProbeAgent {
  readonly [hosted]: HostedAgent;
}

/** The agent that the suites run on a host: see {@link hostConformance}. */
export interface ConformanceProbe {
  /** The class to register, under {@link ConformanceProbe.className}. */
  readonly Agent: HostedAgentClass<ProbeAgent>;
  readonly className: string;
}

/** One stay of a probe in memory, and what the host asked of it. */
interface ProbeLife {
  readonly cls: HostedAgentClass;
  readonly frames: (string | Uint8Array)[];
  readonly closes: { readonly code: number; readonly reason: string }[];
  halted: boolean;
  /** Clients that connected with `wait` in their query are greeted when this resolves. */
  readonly door: PromiseWithResolvers<void>;
}

const CLASS_NAME = "Probe";
const ALARM_TABLE = "probe_alarm";
const NOTE_TABLE = "probe_note";

/** By the port that each was given. */
const lives = new WeakMap<AgentHost, ProbeLife>();

/** @throws PerdureError `bad_state` for a port that no probe was given */
export function lifeOf(agent: AgentHost): ProbeLife {
  const life = lives.get(agent);
  if (life !== undefined) return life;
  throw new PerdureError("bad_state", `${agent.id} is no probe.`);
}

export function pathOf(first: string, ...rest: readonly string[]): AgentPath {
  return [{ className: CLASS_NAME, name: first }, ...rest.map((name) => ({ className: CLASS_NAME, name }))];
}

/** A probe that can act in these cases. */
export function createProbe(cases: BenchCases): ConformanceProbe {
  class ProbeClass implements ProbeAgent {
    static readonly [hostable] = true;
    readonly [hosted]: HostedAgent;
    constructor(host: AgentHost) {
      const door = Promise.withResolvers<void>();
      const life: ProbeLife = { cls: new.target, frames: [], closes: [], halted: false, door };
      lives.set(host, life);
      this[hosted] = toHosted(host, life, cases);
    }
  }
  return { Agent: ProbeClass, className: CLASS_NAME };
}

/**
 * Asks for an alarm as agents do: the time is a row, and every life asks again. So a host may wake an agent instead.
 * @param again asks anew so many times, each so much later than the last rang
 */
export function askForAlarm(host: AgentHost, at: number | null, again = { times: 0, ms: 0 }): void {
  host.tx(() => {
    host.sql(`CREATE TABLE IF NOT EXISTS ${ALARM_TABLE} (at INTEGER, times INTEGER, ms INTEGER)`);
    host.sql(`DELETE FROM ${ALARM_TABLE}`);
    if (at !== null) host.sql(`INSERT INTO ${ALARM_TABLE} VALUES (?, ?, ?)`, at, again.times, again.ms);
  });
  host.alarm(at);
}

function asked(host: AgentHost): { at: number; times: number; ms: number } | undefined {
  if (host.sql("SELECT 1 FROM sqlite_master WHERE name = ?", ALARM_TABLE).length === 0) return undefined;
  return host.sql<{ at: number; times: number; ms: number }>(`SELECT * FROM ${ALARM_TABLE}`)[0];
}

async function tell(host: AgentHost, what: Note["what"]): Promise<void> {
  if (host.path.length === 1 && host.path[0].name === WITNESS) return;
  await host.call(pathOf(WITNESS), "note", [what, host.id]);
}

function toHosted(host: AgentHost, life: ProbeLife, cases: BenchCases): HostedAgent {
  return {
    async start() {
      await tell(host, "started");
      const alarm = asked(host);
      if (alarm !== undefined) host.alarm(alarm.at);
    },
    request: (request) => Promise.resolve(new Response(`${request.method} ${host.id}`)),
    async connect(socket) {
      const query = new URL(socket.uri, "http://host.invalid").searchParams;
      if (query.has("wait")) await life.door.promise;
      socket.join(query.getAll("tag"));
    },
    async message(_, data) {
      life.frames.push(data);
    },
    async close(_, code, reason) {
      life.closes.push({ code, reason });
    },
    async alarm() {
      const alarm = asked(host);
      if (alarm !== undefined && alarm.times > 0) {
        const { times, ms } = alarm;
        askForAlarm(host, host.clock.now() + ms, { times: times - 1, ms });
      }
      await tell(host, "alarm");
    },
    invoke: (method, args) => invoke(host, life, cases, method, args),
    admitChild: () => Promise.resolve({}),
    drain: () => undefined,
    halt() {
      life.halted = true;
    },
  };
}

async function invoke(
  host: AgentHost,
  life: ProbeLife,
  cases: BenchCases,
  method: string,
  args: readonly unknown[],
): Promise<unknown> {
  switch (method) {
    case "act": {
      const [name, act, ...rest] = args;
      const work = cases[String(name)]?.acts[String(act)] as
        | ((agent: AgentHost, ...given: unknown[]) => unknown)
        | undefined;
      if (work !== undefined) return work(host, ...rest);
      break;
    }
    case "ping":
      return "pong";
    case "echo":
      return args[0];
    case "change": {
      // Changes its argument in place: the caller must not see that.
      const [value] = args;
      if (Array.isArray(value)) value.push("changed");
      return value;
    }
    case "write":
      host.sql("CREATE TABLE IF NOT EXISTS t (value TEXT)");
      host.sql("INSERT INTO t (value) VALUES (?)", String(args[0]));
      return host.sql("SELECT count(*) AS count FROM t")[0]?.["count"];
    case "hang":
      return new Promise<never>(() => undefined);
    case "note":
      host.sql(`CREATE TABLE IF NOT EXISTS ${NOTE_TABLE} (what TEXT, id TEXT)`);
      host.sql(`INSERT INTO ${NOTE_TABLE} VALUES (?, ?)`, String(args[0]), String(args[1]));
      return undefined;
    case "notes":
      if (host.sql("SELECT 1 FROM sqlite_master WHERE name = ?", NOTE_TABLE).length === 0) return [];
      return host.sql(`SELECT what, id FROM ${NOTE_TABLE} ORDER BY rowid`);
    case "sockets":
      return host.sockets.all(args[0] as string | undefined).map(({ id }) => id);
    case "frames":
      return life.frames.map((frame) => (typeof frame === "string" ? frame : { bytes: [...frame] }));
    case "closes":
      return life.closes;
    case "remove":
      return host.remove(pathOf(String(args[0])));
    case "let in":
      return life.door.resolve();
    default:
  }
  throw new PerdureError("not_callable", `The probe has no method "${[method, ...args.slice(0, 2)].join(" ")}".`);
}
