import { Agent, type AgentEnv, callable } from "perdure";
import type { AgentHost, Connection } from "perdure";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { holdSync } from "./hold-sync.ts";
import { connect, eventually, openHost, quiet } from "./open-host.ts";
import type { Client } from "./open-host.ts";

class Gated extends Agent<AgentEnv, { count: number }> {
  static {
    for (const name of ["add", "say", "undone", "partly", "chunk", "later"] as const) callable(this, name);
  }
  override initialState = { count: 0 };
  readonly port: AgentHost;

  constructor(host: AgentHost) {
    super(host);
    this.port = host;
  }
  override onMessage(connection: Connection, message: string | Uint8Array): void {
    connection.send(JSON.stringify({ echo: message }));
  }
  override onRequest(): Response {
    return Response.json({ count: this.add() });
  }
  override onError(): void {}

  add(): number {
    this.setState({ count: this.state.count + 1 });
    return this.state.count;
  }
  say(...words: string[]): void {
    for (const word of words) this.broadcast(JSON.stringify({ word }));
  }
  undone(): string {
    try {
      this.transaction(() => {
        this.say("never");
        this.add();
        throw new Error("no");
      });
    } catch {
      return "undone";
    }
    return "done";
  }
  partly(): void {
    this.transaction(() => {
      this.say("before");
      try {
        this.transaction(() => {
          this.say("inner");
          this.add();
          throw new Error("no");
        });
      } catch {
        // Only the inner one is undone.
      }
      this.say("after");
    });
  }
  /** Written so that it survives the process, not the power: as the chunks of a stream are. */
  chunk(word: string): void {
    this.port.tx(() => {
      this.port.sql("CREATE TABLE IF NOT EXISTS chunk (word TEXT)");
      this.port.sql("INSERT INTO chunk VALUES (?)", word);
      this.say(word);
    }, "commit");
  }
  async later(): Promise<void> {
    await this.schedule(3600, "add");
  }
}

const words = (client: Client) => client.frames.flatMap((frame) => ("word" in frame ? [frame.word] : []));

test("a frame leaves only after the rows before it are on the disk, and so does everything behind it", async () => {
  const host = await openHost({ agents: { Gated } });
  const [anna, ben] = [await connect(host, "/agents/gated/a"), await connect(host, "/agents/gated/a")];
  await anna.call("add");
  await ben.frame(({ state }) => (state as { count: number } | undefined)?.count === 1);
  const seen = [anna.frames.length, ben.frames.length];
  const disk = holdSync();

  const added = anna.call("add");
  const said = anna.call("say", "one", "two");
  anna.send("three");
  await eventually(() => disk.waiting > 0, "the log waits to be synced");
  await quiet();
  expect([anna.frames.length, ben.frames.length]).toEqual(seen);

  disk.release();
  await Promise.all([added, said]);
  await anna.frame((frame) => frame.echo === "three");
  expect(anna.frames.slice(seen[0]).map(({ type, word, echo }) => word ?? echo ?? type)).toEqual([
    "cf_agent_state",
    "one",
    "two",
    "three",
    "rpc",
    "rpc",
  ]);
  expect(words(ben)).toEqual(["one", "two"]);
});

test("another agent's disk is not in the way", async () => {
  const host = await openHost({ agents: { Gated } });
  const [slow, quick] = [await connect(host, "/agents/gated/slow"), await connect(host, "/agents/gated/quick")];
  const disk = holdSync();
  const added = slow.call("add");
  await eventually(() => disk.waiting > 0, "the log waits to be synced");
  quick.send("still here");
  await quick.frame((frame) => frame.echo === "still here");
  disk.release();
  expect(await added).toBe(1);
});

test("the answer of a request and of a call wait too; reading does not", async () => {
  const host = await openHost({ agents: { Gated } });
  await host.getAgentByName(Gated, "a").add();
  const disk = holdSync();
  const done: string[] = [];
  const answers = [
    host.fetch(new Request("http://host/agents/gated/a")).then((response) => done.push(`http ${response.status}`)),
    host
      .getAgentByName(Gated, "a")
      .add()
      .then((count) => done.push(`call ${count}`)),
    host
      .getAgentByName(Gated, "b")
      .later()
      .then(() => done.push("schedule")),
  ];
  expect(await host.getAgentByName(Gated, "c").getCallableMethods()).toBeInstanceOf(Map);
  await eventually(() => disk.waiting > 0, "the log waits to be synced");
  await quiet();
  expect(done).toEqual([]);
  disk.release();
  await Promise.all(answers);
  expect(done.sort()).toEqual(["call 2", "http 200", "schedule"]);
});

test("what a transaction sent is never sent when it is undone; what an inner one sent neither", async () => {
  const host = await openHost({ agents: { Gated } });
  const client = await connect(host, "/agents/gated/a");
  expect(await client.call("undone")).toBe("undone");
  await client.call("partly");
  await client.call("say", "end");
  expect(words(client)).toEqual(["before", "after", "end"]);
  expect(client.states()).toEqual([{ count: 0 }]);
  expect(await client.call("add")).toBe(1);
});

test("chunks leave after their commit, without a sync, unless something before them waits for one", async () => {
  const host = await openHost({ agents: { Gated } });
  const client = await connect(host, "/agents/gated/a");
  await client.call("chunk", "first");
  const disk = holdSync();
  await client.call("chunk", "second");
  expect(words(client)).toEqual(["first", "second"]);
  expect(disk.asked).toBe(0);
  const added = client.call("add");
  const third = client.call("chunk", "third");
  await eventually(() => disk.waiting > 0, "the log waits to be synced");
  await quiet();
  expect(words(client)).toEqual(["first", "second"]);
  disk.release();
  await Promise.all([added, third]);
  expect(words(client)).toEqual(["first", "second", "third"]);
});

test("callers who wait at the same time share one sync", async () => {
  const host = await openHost({ agents: { Gated } });
  const stub = host.getAgentByName(Gated, "a");
  await stub.add();
  const disk = holdSync();
  const first = stub.add();
  await eventually(() => disk.waiting === 1, "the first sync is under way");
  const more = Array.from({ length: 50 }, () => stub.add());
  await quiet();
  disk.release();
  expect(await first).toBe(2);
  expect(Math.max(...(await Promise.all(more)))).toBe(52);
  expect(disk.asked).toBe(2);
});

test("a disk that fails: nothing that waited is shown, the life ends, clients come back, and the next life works", async () => {
  const failures: string[] = [];
  onTestFinished(subscribe("agent:failed", ({ payload }) => failures.push(payload.stage)));
  const host = await openHost({ agents: { Gated } });
  const client = await connect(host, "/agents/gated/a");
  const stub = host.getAgentByName(Gated, "a");
  expect(await client.call("add")).toBe(1);
  const seen = client.states();
  const disk = holdSync();
  const lost = Promise.allSettled([
    client.call("add"),
    stub.add(),
    host.fetch(new Request("http://host/agents/gated/a")),
  ]);
  await eventually(() => disk.waiting > 0, "the log waits to be synced");
  disk.fail();
  const [socket, call, http] = await lost;
  expect(socket).toMatchObject({ status: "rejected" });
  expect(call).toMatchObject({ status: "rejected" });
  expect(http?.status === "fulfilled" && http.value.status).toBe(500);
  expect((await client.whenClosed()).code).toBe(1011);
  expect(client.states()).toEqual(seen);
  expect(failures).toContain("sync");
  disk.release();
  const again = await connect(host, "/agents/gated/a");
  // What was committed and never shown may be there or not; what was shown is.
  const { count } = again.states()[0] as { count: number };
  expect(count).toBeGreaterThanOrEqual(1);
  expect(await again.call("add")).toBe(count + 1);
});

test("a sync that failed is not tried again on the same log: the life ends also when only a call waited", async () => {
  const host = await openHost({ agents: { Gated } });
  const stub = host.getAgentByName(Gated, "a");
  await stub.add();
  const disk = holdSync();
  const lost = stub.later();
  await eventually(() => disk.waiting > 0, "the log waits to be synced");
  disk.fail();
  await expect(lost).rejects.toThrow();
  expect(host.status().live).toBe(0);
  disk.release();
  expect(await stub.add()).toBe(2);
});

test("what waits for the disk when its agent is destroyed leaves before the socket is closed", async () => {
  const host = await openHost({ agents: { Gated } });
  const [anna, ben] = [await connect(host, "/agents/gated/a"), await connect(host, "/agents/gated/a")];
  await anna.call("add");
  const disk = holdSync();
  anna.send(JSON.stringify({ type: "rpc", id: "second", method: "add", args: [] }));
  await eventually(() => disk.waiting > 0, "the second change waits");
  const destroyed = host.getAgentByName(Gated, "a").destroy();
  expect((await ben.whenClosed()).code).toBe(1001);
  expect(ben.states()).toEqual([0, 1, 2].map((count) => ({ count })));
  disk.release();
  await destroyed;
});

test("what an aborted life left waiting leaves before anything of the next one", async () => {
  class Owner extends Agent {
    async open(): Promise<void> {
      await this.subAgent(Gated, "child");
    }
    stop(): void {
      this.abortSubAgent(Gated, "child");
    }
  }
  const host = await openHost({ agents: { Owner }, subAgents: { Gated } });
  await host.getAgentByName(Owner, "a").open();
  const [anna, ben] = [
    await connect(host, "/agents/owner/a/sub/gated/child"),
    await connect(host, "/agents/owner/a/sub/gated/child"),
  ];
  await anna.call("add");
  const disk = holdSync();
  anna.send(JSON.stringify({ type: "rpc", id: "second", method: "add", args: [] }));
  await eventually(() => disk.waiting > 0, "the second change waits");
  await host.getAgentByName(Owner, "a").stop();
  expect(await ben.call("say", "next")).toBeUndefined();
  const seen = ben.frames.flatMap(({ type, state, word }) => (type === "cf_agent_state" ? [state] : (word ?? [])));
  expect(seen).toEqual([{ count: 0 }, { count: 1 }, { count: 2 }, "next"]);
  disk.release();
});
