import { Agent, type AgentEnv, callable } from "perdure";
import { memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, eventually, openHost } from "./open-host.ts";

/** A class that says which one it is, with calls that can be kept waiting. */
function makeDesk(text: string, started: (text: string) => void = () => {}) {
  return class Desk extends Agent<AgentEnv, { count: number }> {
    static {
      callable(this, "add");
    }
    override initialState = { count: 0 };
    override onStart(): void {
      started(text);
    }
    add(): string {
      this.setState({ count: this.state.count + 1 });
      return `${text} ${this.state.count}`;
    }
    wait(): Promise<never> {
      return new Promise(() => undefined);
    }
  };
}

test("agents in memory go on with the new class; their rows and sockets stay, calls under way fail", async () => {
  const Old = makeDesk("old");
  const New = makeDesk("new");
  const host = await openHost({ agents: { Desk: Old }, storage: memoryStorage() });
  const client = await connect(host, "/agents/desk/a");
  expect(await client.call("add")).toBe("old 1");
  const waiting = host.getAgentByName(Old, "a").wait();
  const failed = expect(waiting).rejects.toMatchObject({
    code: "agent_gone",
    message: "Desk/a was ended: its class was replaced by newer code.",
  });
  host.replaceAgents({ agents: { Desk: New } });
  await failed;
  expect(await client.call("add")).toBe("new 2");
  expect(client.closed).toBeUndefined();
  // Whoever still has the old class reaches the new one.
  expect(await host.getAgentByName(Old, "a").add()).toBe("new 3");
  expect(await host.getAgentByName(New, "b").add()).toBe("new 1");
});

test("classes that stay the same are left alone; what is asleep is not woken", async () => {
  const lives: string[] = [];
  const [Stays, Old, New] = ["stays", "old", "new"].map((text) => makeDesk(text, (one) => lives.push(one)));
  if (Stays === undefined || Old === undefined || New === undefined) throw new Error("three were made");
  const host = await openHost({ agents: { Stays, Desk: Old }, storage: memoryStorage() });
  await host.getAgentByName(Stays, "a").add();
  host.replaceAgents({ agents: { Stays, Desk: New } });
  expect(await host.getAgentByName(Stays, "a").add()).toBe("stays 2");
  expect(await host.getAgentByName(New, "a").add()).toBe("new 1");
  expect(lives).toEqual(["stays", "new"]);
});

test("a class that is taken away: its sockets are closed, its address is unknown, its rows come back with it", async () => {
  const Desk = makeDesk("desk");
  class Other extends Agent {}
  const host = await openHost({ agents: { Desk, Other }, storage: memoryStorage() });
  const client = await connect(host, "/agents/desk/a");
  await client.call("add");
  host.replaceAgents({ agents: { Other } });
  expect((await client.whenClosed()).code).toBe(1001);
  expect((await fetch(`${host.url}/agents/desk/a`)).status).toBe(400);
  expect(() => host.getAgentByName(Desk, "a")).toThrow("The class Desk is not registered.");
  host.replaceAgents({ agents: { Other }, subAgents: { Desk } });
  expect(await host.getAgentByName(Desk, "a").add()).toBe("desk 2");
  expect((await fetch(`${host.url}/agents/desk/a`)).status).toBe(400);
});

test("what could not start with the old code is tried at once with the new", async () => {
  let good = 0;
  class Broken extends Agent {
    override onStart(): void {
      if (this.sql`SELECT name FROM sqlite_master WHERE name = 'note'`.length > 0) throw new Error("broken");
      this.sql`CREATE TABLE note (text TEXT)`;
    }
    override onError(): void {}
    die(): void {
      throw new Error("die");
    }
  }
  class Fixed extends Agent {
    override onStart(): void {
      good++;
    }
  }
  const host = await openHost({ agents: { Desk: Broken }, storage: memoryStorage() });
  await host
    .getAgentByName(Broken, "a")
    .die()
    .catch(() => undefined);
  // Its next life does not start, and waits to be tried again.
  class Other extends Broken {}
  host.replaceAgents({ agents: { Desk: Other } });
  await expect(host.getAgentByName(Other, "a").die()).rejects.toThrow();
  host.replaceAgents({ agents: { Desk: Fixed } });
  await eventually(() => good === 1, "the new code started by itself");
});

test("names that clash change nothing", async () => {
  const Desk = makeDesk("desk");
  const host = await openHost({ agents: { Desk }, storage: memoryStorage() });
  const Two = makeDesk("two");
  expect(() => host.replaceAgents({ agents: { Desk: Two }, subAgents: { Desk } })).toThrow(/Two agent classes/);
  expect(await host.getAgentByName(Desk, "a").add()).toBe("desk 1");
});

test("`watch` without a directory is refused", async () => {
  await expect(openHost({ agents: { Desk: makeDesk("desk") }, watch: true })).rejects.toThrow(
    '`watch` needs `agents` to be a directory, such as "./agents".',
  );
});
