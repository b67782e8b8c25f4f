import { PerdureError } from "../../base/error.ts";
import type { HostedAgentClass } from "../../port.ts";
import type { AgentStub } from "../../stub.ts";
import type { Host, Target } from "./create-host.ts";

/** Reaches a child of the agent that a stub stands for; makes it if it is new. */
export type OpenChild = <C extends HostedAgentClass>(cls: C, name: string) => Promise<AgentStub<InstanceType<C>>>;

const openers = new WeakMap<object, OpenChild>();

/** Notes how children of the agent behind `stub` are reached. */
export function withChildren<T extends object>(stub: T, open: OpenChild): T {
  openers.set(stub, open);
  return stub;
}

/**
 * A child of an agent, for server code: `parent` is what `host.getAgentByName()` or this function returned. The child is
 * made if it is new. `onBeforeSubAgent` is not asked: who has the host may do anything.
 * @throws PerdureError `bad_input` when `parent` is no such stub, or for an impossible name; `unknown_agent`
 */
export async function getSubAgentByName<C extends HostedAgentClass>(
  parent: object,
  cls: C,
  name: string,
): Promise<AgentStub<InstanceType<C>>> {
  const open = openers.get(parent);
  if (open !== undefined) return open(cls, name);
  throw new PerdureError(
    "bad_input",
    "getSubAgentByName() needs a stub of host.getAgentByName() first. Inside of an agent use this.subAgent().",
  );
}

/** Answers a request to an agent of `host`; null for a path that is not an agent's. Sockets come in by `host.upgrade`. */
export async function routeAgentRequest(request: Request, host: Host, target?: Target): Promise<Response | null> {
  return (await host.route(request, target)) ?? null;
}
