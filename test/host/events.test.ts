import { channel } from "node:diagnostics_channel";
import { Agent, type AgentEnv, callable } from "perdure";
import type { AgentEventType, EventOf } from "perdure/host";
import { memoryStorage, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connect, eventually, openHost } from "./open-host.ts";

class Reporter extends Agent<AgentEnv, { n: number }> {
  static {
    for (const name of ["add", "fail", "plan", "fork", "grow"] as const) callable(this, name);
  }
  override initialState = { n: 0 };
  override validateStateChange({ n }: { n: number }): void {
    if (n < 0) throw new Error("never below zero");
  }
  static override readonly options = { allowClientState: true };

  add(): void {
    this.setState({ n: this.state.n + 1 });
  }
  fail(): void {
    throw new Error("as asked");
  }
  async plan(): Promise<void> {
    const { id } = await this.schedule(3600, "add");
    await this.cancelSchedule(id);
    await this.schedule(0, "add");
    await this.queue("add");
  }
  fork(): void {
    this.spawnFiber("add");
  }
  async grow(): Promise<void> {
    await this.subAgent(Reporter, "child");
    await this.deleteSubAgent(Reporter, "child");
  }
}

/** Collects every event of a list of types. */
function collect<T extends AgentEventType>(...types: T[]): EventOf<T>[] {
  const events: EventOf<T>[] = [];
  for (const type of types) onTestFinished(subscribe(type, (event) => events.push(event)));
  return events;
}

test("an event says who, what and when, and is on a diagnostics channel of its own", async () => {
  const raw: unknown[] = [];
  const listen = (message: unknown) => raw.push(message);
  channel("perdure:state:changed").subscribe(listen);
  onTestFinished(() => {
    channel("perdure:state:changed").unsubscribe(listen);
  });
  const events = collect("state:changed");
  const host = await openHost({ agents: { Reporter }, storage: memoryStorage() });
  await host.getAgentByName(Reporter, "a").add();
  expect(events).toEqual([
    {
      type: "state:changed",
      agent: "Reporter",
      name: "a",
      id: "Reporter/a",
      payload: { source: "server" },
      timestamp: expect.any(Number),
    },
  ]);
  expect(raw).toEqual(events);
});

test("the life of an agent, its connections, calls, state, work and children are reported", async () => {
  const events = collect(
    "agent:started",
    "agent:evicted",
    "agent:destroyed",
    "connection:opened",
    "connection:closed",
    "frame:refused",
    "rpc:called",
    "state:changed",
    "state:refused",
    "schedule:created",
    "schedule:cancelled",
    "schedule:ran",
    "queue:added",
    "queue:ran",
    "fiber:started",
    "fiber:settled",
    "subagent:created",
    "subagent:deleted",
  );
  const of = (type: AgentEventType) => events.filter((event) => event.type === type && event.id === "Reporter/a");
  const host = await openHost({ agents: { Reporter }, storage: memoryStorage(), idleMs: 50 });
  const client = await connect(host, "/agents/reporter/a?_pk=me");
  await client.call("add");
  await expect(client.call("fail")).rejects.toThrow("as asked");
  client.send(JSON.stringify({ type: "cf_agent_state", state: { n: -1 } }));
  client.send(JSON.stringify({ type: "cf_agent_state", state: { n: 7 } }));
  client.send(JSON.stringify({ type: "rpc", id: 5, method: "add", args: [] }));
  await client.call("plan");
  await client.call("fork");
  await client.call("grow");
  await eventually(() => of("fiber:settled").length === 1 && of("queue:ran").length === 1, "the work is done");
  await eventually(() => of("schedule:ran").length === 1, "the schedule ran");
  client.ws.close();
  await eventually(() => of("connection:closed").length > 0, "the connection is closed");
  await eventually(() => of("agent:evicted").length > 0, "it leaves memory");

  expect(of("agent:started")[0]?.payload).toEqual({ durationMs: expect.any(Number) });
  expect(of("connection:opened")[0]?.payload).toEqual({ connectionId: "me" });
  expect(of("connection:closed")[0]?.payload).toEqual({ connectionId: "me", code: 1005, reason: "" });
  expect(of("rpc:called").map(({ payload }) => payload)).toContainEqual({
    method: "fail",
    ok: false,
    error: "as asked",
    durationMs: expect.any(Number),
  });
  expect(of("state:refused").map(({ payload }) => payload)).toEqual([{ source: "me", reason: "never below zero" }]);
  expect(of("state:changed").map(({ payload }) => payload)).toContainEqual({ source: "me" });
  expect(of("frame:refused").map(({ payload }) => payload)).toEqual([
    { connectionId: "me", reason: 'rpc: "id" is missing or malformed' },
  ]);
  expect(of("schedule:created")).toHaveLength(2);
  expect(of("schedule:cancelled")).toHaveLength(1);
  expect(of("schedule:ran")[0]?.payload).toMatchObject({ callback: "add", ok: true, attempt: 1 });
  expect(of("queue:added")).toHaveLength(1);
  expect(of("fiber:settled")[0]?.payload).toMatchObject({ name: "add", status: "completed" });
  expect(of("subagent:created")[0]?.payload).toEqual({ className: "Reporter", childName: "child" });
  expect(of("subagent:deleted")[0]?.payload).toEqual({ className: "Reporter", childName: "child" });
});

test("after unsubscribing nothing comes any more", async () => {
  const seen: string[] = [];
  const stop = subscribe("state:changed", ({ name }) => seen.push(name));
  const host = await openHost({ agents: { Reporter }, storage: memoryStorage() });
  await host.getAgentByName(Reporter, "a").add();
  stop();
  stop();
  await host.getAgentByName(Reporter, "a").add();
  expect(seen).toEqual(["a"]);
});

test("one subscription hears a family of events, or all of them", async () => {
  const seen = { all: [] as string[], family: [] as string[], short: [] as string[] };
  const stops = [
    subscribe("*", ({ type }) => seen.all.push(type)),
    subscribe("state:*", ({ type }) => seen.family.push(type)),
    subscribe("state", ({ type }) => seen.short.push(type)),
  ];
  const host = await openHost({ agents: { Reporter }, storage: memoryStorage() });
  await host.getAgentByName(Reporter, "a").add();
  for (const stop of stops) stop();
  const told = [...seen.all];
  await host.getAgentByName(Reporter, "a").add();
  expect(seen).toEqual({ all: told, family: ["state:changed"], short: ["state:changed"] });
  expect(told).toEqual(expect.arrayContaining(["agent:started", "state:changed"]));
});
