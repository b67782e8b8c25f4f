import { PerdureError } from "../../base/error.ts";
import { hostable, hosted } from "../../port.ts";
import type { AgentHost, AgentPath, HostedAgent, HostedAgentClass, Socket } from "../../port.ts";

/** One stay of a probe in memory, and what the host asked of it. */
export interface ProbeLife {
  readonly host: AgentHost;
  started: boolean;
  alarms: number;
  readonly frames: (string | Uint8Array)[];
  readonly closes: { readonly code: number; readonly reason: string }[];
  halted: boolean;
}

/** Anything that a host can run, with a method that does nothing but wake it. */
export interface ProbeAgent {
  readonly [hosted]: HostedAgent;
  ping(): string;
}

/** The agent that the suites run on a host, and all of its lives: see {@link hostConformance}. */
export interface ConformanceProbe {
  /** The class to register, under {@link ConformanceProbe.className}. */
  readonly Agent: HostedAgentClass<ProbeAgent>;
  readonly className: string;
  /** Every life of every probe, oldest first; also those before a `reopen()`. */
  readonly lives: readonly ProbeLife[];
  /** The port that the host gave to the present life of `name`. @throws PerdureError `bad_state` if it never lived */
  host(name: string): AgentHost;
}

/** What a case can change in how probes behave. */
interface ProbeHooks {
  onAlarm?: (life: ProbeLife) => void;
  onConnect?: (life: ProbeLife, socket: Socket) => Promise<void>;
}

export interface Probe extends ConformanceProbe {
  readonly hooks: ProbeHooks;
  /** The newest life of the agent with this name, if it ever lived. */
  find(name: string): ProbeLife | undefined;
  readonly pathOf: (...names: [string, ...string[]]) => AgentPath;
}

const CLASS_NAME = "Probe";
const ALARM_TABLE = "probe_alarm";

export function createProbe(): Probe {
  const lives: ProbeLife[] = [];
  const hooks: ProbeHooks = {};
  class ProbeClass implements ProbeAgent {
    static readonly [hostable] = true;
    readonly [hosted]: HostedAgent;
    constructor(host: AgentHost) {
      const life: ProbeLife = { host, started: false, alarms: 0, frames: [], closes: [], halted: false };
      lives.push(life);
      this[hosted] = toHosted(life, hooks);
    }
    ping(): string {
      return "pong";
    }
  }
  const find = (name: string): ProbeLife | undefined =>
    lives.findLast(({ host }) => host.path.length === 1 && host.path[0].name === name);
  return {
    Agent: ProbeClass,
    className: CLASS_NAME,
    lives,
    hooks,
    find,
    host(name) {
      const life = find(name);
      if (life !== undefined) return life.host;
      throw new PerdureError("bad_state", `No probe "${name}" was ever made: the host must wake it first.`);
    },
    pathOf: (first, ...rest) => [{ className: CLASS_NAME, name: first }, ...rest.map(toStep)],
  };
}

/** Asks for an alarm as agents do: the time is a row, and every life asks again. So a host may wake an agent instead. */
export function askForAlarm(host: AgentHost, at: number | null): void {
  host.tx(() => {
    host.sql(`CREATE TABLE IF NOT EXISTS ${ALARM_TABLE} (at INTEGER)`);
    host.sql(`DELETE FROM ${ALARM_TABLE}`);
    if (at !== null) host.sql(`INSERT INTO ${ALARM_TABLE} (at) VALUES (?)`, at);
  });
  host.alarm(at);
}

function askAgain(host: AgentHost): void {
  if (host.sql("SELECT 1 FROM sqlite_master WHERE name = ?", ALARM_TABLE).length === 0) return;
  const [row] = host.sql<{ at: number }>(`SELECT at FROM ${ALARM_TABLE}`);
  if (row !== undefined) host.alarm(row.at);
}

function toStep(name: string): { className: string; name: string } {
  return { className: CLASS_NAME, name };
}

function toHosted(life: ProbeLife, hooks: ProbeHooks): HostedAgent {
  const { host } = life;
  return {
    async start() {
      life.started = true;
      askAgain(host);
    },
    request: (request) => Promise.resolve(new Response(`${request.method} ${host.id}`)),
    async connect(socket) {
      await hooks.onConnect?.(life, socket);
      socket.join(new URL(socket.uri, "http://host.invalid").searchParams.getAll("tag"));
    },
    async message(_, data) {
      life.frames.push(data);
    },
    async close(_, code, reason) {
      life.closes.push({ code, reason });
    },
    async alarm() {
      life.alarms += 1;
      hooks.onAlarm?.(life);
    },
    invoke: (method, args) => invoke(host, method, args),
    admitChild: () => Promise.resolve({}),
    drain: () => undefined,
    halt() {
      life.halted = true;
    },
  };
}

async function invoke(host: AgentHost, method: string, args: readonly unknown[]): Promise<unknown> {
  switch (method) {
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
      return host.sql("SELECT count(*) AS count FROM t")[0]?.count;
    case "hang":
      return new Promise<never>(() => undefined);
    default:
      throw new PerdureError("not_callable", `The probe has no method "${method}".`);
  }
}
