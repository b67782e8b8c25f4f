// For programs of the crash matrix: a host whose agents tell the driver when they wake, what they have left to do,
// and what became of it. The driver calls methods of the agents by commands, as server code would.
// Programs import what they need by its file: hundreds of lives would load the whole package for nothing.
import { existsSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import type { AgentEnv } from "perdure";
import type { HostedAgentClass } from "perdure/host";
import type { Host, HostOptions } from "perdure/node";
import { Agent } from "../../src/agent/agent.ts";
import { errorText } from "../../src/base/error.ts";
import { subscribe } from "../../src/host/node/publish-events.ts";
import { crashPoint, onCommand, programDir, report } from "../../src/testing/crash/child.ts";
import { fastClock } from "./fast-clock.ts";
import type { Call, Command } from "./drive.ts";

/** Longer than any program of these tests lives. */
const NEVER_IDLE_MS = 1e9;
const LOOK_EVERY_MS = 5;

/** Whether an earlier process has used the same folder. Read before the host is opened. */
export const isLaterLife = existsSync(join(programDir(), "host.db"));

/** All agents that are in memory. Read directly, so that looking at one is no use of it that could wake it. */
const alive = new Map<string, Watched>();

/** Work that is not done, as an agent finds it in its rows. */
export interface Open {
  readonly id: string;
  readonly status: string;
}

/** Payloads of queued calls carry it, so that all of them can be listed. */
export const QUEUED = { in: "queue" } as const;

/** An agent that reports how it finds itself when it wakes. */
export class Watched<State = unknown> extends Agent<AgentEnv, State> {
  override onStart(): void {
    const agent = addressOf(this);
    alive.set(agent, this);
    report({ type: "woken", agent, open: this.open() });
  }

  open(): Open[] {
    return [
      ...this.listSchedules().filter(({ status }) => status !== "failed"),
      ...this.getQueues("in", QUEUED.in),
      ...this.listFibers()
        .filter(({ settledAt }) => settledAt === undefined)
        .map(({ fiberId, status }) => ({ id: fiberId, status })),
    ].map(({ id, status }) => ({ id, status }));
  }
}

const addressOf = (agent: Agent): string =>
  agent.selfPath.map(({ className, name }) => `${className}/${name}`).join("/");

/** What every watched host is opened with. */
export function watchedOptions(): Pick<HostOptions, "dir" | "onCommit" | "clock" | "idleMs"> {
  // Lives are killed, so none would leave its compiled modules behind for the next.
  flushCompileCache();
  return { dir: programDir(), onCommit: crashPoint(), clock: fastClock, idleMs: NEVER_IDLE_MS };
}

/** Reports what becomes of work, as it is told to subscribers: after the commit. */
export function reportEvents(): void {
  subscribe("queue:ran", ({ id, payload }) => report({ type: "settled", agent: id, ...payload }));
  subscribe("schedule:ran", ({ id, payload }) => report({ type: "settled", agent: id, ...payload }));
  subscribe("fiber:settled", ({ payload }) => report({ type: "settled", ...payload }));
  subscribe("fiber:method_missing", ({ payload }) => report({ type: "missing", ...payload }));
  subscribe("agent:failed", ({ id, payload }) => report({ type: "failed", agent: id, ...payload }));
}

/** Does what the driver says, on agents of these classes. `stopping` is called once a stop in order has begun. */
export function obey(
  host: Host,
  classes: Readonly<Record<string, HostedAgentClass>>,
  stopping: () => void = () => undefined,
): void {
  onCommand((message) => {
    const command = message as Command;
    if (command.type === "call") void answer(host, classes, command);
    else if (command.type === "idle?") reportIdle(host, command.id);
    else {
      void host.stop().then(() => process.exit(0));
      stopping();
    }
  });
  report({ type: "ready" });
}

async function answer(host: Host, classes: Readonly<Record<string, HostedAgentClass>>, call: Call): Promise<void> {
  const { id, agent, name, method, args } = call;
  try {
    const cls = classes[agent];
    if (cls === undefined) throw new Error(`There is no class ${agent}.`);
    // A stub answers every method name with a function.
    const stub = host.getAgentByName(cls, name) as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    report({ type: "acked", id, value: (await stub[method]?.(...args)) ?? null });
  } catch (error) {
    report({ type: "refused", id, error: errorText(error) });
  }
}

function isIdle(id: string): boolean {
  try {
    return alive.get(id)?.open().length === 0;
  } catch {
    // Its life is over: it is being deleted.
    return false;
  }
}

/** Reports once every agent that has rows is awake and has nothing left to do. */
function reportIdle(host: Host, id: number): void {
  const timer = setInterval(() => {
    if (!host.listAgents().every(isIdle)) return;
    clearInterval(timer);
    report({ type: "idle", id, agents: host.listAgents() });
  }, LOOK_EVERY_MS);
}
