// Checked by the compiler (`npm run check`), never run.
import { Agent, type AgentEnv } from "perdure";
import type { AgentStub, ChildRow } from "perdure";
import type { Host } from "perdure/node";
import { expectTypeOf } from "vitest";

interface Report {
  readonly id: string;
  readonly lines: string[];
}

class Child extends Agent<AgentEnv, { n: number }> {
  readonly label = "child";
  sync(a: number, b?: string): Report {
    return { id: `${a}${b ?? ""}`, lines: [] };
  }
  async async(): Promise<Report> {
    return this.sync(1);
  }
  nothing(): void {}
  get computed(): number {
    return 1;
  }
  generic<T>(value: T): T {
    return value;
  }
}

class Parent extends Agent {
  async members(): Promise<void> {
    const child = await this.subAgent(Child, "c");
    expectTypeOf(child).toEqualTypeOf<AgentStub<Child>>();
    expectTypeOf(await child.sync(1)).toEqualTypeOf<Report>();
    // @ts-expect-error only what can be called
    void child.label;
    expectTypeOf(this.listSubAgents()).toEqualTypeOf<ChildRow[]>();
    expectTypeOf(this.hasSubAgent(Child, "c")).toBeBoolean();
    expectTypeOf(this.parentAgent(Parent)).toEqualTypeOf<AgentStub<Parent>>();
    // @ts-expect-error not an agent class
    await this.subAgent(Date, "c");
    // @ts-expect-error an instance has a name
    await this.subAgent(Child);
  }
}

export async function stubs(host: Host): Promise<void> {
  const stub = host.getAgentByName(Child, "a", { props: { any: "thing" } });
  expectTypeOf(stub).toEqualTypeOf<AgentStub<Child>>();
  expectTypeOf(stub.sync).parameters.toEqualTypeOf<[a: number, b?: string]>();
  expectTypeOf(stub.sync).returns.toEqualTypeOf<Promise<Report>>();
  expectTypeOf(stub.async).returns.toEqualTypeOf<Promise<Report>>();
  expectTypeOf(stub.nothing).returns.toEqualTypeOf<Promise<void>>();
  expectTypeOf(stub.setState).parameters.toEqualTypeOf<[state: { n: number }]>();
  expectTypeOf(stub.destroy).returns.toEqualTypeOf<Promise<void>>();

  // @ts-expect-error wrong argument
  await stub.sync("one");
  // @ts-expect-error missing argument
  await stub.sync();
  // @ts-expect-error no such method
  await stub.missing();
  // @ts-expect-error a field is not a method
  void stub.label;
  // @ts-expect-error a getter is not a method
  void stub.computed;
  // @ts-expect-error state is read through a method
  void stub.state;
  // @ts-expect-error not an agent class
  host.getAgentByName(Date, "a");
}

export { Child, Parent };
