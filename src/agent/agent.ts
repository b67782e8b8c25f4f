import { type AgentHost, type AgentStep, hosted, type HostedAgent, type HostedAgentClass } from "../port.ts";
import type { ChildRow } from "../store/child.ts";
import type { AgentStub } from "../stub.ts";
import { Hosting } from "./hosted.ts";
import { parts } from "./parts.ts";
import type { ChildClass } from "./sub-agents.ts";
import { WorkingAgent } from "./working-agent.ts";

/**
 * One named, durable agent. Extend it, register the class with a host, and every name is an instance with
 * its own database, connections, timers and background work.
 *
 * ```ts
 * class Counter extends Agent<{ count: number }> {
 *   static { callable(this, "add"); }
 *   override initialState = { count: 0 };
 *   add(by: number) {
 *     this.setState({ count: this.state.count + by });
 *     return this.state.count;
 *   }
 * }
 * ```
 */
export class Agent<State = unknown, Props = unknown> extends WorkingAgent<State, Props> {
  /** @internal */
  readonly [hosted]: HostedAgent;

  constructor(host: AgentHost) {
    super(host);
    this[hosted] = new Hosting(this);
  }

  // Children

  /**
   * A child of this agent, with its own database, connections, timers and children; made on first use. Call
   * its methods on what this returns.
   * @throws PerdureError `unknown_agent` when the class is not registered, `bad_input` for an impossible name.
   */
  subAgent<C extends HostedAgentClass>(cls: C, name: string): Promise<AgentStub<InstanceType<C>>> {
    return this[parts].children.open(cls, name);
  }

  hasSubAgent(cls: ChildClass, name: string): boolean {
    return this[parts].children.has(cls, name);
  }

  /** The children in the order of their making. */
  listSubAgents(cls?: ChildClass): ChildRow[] {
    return this[parts].children.list(cls);
  }

  /** Ends a child's life in memory: its calls fail. Its rows stay, and it starts again on next use. */
  abortSubAgent(cls: ChildClass, name: string, reason?: unknown): void {
    this[parts].children.abort(cls, name, reason);
  }

  /** Deletes a child with all that it stored, and its children. Deleting what is not there does nothing. */
  deleteSubAgent(cls: ChildClass, name: string): Promise<void> {
    return this[parts].children.delete(cls, name);
  }

  /** The agent that this one is a child of. @throws PerdureError `bad_state` when it is none, or of another class. */
  parentAgent<C extends HostedAgentClass>(cls: C): AgentStub<InstanceType<C>> {
    return this[parts].children.parent(cls);
  }

  /**
   * Before a request or a socket from outside reaches a child: return a Response to refuse, a Request to
   * replace it, nothing to let it pass. Not asked for frames on an open socket. What it throws is answered with 500
   * (or a close that lets the client try again) and goes to {@link Agent.onError}.
   */
  onBeforeSubAgent(
    _request: Request,
    _child: AgentStep,
  ): Request | Response | undefined | void | Promise<Request | Response | undefined | void> {}

  /** Deletes this agent, its children, everything stored, and closes its connections. It may be made anew by its name. */
  destroy(): Promise<void> {
    const { host } = this[parts];
    return host.remove(host.path);
  }
}
