import { Agent, AIChatAgent, callable, type Connection, type ConnectionContext, PerdureError } from "perdure";
import { expect, test } from "vitest";
import { connect, openHost } from "../host/open-host.ts";

const MARK = "Connection is readonly";

class Shelf extends Agent {
  put(text: string): number {
    this.sql`CREATE TABLE IF NOT EXISTS book (text TEXT)`;
    this.sql`INSERT INTO book VALUES (${text})`;
    return this.count();
  }
  count(): number {
    return this.sql`SELECT name FROM sqlite_schema WHERE name = 'book'`.length === 0
      ? 0
      : (this.sql<{ n: number }>`SELECT count(*) AS n FROM book`[0]?.n ?? 0);
  }
}

/** What a viewer may try through methods: each writes in another way. */
const WRITES = {
  sql: (desk: Desk) => void desk.sql`CREATE TABLE mine (x)`,
  sqlWithCommonTable: (desk: Desk) => void desk.sql`WITH one AS (SELECT 1 AS x) INSERT INTO kept SELECT x FROM one`,
  sqlReturning: (desk: Desk) => void desk.sql`DELETE FROM kept RETURNING x`,
  transaction: (desk: Desk) => desk.transaction(() => void desk.sql`INSERT INTO kept VALUES (1)`),
  state: (desk: Desk) => desk.setState({ by: "viewer" }),
  schedule: (desk: Desk) => desk.schedule(60, "noop"),
  queue: (desk: Desk) => desk.queue("noop"),
  fiber: (desk: Desk) => desk.startFiber("work", async () => undefined),
  rows: (desk: Desk) =>
    desk.writeRows({ changes: [{ table: "notes", key: "1", operation: "insert", value: { id: "1" } }] }),
  child: (desk: Desk) => desk.subAgent(Shelf, "made-by-viewer"),
  otherAgent: async (desk: Desk) => (await desk.subAgent(Shelf, "shelf")).put("by the viewer"),
  deleteChild: (desk: Desk) => desk.deleteSubAgent(Shelf, "shelf"),
  destroy: (desk: Desk) => desk.destroy(),
  afterAwait: async (desk: Desk) => {
    await new Promise(setImmediate);
    desk.sql`INSERT INTO kept VALUES (2)`;
  },
} satisfies Record<string, (desk: Desk) => unknown>;

class Desk extends Agent {
  static {
    for (const name of ["write", "look", "open", "ask"] as const) callable(this, name);
  }
  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS kept (x)`;
    this.sql`INSERT INTO kept SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM kept)`;
  }
  override getCollections() {
    return { notes: {} };
  }
  override shouldConnectionBeReadonly(_connection: Connection, { request }: ConnectionContext): boolean {
    return new URL(request.url).searchParams.has("view");
  }
  noop(): void {}
  async write(how: keyof typeof WRITES): Promise<string> {
    try {
      await WRITES[how](this);
      return "written";
    } catch (thrown) {
      if (!PerdureError.is(thrown)) throw thrown;
      return `${thrown.code}: ${thrown.message}`;
    }
  }
  /** All that the writes above would have changed. */
  look() {
    return {
      kept: this.sql<{ x: number }>`SELECT x FROM kept`.map(({ x }) => x),
      tables: this.sql`SELECT name FROM sqlite_schema WHERE name = 'mine'`.length,
      state: this.state ?? null,
      schedules: this.listSchedules().length,
      children: this.listSubAgents().map(({ name }) => name),
      rows: this.collection("notes").size,
      inTransaction: this.transaction(() => this.sql`SELECT 1 AS one`.length),
    };
  }
  async open(): Promise<number> {
    return (await this.subAgent(Shelf, "shelf")).put("first");
  }
  async ask(): Promise<number> {
    return (await this.subAgent(Shelf, "shelf")).count();
  }
}

test.each(Object.keys(WRITES))("what a method writes for a read-only connection is refused: %s", async (how) => {
  const host = await openHost({ agents: { Desk }, subAgents: { Shelf } });
  const editor = await connect(host, "/agents/desk/one");
  const viewer = await connect(host, "/agents/desk/one?view");
  expect(await editor.call("open")).toBe(1);
  const before = await editor.call("look");
  expect(await viewer.call("look")).toEqual(before);
  expect(await viewer.call("write", how)).toBe(`read_only: ${MARK}`);
  expect(await editor.call("look")).toEqual(before);
  expect(await viewer.call("ask")).toBe(1);
  // The same from whoever may write: the refusal was about who asked.
  if (how === "destroy") return;
  expect(await editor.call("write", how)).toBe("written");
});

test("an agent that a viewer wakes starts as for anybody, and its child too", async () => {
  const host = await openHost({ agents: { Desk }, subAgents: { Shelf }, idleMs: 20 });
  const editor = await connect(host, "/agents/desk/one");
  const viewer = await connect(host, "/agents/desk/one?view");
  await editor.call("open");
  await expect.poll(() => host.status().live).toBe(0);
  expect(await viewer.call("ask")).toBe(1);
  expect(await viewer.call("look")).toMatchObject({ kept: [0] });
});

class Blank extends Agent {
  static {
    callable(this, "peek");
  }
  override shouldConnectionBeReadonly(): boolean {
    return true;
  }
  peek(): number {
    return this.transaction(() => this.sql`SELECT 1 AS one`.length);
  }
}

test("a viewer's reads in a transaction make no database", async () => {
  const host = await openHost({ agents: { Blank } });
  const viewer = await connect(host, "/agents/blank/one");
  expect(await viewer.call("peek")).toBe(1);
  expect(host.listAgents()).toEqual([]);
});

class Talk extends AIChatAgent {
  static {
    for (const name of ["find", "say"] as const) callable(this, name);
  }
  override shouldConnectionBeReadonly(_connection: Connection, { request }: ConnectionContext): boolean {
    return new URL(request.url).searchParams.has("view");
  }
  override onChatMessage(): Response {
    return new Response("hello");
  }
  async find(word: string): Promise<number> {
    return (await this.search(word)).length;
  }
  async say(text: string): Promise<void> {
    await this.persistMessages(text);
  }
}

test("a viewer's method may search, and may not add to the conversation", async () => {
  const host = await openHost({ agents: { Talk } });
  const editor = await connect(host, "/agents/talk/one");
  const viewer = await connect(host, "/agents/talk/one?view");
  await editor.call("say", "a needle");
  expect(await viewer.call("find", "needle")).toBe(1);
  await expect(viewer.call("say", "another needle")).rejects.toThrow(MARK);
  expect(await viewer.call("find", "needle")).toBe(1);
});

class Archive extends Agent {
  override mayOnlyRead(identity: { readonly id: string } | undefined): boolean {
    return identity?.id === "viewer";
  }
  override onRequest(request: Request): Response {
    this.sql`CREATE TABLE IF NOT EXISTS kept (x)`;
    return new Response(request.method);
  }
}

test("what onRequest writes for somebody who may only read is refused with 403, and nobody is told of a failure", async () => {
  const onBeforeRequest = (request: Request) => ({
    identity: { id: new URL(request.url).searchParams.get("as") ?? "nobody" },
  });
  const failures: unknown[] = [];
  const host = await openHost({ agents: { Archive }, onBeforeRequest, log: (entry) => void failures.push(entry) });
  const refused = await fetch(`${host.url}/agents/archive/one?as=viewer`);
  expect([refused.status, await refused.json()]).toMatchObject([403, { error: { code: "read_only" } }]);
  expect(host.listAgents()).toEqual([]);
  expect((await fetch(`${host.url}/agents/archive/one?as=editor`)).status).toBe(200);
  expect(failures).toEqual([]);
});

class Leaf extends Agent {
  static {
    callable(this, "put");
    callable(this, "count");
  }
  override onRequest(): Response {
    return Response.json(this.put());
  }
  put(): number {
    this.sql`CREATE TABLE IF NOT EXISTS leaf (x)`;
    this.sql`INSERT INTO leaf VALUES (1)`;
    return this.count();
  }
  count(): number {
    return this.sql<{ n: number }>`SELECT count(*) AS n FROM leaf`[0]?.n ?? 0;
  }
}

class Twig extends Agent {
  static override subAgents = [Leaf];
}

class Trunk extends Agent {
  static override subAgents = [Leaf, Twig];
  override mayOnlyRead(identity: { readonly id: string } | undefined): boolean {
    return identity?.id === "viewer";
  }
}

test.each(["sub/leaf/one", "sub/twig/one/sub/leaf/one"])(
  "who may only read in an agent may only read in what is below it, whose classes say nothing: %s",
  async (child) => {
    const as = (request: Request) => ({ identity: { id: new URL(request.url).searchParams.get("as") ?? "editor" } });
    const hooks = { onBeforeConnect: as, onBeforeRequest: as };
    const host = await openHost({ agents: { Trunk }, subAgents: { Leaf, Twig }, idleMs: 20, ...hooks });
    const path = `/agents/trunk/one/${child}`;
    const editor = await connect(host, path);
    expect(await editor.call("put")).toBe(1);
    const viewer = await connect(host, `${path}?as=viewer`);
    await expect(viewer.call("put")).rejects.toThrow(MARK);
    expect((await fetch(`${host.url}${path}?as=viewer`)).status).toBe(403);
    // It stays so while the child leaves memory.
    await expect.poll(() => host.status().live).toBe(0);
    await expect(viewer.call("put")).rejects.toThrow(MARK);
    expect(await viewer.call("count")).toBe(1);
    expect(await (await fetch(`${host.url}${path}`)).json()).toBe(2);
  },
);
