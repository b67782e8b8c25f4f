import { Agent, type AgentEnv, callable } from "perdure";
import { memoryStorage, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connect, eventually, openHost, quiet } from "./open-host.ts";

// Mistakes in the code of an agent that must stay with that agent. An unhandled rejection fails the run.

test("a validateStateChange that returns a promise refuses every change instead of none", async () => {
  class Late extends Agent<AgentEnv, { count: number }> {
    static override options = { allowClientState: true };
    static {
      callable(this, "set");
    }
    override initialState = { count: 0 };
    // What the compiler lets pass: a promise where nothing is expected.
    override async validateStateChange({ count }: { count: number }): Promise<void> {
      await Promise.resolve();
      if (count > 1) throw new Error("too much");
    }
    set(count: number): void {
      this.setState({ count });
    }
  }
  const host = await openHost({ agents: { Late }, storage: memoryStorage() });
  const client = await connect(host, "/agents/late/a");
  client.send(JSON.stringify({ type: "cf_agent_state", state: { count: 5 } }));
  await client.frame(({ type }) => type === "cf_agent_state_error");
  await expect(client.call("set", 1)).rejects.toThrow("synchronous");
  expect(client.states().at(-1)).toEqual({ count: 0 });
});

test("an onError that throws after a failing onStateChanged is reported, and that is all", async () => {
  const failed: unknown[] = [];
  onTestFinished(subscribe("agent:failed", ({ payload }) => failed.push(payload)));
  class Loud extends Agent<AgentEnv, { count: number }> {
    override onStateChanged(): void {
      throw new Error("cannot tell");
    }
    override onError(error: unknown): void {
      throw error;
    }
    set(count: number): number {
      this.setState({ count });
      return this.state.count;
    }
  }
  const host = await openHost({ agents: { Loud }, storage: memoryStorage() });
  expect(await host.getAgentByName(Loud, "a").set(3)).toBe(3);
  await quiet(20);
  expect(failed).toEqual([{ stage: "onError", error: "cannot tell" }]);
});

test("scheduled work that throws an error without a text still comes to its end", async () => {
  class Odd extends Agent {
    async plan(): Promise<void> {
      await this.schedule(0, "fail", undefined, { retry: { maxAttempts: 1 } });
    }
    fail(): void {
      throw Object.assign(new Error("gone"), { message: { from: "a response" } });
    }
    ends(): unknown[] {
      return this.listSchedules().map(({ status, error }) => ({ status, error }));
    }
  }
  const ran: unknown[] = [];
  onTestFinished(subscribe("schedule:ran", ({ payload }) => ran.push(payload.error)));
  const host = await openHost({ agents: { Odd }, storage: memoryStorage() });
  await host.getAgentByName(Odd, "a").plan();
  await eventually(() => ran.length === 1, "it has run");
  expect(await host.getAgentByName(Odd, "a").ends()).toEqual([{ status: "failed", error: "Error" }]);
});

test("an onRequest that returns nothing is answered with 500, and not handed to the app", async () => {
  const heard: unknown[] = [];
  class Silent extends Agent {
    override onRequest(): Response {
      const nothing: unknown = undefined;
      return nothing as Response;
    }
    override onError(error: unknown): void {
      heard.push(error);
    }
  }
  const host = await openHost({ agents: { Silent }, storage: memoryStorage(), fetch: () => new Response("the app's") });
  expect((await fetch(`${host.url}/agents/silent/a`)).status).toBe(500);
  expect(heard).toMatchObject([{ code: "bad_state" }]);
});
