import { Agent, type AgentEnv, callable, type Collections } from "perdure";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHost } from "./open-host.ts";

class Box extends Agent<AgentEnv, { count: number }> {
  static {
    callable(this, "add");
  }
  static override options = { allowClientState: true };
  override initialState = { count: 0 };

  add(): number {
    this.setState({ count: this.state.count + 1 });
    return this.state.count;
  }
  override getCollections(): Collections {
    return { rows: {} };
  }
}

const MANY = `[${"[],".repeat(200_000)}1]`;
const DEEP = `${"[".repeat(2_000_000)}${"]".repeat(2_000_000)}`;
const WORDS = /^The frame (holds more than 50000 values|is nested deeper than 256 levels)\.$/;

test.each([
  ["too many values", MANY],
  ["too many levels", DEEP],
])("frames with %s are answered to whom waits, change nothing, and the socket goes on", async (_what, value) => {
  const host = await openHost({ agents: { Box } });
  const refused: string[] = [];
  onTestFinished(subscribe("frame:refused", ({ payload }) => refused.push(payload.reason)));
  const client = await connect(host, "/agents/box/a");
  const other = await connect(host, "/agents/box/a");
  const seen = other.frames.length;
  client.send(`{"type":"rpc","method":"add","args":${value},"id":"c1"}`);
  client.send(`{"type":"cf_agent_state","state":{"count":7,"more":${value}}}`);
  client.send(`{"type":"perdure_rows_write","txid":"t1","changes":${value}}`);
  client.send(`{"type":"perdure_rows_subscribe","id":"s1","since":${value}}`);
  client.send(value);
  expect(await client.frame(({ id }) => id === "c1")).toMatchObject({
    ...{ type: "rpc", success: false, error: expect.stringMatching(WORDS) as unknown },
  });
  expect(await client.frame(({ type }) => type === "cf_agent_state_error")).toMatchObject({
    error: expect.stringMatching(WORDS) as unknown,
  });
  for (const about of [{ txid: "t1" }, { id: "s1" }]) {
    expect(await client.frame((frame) => frame.txid === "t1" || frame.id === "s1")).toBeDefined();
    const [key, name] = Object.entries(about)[0] ?? ["", ""];
    expect(await client.frame((frame) => frame[key] === name)).toMatchObject({
      ...{ type: "perdure_rows_error", error: { code: "too_large", message: expect.stringMatching(WORDS) as unknown } },
    });
  }
  expect(await client.call("add")).toBe(1);
  expect(client.closed).toBeUndefined();
  expect(other.frames.slice(seen).every(({ type }) => type === "cf_agent_state")).toBe(true);
  expect(refused.filter((reason) => WORDS.test(reason))).toHaveLength(5);
});

test("a write of rows that is longer than clients send is refused under its name", async () => {
  const host = await openHost({ agents: { Box } });
  const client = await connect(host, "/agents/box/a");
  const value = { id: "k", text: "x".repeat(900_000) };
  const changes = Array.from({ length: 5 }, (_, n) => ({ table: "rows", key: `k${n}`, operation: "insert", value }));
  client.send(JSON.stringify({ type: "perdure_rows_write", changes, txid: "t1" }));
  expect(await client.frame(({ txid }) => txid === "t1")).toMatchObject({
    ...{ type: "perdure_rows_error", error: { code: "too_large" } },
  });
});

test.each([
  ["no method", { args: [] }],
  ["a method that is no text", { method: 7, args: [] }],
  ["arguments that are no list", { method: "add", args: {} }],
])("a call with %s is answered under its id", async (_what, fields) => {
  const host = await openHost({ agents: { Box } });
  const client = await connect(host, "/agents/box/a");
  client.send(JSON.stringify({ type: "rpc", id: "c1", ...fields }));
  expect(await client.frame(({ id }) => id === "c1")).toMatchObject({
    ...{ type: "rpc", success: false, error: expect.stringContaining("must be") as unknown },
  });
});
