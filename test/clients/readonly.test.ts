import { callable, type Connection, type ConnectionContext, getCurrentAgent } from "perdure";
import { expect, test } from "vitest";
import { Base, type Count } from "./fixtures.ts";
import { asleep, connected, eventually, startHost } from "./harness.ts";

/** `?mode=view` may only read. */
class Doc extends Base<Count> {
  static override options = { allowClientState: true };
  static {
    for (const name of ["add", "addLater", "read", "lock", "amILocked", "keep"] as const) callable(this, name);
  }
  override initialState: Count = { count: 0 };

  override shouldConnectionBeReadonly(_connection: Connection, { request }: ConnectionContext): boolean {
    return new URL(request.url).searchParams.get("mode") === "view";
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }
  async addLater(by: number): Promise<number> {
    await new Promise(setImmediate);
    return this.add(by);
  }
  read(): number {
    return this.state.count;
  }
  /** Locks or unlocks the connections of an id. */
  lock(id: string, readonly?: boolean): void {
    for (const connection of this.getConnections()) {
      if (connection.id === id) this.setConnectionReadonly(connection, readonly);
    }
  }
  amILocked(): boolean {
    const { connection } = getCurrentAgent();
    return connection !== undefined && this.isConnectionReadonly(connection);
  }
  keep(value: unknown): unknown {
    const { connection } = getCurrentAgent();
    connection?.setState(value);
    return connection?.state;
  }
}

const viewer = { agent: "Doc", name: "x", query: { mode: "view" } };
const editor = { agent: "Doc", name: "x" };

test("a read-only connection may read and may not set the state", async () => {
  const host = await startHost({ agents: { Doc } });
  const view = await connected<Count>(host, viewer);
  const edit = await connected<Count>(host, editor);
  expect(view.client.state).toEqual({ count: 0 });
  view.client.setState({ count: 9 });
  expect(await view.client.call("read")).toBe(0);
  expect(view.stateErrors).toEqual(["Connection is readonly"]);
  expect(view.client.state).toEqual({ count: 0 });
  await edit.client.call("ping");
  expect(edit.states).toHaveLength(1);
});

test("a method that sets the state fails for it, also after an await, and changes nothing", async () => {
  const host = await startHost({ agents: { Doc } });
  const view = await connected<Count>(host, viewer);
  await expect(view.client.call("add", [1])).rejects.toThrow("Connection is readonly");
  await expect(view.client.call("addLater", [1])).rejects.toThrow("Connection is readonly");
  expect(await view.client.call("read")).toBe(0);
  expect(view.stateErrors).toEqual([]);
});

test("an editor and the server itself may write beside it, and the viewer sees it", async () => {
  const host = await startHost({ agents: { Doc } });
  const view = await connected<Count>(host, viewer);
  const edit = await connected<Count>(host, editor);
  expect(await edit.client.call("add", [2])).toBe(2);
  expect(await host.getAgentByName(Doc, "x").add(3)).toBe(5);
  edit.client.setState({ count: 7 });
  await edit.client.call("ping");
  await view.client.call("ping");
  expect(view.states.map(({ state }) => state.count)).toEqual([0, 2, 5, 7]);
});

test("it can be locked and unlocked while it is open", async () => {
  const host = await startHost({ agents: { Doc } });
  const stub = host.getAgentByName(Doc, "x");
  const { client } = await connected<Count>(host, { ...editor, id: "me" });
  expect(await client.call("add", [1])).toBe(1);
  await stub.lock("me");
  expect(await client.call("amILocked")).toBe(true);
  await expect(client.call("add", [1])).rejects.toThrow("Connection is readonly");
  await stub.lock("me", false);
  expect(await client.call("amILocked")).toBe(false);
  expect(await client.call("add", [1])).toBe(2);
});

test("it is decided anew on each reconnect", async () => {
  const host = await startHost({ agents: { Doc } });
  const stub = host.getAgentByName(Doc, "x");
  const view = await connected<Count>(host, { ...viewer, id: "v" });
  const edit = await connected<Count>(host, { ...editor, id: "e" });
  await stub.lock("v", false);
  await stub.lock("e");
  await stub.drop(1012);
  await eventually(() => expect(view.closes.length + edit.closes.length).toBe(2));
  await Promise.all([view.client.ready, edit.client.ready]);
  await expect(view.client.call("add", [1])).rejects.toThrow("Connection is readonly");
  expect(await edit.client.call("add", [1])).toBe(1);
});

test("it holds when the agent has left memory in between", async () => {
  const host = await startHost({ agents: { Doc }, idleMs: 20 });
  const stub = host.getAgentByName(Doc, "x");
  const view = await connected<Count>(host, viewer);
  const edit = await connected<Count>(host, { ...editor, id: "e" });
  await stub.lock("e");
  await asleep(host);
  await expect(view.client.call("add", [1])).rejects.toThrow("Connection is readonly");
  await expect(edit.client.call("add", [1])).rejects.toThrow("Connection is readonly");
  await stub.lock("e", false);
  await asleep(host);
  expect(await edit.client.call("add", [1])).toBe(1);
  view.client.setState({ count: 100 });
  expect(await view.client.call("read")).toBe(1);
  expect(view.stateErrors).toEqual(["Connection is readonly"]);
});

test("what the app keeps with the connection neither shows nor lifts the lock", async () => {
  const host = await startHost({ agents: { Doc } });
  const { client } = await connected<Count>(host, viewer);
  expect(await client.call("keep", [{ readonly: false }])).toEqual({ readonly: false });
  expect(await client.call("amILocked")).toBe(true);
  expect(await client.call("keep", [null])).toBeNull();
  await expect(client.call("add", [1])).rejects.toThrow("Connection is readonly");
});

test("many refusals leave the connection healthy", async () => {
  const host = await startHost({ agents: { Doc } });
  const view = await connected<Count>(host, viewer);
  for (let i = 0; i < 100; i++) view.client.setState({ count: i });
  const calls = Array.from({ length: 100 }, () => view.client.call("add", [1]).catch((error: Error) => error.message));
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["Connection is readonly"]));
  expect(view.stateErrors).toHaveLength(100);
  expect(await view.client.call("read")).toBe(0);
});
