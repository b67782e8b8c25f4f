// An agent with children and grandchildren, for the crash matrix.
import type { FiberContext } from "perdure";
import { createHost } from "../../src/host/node/create-host.ts";
import { report } from "../../src/testing/crash/child.ts";
import { obey, reportEvents, Watched, watchedOptions } from "./watched-host.ts";

interface Count {
  readonly n: number;
}

class Grand extends Watched<Count> {
  override initialState: Count = { n: 0 };

  set(n: number): number {
    this.setState({ n });
    return n;
  }

  read(): number {
    return this.state.n;
  }
}

class Kid extends Watched<Count> {
  override initialState: Count = { n: 0 };

  set(n: number): number {
    this.setState({ n });
    return n;
  }

  async plan(seconds: number): Promise<string> {
    return (await this.schedule(seconds, "due", seconds)).id;
  }

  due(seconds: number): void {
    report({ type: "due", kid: this.name, seconds });
  }

  spawn(): string {
    return this.spawnFiber("work", undefined, { idempotencyKey: "work" });
  }

  work(_: unknown, fiber: FiberContext): string {
    report({ type: "worked", kid: this.name, id: fiber.id });
    return "done";
  }

  async grow(name: string, n: number): Promise<number> {
    return (await this.subAgent(Grand, name)).set(n);
  }

  async read() {
    const grand: Record<string, number> = {};
    for (const { name } of this.listSubAgents()) grand[name] = await (await this.subAgent(Grand, name)).read();
    return { n: this.state.n, fibers: this.listFibers().map(({ fiberId, status }) => [fiberId, status]), grand };
  }
}

class Family extends Watched {
  async make(name: string, n: number): Promise<number> {
    return (await this.subAgent(Kid, name)).set(n);
  }

  async tell(name: string, method: "plan" | "spawn" | "grow" | "destroy", ...args: unknown[]): Promise<unknown> {
    const kid = await this.subAgent(Kid, name);
    // Called by name, so that one method serves the whole test.
    return (kid as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]?.(...args);
  }

  drop(name: string): Promise<void> {
    return this.deleteSubAgent(Kid, name);
  }

  async result() {
    const kids: Record<string, Awaited<ReturnType<Kid["read"]>>> = {};
    for (const { name } of this.listSubAgents()) kids[name] = await (await this.subAgent(Kid, name)).read();
    return { kids, agents: host.listAgents() };
  }
}

const agents = { Family };
reportEvents();
const host = createHost({ agents, subAgents: { Kid, Grand }, ...watchedOptions() });
obey(host, agents);
