import { AIChatAgent, type AgentHost, type ChatTurnOptions, type Connection, PerdureError } from "perdure";
import type { SessionOp } from "perdure/chat";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { type ChatClient, connectTo, user } from "../chat/client.ts";
import { newNotes, noteError, openAgent, type TestAgent } from "../chat/open-agent.ts";
import { eventually } from "../host/open-host.ts";

interface Answer {
  readonly value?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
}

type Allow = (op: SessionOp, connection: Connection) => boolean | Promise<boolean>;

/** A chat that answers at once, and clients that ask about its sessions. */
async function openSessions(allow: Allow = () => true) {
  const notes = newNotes<AIChatAgent>();
  class Talk extends AIChatAgent {
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      notes.lives.push(this);
    }
    override onChatMessage(_onFinish: unknown, turn: ChatTurnOptions) {
      const last = this.messages.at(-1)?.parts[0];
      return new Response(`re ${last?.type === "text" ? last.text : ""} ${turn.requestId}`);
    }
    override allowSessionOp(connection: Connection, op: SessionOp) {
      return allow(op, connection);
    }
    override onError(error: unknown) {
      noteError(notes, error);
    }
  }
  const agent = await openAgent(Talk, notes, {});
  let asked = 0;
  return {
    ...agent,
    agent: () => agent.agent(),
    paged: (session?: string) => connectTo(pagedUrl(agent, session)),
    /** Asks, and resolves with the answer. */
    async ask(client: ChatClient, op: object): Promise<Answer> {
      const id = `q${++asked}`;
      client.send({ type: "perdure_session", id, ...op });
      return (await client.frame((frame) => frame.type === "perdure_session_result" && frame.id === id)) as Answer;
    },
    async say(client: ChatClient, id: string): Promise<void> {
      client.request(`r-${id}`, [user(id)]);
      await client.done(`r-${id}`);
    },
  };
}

function pagedUrl(agent: Pick<TestAgent<unknown>, "url">, session?: string): string {
  return `${agent.url}?_history=pages${session === undefined ? "" : `&_session=${session}`}`;
}

const idOf = ({ value }: Answer) => (value as { id: string }).id;
const lastState = (client: ChatClient) => client.ofType("perdure_session_state").at(-1);

/** How a socket to this address is closed. */
async function closeOf(url: string): Promise<{ code: number; reason: string }> {
  const ws = new WebSocket(url.replace("http", "ws"));
  return new Promise((resolve, reject) => {
    ws.on("error", reject);
    ws.on("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
}

test("a session that is not there closes the socket, says so, and is not made by it", async () => {
  const chat = await openSessions();
  const unknown = { code: 4404, reason: "unknown session" };
  expect(await closeOf(pagedUrl(chat, "nope"))).toEqual(unknown);
  await chat.say(await chat.paged(), "a");
  for (const url of [pagedUrl(chat, "nope"), `${chat.url}?_session=nope`]) expect(await closeOf(url)).toEqual(unknown);
  // What it sends before it is closed goes nowhere.
  const ws = new WebSocket(pagedUrl(chat, "nope").replace("http", "ws"));
  const body = JSON.stringify({ messages: [user("lost")], trigger: "submit-message" });
  ws.on("open", () =>
    ws.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: "x", init: { method: "POST", body } })),
  );
  await new Promise((resolve) => ws.on("close", resolve));
  expect(await chat.rows("SELECT id FROM perdure_session")).toEqual([{ id: "main" }]);
  expect(await chat.rows("SELECT id FROM perdure_message WHERE id = 'lost'")).toEqual([]);
  const client = await chat.paged();
  expect(await chat.ask(client, { op: "attach", session: "nope" })).toMatchObject({ error: { code: "not_found" } });
  const http = await fetch(`${chat.url}/get-messages?_session=nope`);
  expect([http.status, await http.json()]).toMatchObject([404, { error: { code: "not_found" } }]);
});

test("sessions are made, named, listed and deleted", async () => {
  const chat = await openSessions();
  const client = await chat.paged();
  const other = await chat.paged();
  await chat.say(client, "a");
  const made = await chat.ask(client, { op: "create", name: "Plans" });
  expect(made.value).toMatchObject({ name: "Plans", namedBy: "user", current: false });
  expect((await chat.ask(client, { op: "rename", session: idOf(made), name: "Old plans" })).value).toMatchObject({
    id: idOf(made),
    name: "Old plans",
  });
  await other.frame(({ type }) => type === "perdure_sessions_changed");
  const listed = await chat.ask(other, { op: "sessions" });
  expect(listed.value).toMatchObject([{ id: idOf(made) }, { id: "main", name: "a", current: true }]);
  expect((await chat.ask(other, { op: "sessions", limit: 1 })).value).toMatchObject([{ id: idOf(made) }]);
  expect((await chat.ask(other, { op: "sessions", limit: 1, after: idOf(made) })).value).toMatchObject([
    { id: "main" },
  ]);
  const inside = await chat.paged(idOf(made));
  expect(await chat.ask(client, { op: "delete", session: idOf(made) })).toMatchObject({ value: null });
  // Who is in it is sent away: what it says next was not meant for another.
  await eventually(() => !inside.isOpen, "a socket that is closed");
  expect(await chat.ask(client, { op: "delete", session: idOf(made) })).toMatchObject({ error: { code: "not_found" } });
  expect(await chat.ask(client, { op: "rename", session: idOf(made), name: "x" })).toMatchObject({
    error: { code: "not_found" },
  });
});

test("what is said in a session is heard by those who are in it, and by nobody else", async () => {
  const chat = await openSessions();
  const main = await chat.paged();
  await chat.say(main, "a");
  const id = idOf(await chat.ask(main, { op: "create" }));
  const named = await chat.paged(id);
  const moved = await chat.paged();
  expect((await chat.ask(moved, { op: "attach", session: id })).value).toEqual({
    session: id,
    named: id,
    viewOf: null,
  });
  expect(moved.greeting).toMatchObject({ session: id, messages: [] });
  const seen = main.frames.length;
  await chat.say(named, "b");
  await eventually(() => moved.of("r-b").some(({ done }) => done === true), "the end of a turn");
  const told = main.frames.slice(seen).filter(({ type }) => type !== "perdure_session_state");
  expect(told.filter(({ type }) => type !== "perdure_sessions_changed")).toEqual([]);
  expect((await chat.ask(moved, { op: "attach", session: null })).value).toMatchObject({
    session: "main",
    named: null,
  });
  expect(moved.greeting).toMatchObject({ session: "main", messages: [{ id: "a" }, {}] });
  const http = await fetch(`${chat.url}/get-messages?_session=${id}`);
  expect(await http.json()).toMatchObject([{ id: "b" }, { role: "assistant" }]);
});

test("who names no session goes along when the current one changes, the public hook too", async () => {
  const chat = await openSessions();
  const client = await chat.paged();
  const whole = await chat.connect();
  await chat.say(client, "a");
  const agent = await chat.agent();
  const { id } = agent.createSession("Other");
  await eventually(() => (lastState(client) as { session?: unknown } | undefined)?.session, "a state");
  agent.switchSession(id);
  await eventually(() => client.greeting?.connect === true && lastState(client), "a greeting");
  await eventually(() => (client.greeting as { session?: string }).session === id, "the other conversation");
  await whole.frame(({ type, messages }) => type === "cf_agent_chat_messages" && messages?.length === 0);
  await chat.say(whole, "b");
  await eventually(() => client.of("r-b").some(({ done }) => done === true), "the end of a turn");
  expect(agent.getHistory(null, { session: id }).map((message) => message.id)).toContain("b");
  expect(whole.frames.filter(({ type }) => type.startsWith("perdure_"))).toEqual([]);
  // Deleted, it is another one's turn to be the current one.
  expect(await chat.ask(client, { op: "delete", session: id })).toMatchObject({ value: null });
  await eventually(() => (client.greeting as { session?: string }).session === "main", "the first conversation");
  expect(client.isOpen && whole.isOpen).toBe(true);
});

test("fork, search and pins", async () => {
  const chat = await openSessions();
  const client = await chat.paged();
  await chat.say(client, "apples");
  await chat.say(client, "pears");
  const fork = await chat.ask(client, { op: "fork", at: "apples", name: "Fruit" });
  expect(fork.value).toMatchObject({ name: "Fruit", parent: "main", forkedAt: "apples" });
  await chat.ask(client, { op: "attach", session: idOf(fork) });
  expect(client.greeting?.messages?.map(({ id }) => id)).toEqual(["apples"]);
  await chat.say(client, "plums");
  const hits = async (op: object) =>
    ((await chat.ask(client, { op: "search", ...op })).value as { messageId: string; role: string }[])
      .filter(({ role }) => role === "user")
      .map(({ messageId }) => messageId);
  expect(await hits({ query: "plums" })).toEqual(["plums"]);
  expect(await hits({ query: "pears" })).toEqual([]);
  expect(await hits({ query: "pears", session: "all" })).toEqual(["pears"]);
  expect(await hits({ query: "pears", session: "main" })).toEqual(["pears"]);
  expect(await chat.ask(client, { op: "search", query: "x", session: "nope" })).toMatchObject({
    error: { code: "not_found" },
  });
  expect(await chat.ask(client, { op: "pin", messageId: "apples" })).toMatchObject({ value: null });
  await eventually(() => (lastState(client) as { pins?: string[] }).pins?.[0] === "apples", "a pin");
  // It is the same message in the session that it was forked from.
  const main = await chat.paged();
  await eventually(() => (lastState(main) as { pins?: string[] } | undefined)?.pins?.[0] === "apples", "a pin");
  await chat.ask(client, { op: "unpin", messageId: "apples" });
  await eventually(() => (lastState(main) as { pins?: string[] }).pins?.length === 0, "no pin");
  // What the session does not show cannot be reached from it.
  for (const op of ["pin", "branches", "switchBranch"])
    expect(await chat.ask(client, { op, messageId: "pears" }), op).toMatchObject({ error: { code: "not_found" } });
});

test("what a client may ask is for the app to say, and what comes behind a move waits for it", async () => {
  const asked: string[] = [];
  let refused = "";
  const chat = await openSessions(async (op, connection) => {
    asked.push(`${op.op} ${connection.id === "" ? "" : "client"}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (op.op === "clear") throw new PerdureError("not_allowed", "not you");
    if (op.op === "rename") throw new Error("no such column");
    return op.op !== "delete" && (op.op !== "attach" || op.session !== refused);
  });
  const client = await chat.paged();
  await chat.say(client, "a");
  expect(await chat.ask(client, { op: "delete" })).toMatchObject({ error: { code: "not_allowed" } });
  expect(await chat.ask(client, { op: "clear" })).toMatchObject({ error: { code: "not_allowed", message: "not you" } });
  const rename = { op: "rename", session: "main", name: "x" };
  expect(await chat.ask(client, rename)).toMatchObject({
    error: { code: "call_failed", message: expect.stringMatching(/^Something went/) },
  });
  expect(chat.takeErrors()).toEqual(["no such column"]);
  const id = idOf(await chat.ask(client, { op: "create" }));
  client.send({ type: "perdure_session", id: "move", op: "attach", session: id });
  client.request("r-b", [user("b")]);
  await client.done("r-b");
  expect(await chat.rows("SELECT session FROM perdure_message WHERE id = 'b'")).toEqual([{ session: id }]);
  expect(asked).toEqual(["delete client", "clear client", "rename client", "create client", "attach client"]);
  // The address of a socket is such a question too.
  refused = id;
  expect(await closeOf(pagedUrl(chat, id))).toEqual({ code: 4403, reason: "not allowed" });
  expect(await closeOf(pagedUrl(chat, "nope"))).toMatchObject({ code: 4404 });
  expect((await chat.stored()).map((message) => message.id)).toContain("a");
});

test("a page of another session cannot be had by its number", async () => {
  const chat = await openSessions();
  const client = await chat.paged();
  for (const id of ["a", "b", "c"]) await chat.say(client, id);
  const [row] = await chat.rows<{ seq: number }>("SELECT seq FROM perdure_message WHERE id = 'c'");
  const older = async (of: ChatClient) => {
    of.send({ type: "perdure_chat_older", before: row?.seq });
    return (await of.frame(({ type }) => type === "perdure_chat_older")).messages?.map(({ role }) => role);
  };
  const roles = ["user", "assistant", "user", "assistant"];
  expect(await older(client)).toEqual(roles);
  const fork = idOf(await chat.ask(client, { op: "fork" }));
  expect(await older(await chat.paged(fork))).toEqual(roles);
  const other = idOf(await chat.ask(client, { op: "create" }));
  expect(await older(await chat.paged(other))).toEqual([]);
});

test("frames that cannot be understood are answered, and change nothing", async () => {
  const chat = await openSessions();
  const client = await chat.paged();
  await chat.say(client, "a");
  const rows = () => chat.rows("SELECT id, leaf, name FROM perdure_session");
  const before = await rows();
  const bad = [{}, { op: "drop" }, { op: "rename" }, { op: "attach", session: 4 }, { op: "search", query: "" }];
  for (const op of bad) expect(await chat.ask(client, op)).toMatchObject({ error: { code: "bad_input" } });
  client.send({ type: "perdure_session", op: "delete" });
  client.send({ type: "perdure_session", id: "x".repeat(300), op: "delete" });
  await client.flushed();
  expect(client.isOpen).toBe(true);
  expect(await rows()).toEqual(before);
});

test("an agent without a model of its own says that it has no summaries", async () => {
  const chat = await openSessions();
  const client = await chat.paged();
  await chat.say(client, "a");
  for (const op of [{ op: "report" }, { op: "compact" }, { op: "undoCompaction", compaction: "c" }])
    expect(await chat.ask(client, op)).toMatchObject({ error: { code: "bad_state" } });
  expect(lastState(client)).toMatchObject({ context: null, compactions: [], pins: [] });
});

test("what is told of a session is told once, and only if it has changed", async () => {
  const chat = await openSessions();
  const client = await chat.paged();
  await chat.say(client, "a");
  await eventually(() => lastState(client), "a state");
  await client.flushed();
  const told = client.ofType("perdure_session_state").length;
  await chat.say(client, "b");
  await client.flushed();
  expect(client.ofType("perdure_session_state")).toHaveLength(told);
  const agent = await chat.agent();
  for (const name of ["x", "y", "z"]) agent.renameSession("main", name);
  await eventually(() => (lastState(client) as { session?: { name: string } }).session?.name === "z", "a name");
  expect(client.ofType("perdure_session_state")).toHaveLength(told + 1);
});
