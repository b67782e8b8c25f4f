import { Fibers } from "../fiber/fibers.ts";
import { Queue } from "../fiber/queue.ts";
import { DEFAULT_RETRY, resolveRetry } from "../fiber/retry.ts";
import { Schedules } from "../fiber/schedules.ts";
import type { Work, WorkContext } from "../fiber/work.ts";
import type { AgentHost } from "../port.ts";
import type { AgentBase } from "./agent-base.ts";
import { Connections } from "./connection.ts";
import { carryWith, getCurrentAgent, runAs } from "./context.ts";
import { Lazy, type OnDemand } from "./lazy.ts";
import type { AgentParts } from "./parts.ts";
import { type StateOwner, StateKeeper } from "./state.ts";
import { SubAgents } from "./sub-agents.ts";
import type { Agent } from "./agent.ts";

/** Builds what an agent object is wired from. Fields of subclasses are not set yet when this runs. */
export function buildParts<State>(agent: AgentBase<State>, host: AgentHost): AgentParts<State> {
  carryWith(host.context);
  const options = (agent.constructor as typeof AgentBase).options;
  const context: WorkContext = {
    host,
    method: (name) => boundMethod(agent, host, name),
    changed: () => own.rearm(),
    retry: resolveRetry(options.retry, DEFAULT_RETRY),
    stopped: () => own.draining,
  };
  const schedules = new Lazy(() => new Schedules(context));
  const queue = new Lazy(() => new Queue(context));
  const fibers = new Lazy(() => new Fibers(context, { recoveryMaxAgeMs: options.fiberRecoveryMaxAgeMs }));
  const own: AgentParts<State> = {
    host,
    connections: new Connections(),
    state: new StateKeeper(host, stateOwner(agent)),
    get schedules() {
      return schedules.value;
    },
    get queue() {
      return queue.value;
    },
    get fibers() {
      return fibers.value;
    },
    children: new SubAgents(host),
    features: [],
    retry: context.retry,
    works: [schedules, queue, fibers],
    draining: false,
    halted: false,
    rearm() {
      // Also while draining: the time of what is left for the next start comes from here.
      if (!own.halted) host.alarm(host.blank ? null : earliest(own.works));
    },
  };
  return own;
}

function earliest(works: readonly OnDemand<Work>[]): number | null {
  let next: number | null = null;
  for (const work of works) {
    const at = work.value.next();
    if (at !== null && (next === null || at < next)) next = at;
  }
  return next;
}

function stateOwner<State>(agent: AgentBase<State>): StateOwner<State> {
  return {
    initialState: () => agent.initialState,
    validate: (next, source) => agent.validateStateChange(next, source),
    changed(state, source) {
      // Best effort: the change stands whatever becomes of this.
      void (async () => agent.onStateChanged(state, source))().catch((error: unknown) => agent.onError(error));
    },
    *readers() {
      for (const connection of agent.getConnections()) if (!connection.isQuiet) yield connection;
    },
    current() {
      const current = getCurrentAgent();
      return (current.agent as unknown) === agent ? current.connection : undefined;
    },
  };
}

/** The method as scheduled work calls it: as this agent, and for no connection. */
function boundMethod(agent: object, host: AgentHost, name: string): ((...args: unknown[]) => unknown) | undefined {
  const method: unknown = name in Object.prototype ? undefined : Reflect.get(agent, name);
  if (typeof method !== "function") return undefined;
  return (...args) => {
    const current = { ...getCurrentAgent(), agent: agent as Agent, connection: undefined, request: undefined };
    return runAs(host.context, current, () => Reflect.apply(method, agent, args) as unknown);
  };
}
