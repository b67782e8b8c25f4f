import { manualClock } from "perdure/testing";
import { expect, test } from "vitest";
import { agentFetch } from "../../src/client/index.ts";
import { addressOf, eventually, startHost, stopHost } from "../clients/harness.ts";
import { connect, Counter } from "./harness.ts";

test("it is ready with identity and state, and keeps its id over reconnects", async () => {
  const host = await startHost({ agents: { Counter } });
  const seen: string[] = [];
  const { client, line } = connect(host, { id: "me", onIdentity: (name, agent) => void seen.push(`${agent}/${name}`) });
  expect(client).toMatchObject({ readyState: 0, identified: false, state: undefined, agent: "counter", name: "x" });
  await client.ready;
  expect(client).toMatchObject({ readyState: 1, identified: true, state: { n: 0 } });
  line.cut();
  await eventually(() => expect(client.identified).toBe(false));
  line.mend();
  await client.ready;
  expect(seen).toEqual(["counter/x", "counter/x"]);
  expect(line.opens).toBe(2);
  expect(client.id).toBe("me");
});

test("an odd name is the same name on both sides", async () => {
  const host = await startHost({ agents: { Counter } });
  for (const name of ["room one", "a/b?c#d", "100%", "ünï"]) {
    const { client } = connect(host, { name });
    await client.ready;
    expect(client.name).toBe(name);
  }
});

test("states go both ways, and a refused one is reported", async () => {
  const host = await startHost({ agents: { Counter } });
  const updates: unknown[] = [];
  const errors: string[] = [];
  const { client: one } = connect(host, {
    onStateUpdate: (state, source) => void updates.push([state.n, source]),
    onStateUpdateError: (error) => void errors.push(error),
  });
  const { client: two } = connect(host);
  await Promise.all([one.ready, two.ready]);
  one.setState({ n: 5 });
  expect(one.state).toEqual({ n: 5 });
  await eventually(() => expect(two.state).toEqual({ n: 5 }));
  two.setState({ n: 6 });
  await eventually(() => expect(one.state).toEqual({ n: 6 }));
  one.setState({ n: -1 });
  await eventually(() => expect(errors).toEqual(["State update rejected"]));
  expect(updates.slice(0, 3)).toEqual([
    [0, "server"],
    [5, "client"],
    [6, "server"],
  ]);
});

test("methods are called by name and by stub; errors come back as they are", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client } = connect(host);
  // Before the connection is there: it waits.
  expect(await client.call("add", [2])).toBe(2);
  expect(await client.stub.add(3, 4)).toBe(9);
  await expect(client.stub.fail()).rejects.toMatchObject({ code: "call_failed", message: "not today" });
  await expect(client.call("secret")).rejects.toThrow("Method secret is not callable");
  expect(client.state).toEqual({ n: 9 });
  expect(JSON.stringify({ stub: client.stub })).toBe('{"stub":{}}');
  expect(await Promise.all([1, 2, 3].map((by) => client.stub.add(by)))).toEqual([10, 12, 15]);
});

test("streaming methods: by callbacks, by iteration, and their errors", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client } = connect(host);
  const seen: unknown[] = [];
  const stream = {
    onChunk: (chunk: number) => void seen.push(chunk),
    onDone: (final: string) => void seen.push(final),
  };
  expect(await client.call("count", [3], { stream })).toBe("all");
  expect(seen).toEqual([1, 2, 3, "all"]);

  const counting = client.callStream("count", [2]);
  const chunks: number[] = [];
  for await (const chunk of counting) chunks.push(chunk);
  expect(chunks).toEqual([1, 2]);
  expect(await counting.result).toBe("all");

  const stumbling = client.callStream("stumble");
  const rejected = expect(stumbling.result).rejects.toThrow("fell");
  await expect(Array.fromAsync(stumbling)).rejects.toThrow("fell");
  await rejected;
});

test("a call that is not answered: timeout, signal, drop, close", async () => {
  const host = await startHost({ agents: { Counter } });
  const clock = manualClock();
  const { client, line } = connect(host, { clock });
  await client.ready;
  const late = expect(client.call("never")).rejects.toMatchObject({ code: "timeout" });
  await clock.advance(30_000);
  await late;

  const left = new AbortController();
  const aborted = expect(client.call("never", [], { signal: left.signal })).rejects.toThrow("enough");
  left.abort(new Error("enough"));
  await aborted;

  const dropped = expect(client.call("never")).rejects.toMatchObject({ code: "disconnected" });
  line.cut();
  await dropped;
  // Never sent, so it may wait.
  const waiting = client.stub.add(1);
  line.mend();
  await eventually(async () => {
    await clock.advance(100);
    expect(client.identified).toBe(true);
  });
  expect(await waiting).toBe(1);

  const closed = expect(client.call("never")).rejects.toMatchObject({ code: "disconnected" });
  client.close();
  await closed;
  expect(client).toMatchObject({ readyState: 3, connectionError: null });
  client.open();
  expect(await client.stub.add(1)).toBe(2);
});

test("a terminal close is for good, and what waited is rejected", async () => {
  const host = await startHost({ agents: { Counter } });
  const errors: number[] = [];
  const { client, line } = connect(host, { onConnectionError: ({ code }) => void errors.push(code) });
  await client.ready;
  const call = expect(client.call("never")).rejects.toMatchObject({ code: "disconnected" });
  client.send('"close for good"');
  await call;
  expect(client).toMatchObject({ readyState: 3, connectionError: { code: 4001, reason: "go away" } });
  expect(errors).toEqual([4001]);
  expect(line.opens).toBe(1);
});

test("it gives up after maxRetries, or when it is told to", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client, line } = connect(host, { maxRetries: 2 });
  await client.ready;
  line.cut();
  await eventually(() => expect(client.connectionError?.code).toBe(1006));
  const other = connect(host, { shouldReconnectOnClose: () => false });
  await other.client.ready;
  other.line.cut();
  await eventually(() => expect(other.client.readyState).toBe(3));
});

test("the query is asked for anew at every connection and request, and may fail", async () => {
  const host = await startHost({ agents: { Counter } });
  let asked = 0;
  const query = async () => {
    if (asked++ === 0) throw new Error("no token yet");
    return { token: `t${asked}`, gone: null };
  };
  const { client } = connect(host, { query });
  await client.ready;
  expect(asked).toBe(2);
  const response = await client.fetch("notes", { method: "PUT" });
  expect(await response.json()).toEqual({ method: "PUT", url: "/agents/counter/x/notes?token=t3" });
});

test("frames of the app go both ways, in order, also those that were sent too early", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client, line } = connect(host);
  const heard: unknown[] = [];
  client.addEventListener("message", ({ data }) => void heard.push(data));
  client.send("1");
  client.send("2");
  await eventually(() => expect(heard).toEqual(['{"echo":1}', '{"echo":2}']));
  expect(line.sent).toEqual([1, 2]);
});

test("a host that stops and comes back is found again", async () => {
  const host = await startHost({ agents: { Counter } });
  const { client } = connect(host);
  expect(await client.stub.add(3)).toBe(3);
  const { port } = host;
  const dir = await stopHost(host);
  await eventually(() => expect(client.readyState).toBe(0));
  const { serve } = await import("perdure/node");
  const again = await serve({ agents: { Counter }, dir, port, signals: false });
  try {
    expect(await client.stub.add(1)).toBe(4);
  } finally {
    client.close();
    await again.stop();
  }
});

test("agentFetch is one request", async () => {
  const host = await startHost({ agents: { Counter } });
  const response = await agentFetch(
    { agent: "Counter", name: "a b", host: addressOf(host), path: "p", query: () => ({ t: "1" }) },
    { method: "POST" },
  );
  expect(await response.json()).toEqual({ method: "POST", url: "/agents/counter/a%20b/p?t=1" });
});
