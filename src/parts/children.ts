import { PerdureError } from "../base/error.ts";
import { type AgentStub, createStub } from "../stub.ts";
import type { AgentHost, AgentPath, AgentStep, HostedAgentClass } from "../port.ts";
import { agentId } from "../wire/agent-path.ts";
import { addChild, type ChildRow, hasChild, listChildren, removeChild } from "../store/child.ts";

/** Names a child class: the class itself, or the name that it was registered under. */
export type ChildClass = HostedAgentClass | string;

/** Told to clients: short enough for the close of a socket, and without a word on which classes there are. */
const NO_SUCH_CHILD =
  "no such sub-agent; classes that clients may reach are listed in `static subAgents` of its parent";

/** The children of one agent: which there are, and how to reach them. */
export class SubAgents {
  readonly #host: AgentHost;

  constructor(host: AgentHost) {
    this.#host = host;
  }

  /** Notes the child, if it is new, and returns how to call it. It is woken by the first call. */
  async open<C extends HostedAgentClass>(cls: C, name: string): Promise<AgentStub<InstanceType<C>>> {
    const className = this.#host.classNameOf(cls);
    this.admit({ className, name });
    await this.#host.durable();
    return createStub(this.#path(className, name), (path, method, args) => this.#host.call(path, method, args));
  }

  /** Notes that there is such a child. @throws PerdureError `bad_input` for an impossible name. */
  admit(child: AgentStep): void {
    if (hasChild(this.#host, child.className, child.name)) return;
    agentId(this.#path(child.className, child.name));
    addChild(this.#host, child.className, child.name, this.#host.clock.now());
    this.#host.emit("subagent:created", { className: child.className, childName: child.name });
  }

  /** Clients reach a child that the agent has made, or one of a class that it declares. @returns the answer to others. */
  refuse({ className, name }: AgentStep, declared: readonly ChildClass[]): Response | undefined {
    if (this.has(className, name) || declared.some((cls) => this.nameOf(cls) === className)) return undefined;
    this.#host.emit("subagent:refused", { className, childName: name });
    return new Response(NO_SUCH_CHILD, { status: 404 });
  }

  has(cls: ChildClass, name: string): boolean {
    return hasChild(this.#host, this.nameOf(cls), name);
  }

  list(cls?: ChildClass): ChildRow[] {
    return listChildren(this.#host, cls === undefined ? undefined : this.nameOf(cls));
  }

  /** Ends the child's life in memory. Its rows stay, and it starts again on next use. */
  abort(cls: ChildClass, name: string, reason?: unknown): void {
    this.#host.abort(this.#path(this.nameOf(cls), name), reason);
  }

  /** Deletes the child and everything below it. Deleting what is not there does nothing. */
  async delete(cls: ChildClass, name: string): Promise<void> {
    const className = this.nameOf(cls);
    // The note goes last: after a crash in between, deleting again finds what is left.
    await this.#host.remove(this.#path(className, name));
    this.forget(className, name);
    await this.#host.durable();
  }

  forget(className: string, name: string): void {
    if (!hasChild(this.#host, className, name)) return;
    removeChild(this.#host, className, name);
    this.#host.emit("subagent:deleted", { className, childName: name });
  }

  /** The parent of this agent. @throws PerdureError `bad_state` when there is none, or it is of another class. */
  parent<C extends HostedAgentClass>(cls: C): AgentStub<InstanceType<C>> {
    const path = parentPath(this.#host.path);
    const parent = path?.at(-1);
    if (path === undefined || parent === undefined) {
      throw new PerdureError("bad_state", `${this.#host.id} is not a child, so it has no parent.`);
    }
    const className = this.#host.classNameOf(cls);
    if (parent.className !== className) {
      throw new PerdureError(
        "bad_state",
        `The parent of ${this.#host.id} is a ${parent.className}, not a ${className}.`,
      );
    }
    return createStub(path, (to, method, args) => this.#host.call(to, method, args));
  }

  /** The name that a class is registered under. @throws PerdureError `unknown_agent` */
  nameOf(cls: ChildClass): string {
    return typeof cls === "string" ? cls : this.#host.classNameOf(cls);
  }

  #path(className: string, name: string): AgentPath {
    return [...this.#host.path, { className, name }];
  }
}

/** The address above `path`, or undefined at the root. */
export function parentPath(path: AgentPath): AgentPath | undefined {
  const [root, ...rest] = path.slice(0, -1);
  return root === undefined ? undefined : [root, ...rest];
}
