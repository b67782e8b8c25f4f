import { Agent, AIChatAgent, type Act, callable, type Connection, type Identity } from "perdure";
import { request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import { connect, eventually, openHost } from "../host/open-host.ts";

/** Verdicts that somebody waits for. */
const pending: { readonly act: Act; readonly session: string | undefined; readonly say: (yes: boolean) => void }[] = [];
const asked: string[] = [];

class Talk extends AIChatAgent {
  static override options = { allowClientState: true };
  static {
    for (const name of ["hit", "hits", "lower", "dismiss"] as const) callable(this, name);
  }
  override getCollections() {
    return { notes: {} };
  }
  override authorize(identity: Identity | undefined, act: Act, on: { readonly session?: string }) {
    if (identity?.id !== "slow" || act === "connect") return true;
    asked.push(`${act} ${on.session ?? ""}`);
    return new Promise<boolean>((say) => pending.push({ act, session: on.session, say }));
  }
  override onChatMessage(): undefined {}
  #count = 0;
  hit(): number {
    return ++this.#count;
  }
  hits(): number {
    return this.#count;
  }
  #find(id: string): Connection {
    const found = this.getConnection(id);
    if (found === undefined) throw new Error(`no connection ${id}`);
    return found;
  }
  lower(id: string): void {
    this.setConnectionReadonly(this.#find(id), true);
  }
  dismiss(id: string): void {
    this.#find(id).close(4401, "logged out");
  }
}

const PATH = "/agents/talk/one";

async function open() {
  pending.length = asked.length = 0;
  const who = (request: Request) => ({ identity: { id: new URL(request.url).searchParams.get("as") ?? "editor" } });
  const host = await openHost({ agents: { Talk }, onBeforeConnect: who, onBeforeRequest: who });
  const editor = await connect(host, PATH);
  const agent = host.getAgentByName(Talk, "one");
  const messages = async (session: string) =>
    (await fetch(`${host.url}${PATH}/get-messages?_session=${session}`)).text();
  return { host, editor, agent, messages };
}

const verdict = () => eventually(() => pending.shift(), "somebody who waits for a verdict");
const message = (text: string) => ({ id: `m-${text}`, role: "user", parts: [{ type: "text", text }] });
const submit = (text: string) =>
  JSON.stringify({
    type: "cf_agent_use_chat_request",
    id: `r-${text}`,
    init: { method: "POST", body: JSON.stringify({ messages: [message(text)] }) },
  });

const WRITES = {
  submit: submit("late"),
  push: JSON.stringify({ type: "cf_agent_chat_messages", messages: [message("late")] }),
  state: JSON.stringify({ type: "cf_agent_state", state: { late: true } }),
  session: JSON.stringify({ type: "perdure_session", id: "q", op: "create", name: "late" }),
  rows: JSON.stringify({
    ...{ type: "perdure_rows_write", txid: "t" },
    changes: [{ table: "notes", key: "late", operation: "insert", value: { id: "late" } }],
  }),
};

test.each(Object.entries(WRITES))("who may only read when a verdict comes changes nothing: %s", async (_, frame) => {
  const { host, editor, agent, messages } = await open();
  const slow = await connect(host, `${PATH}?as=slow&_pk=slow`);
  slow.send(frame);
  const { say } = await verdict();
  await editor.call("lower", "slow");
  say(true);
  // Frames of one connection stay in order: what is behind it was looked at after it.
  const next = slow.call("hits");
  (await verdict()).say(true);
  await next;
  expect(await messages("main")).toBe("[]");
  expect(JSON.stringify(await agent.getSessions())).not.toContain("late");
  expect(editor.states()).toEqual([]);
  editor.send(JSON.stringify({ type: "perdure_rows_subscribe", id: "all", since: { notes: 0 } }));
  expect(await editor.frame(({ type }) => type === "perdure_rows_page")).toMatchObject({ rows: [] });
});

test("what waits for a verdict is not done once the server has closed the connection, and what is behind it neither", async () => {
  const { host, editor } = await open();
  const slow = await connect(host, `${PATH}?as=slow&_pk=slow`);
  for (const id of ["1", "2"]) slow.send(JSON.stringify({ type: "rpc", id, method: "hit", args: [] }));
  const { say } = await verdict();
  await editor.call("dismiss", "slow");
  await slow.whenClosed();
  say(true);
  (await verdict()).say(true);
  expect(await editor.call("hits")).toBe(0);
});

test("a client that does not listen when it is sent away is not heard any more", async () => {
  const { host, editor, messages } = await open();
  const deaf = await connect(host, `${PATH}?_pk=deaf`);
  expect(await deaf.call("hit")).toBe(1);
  // It never reads that it was closed, so it never says goodbye, and its side stays open for sending.
  deaf.ws.pause();
  await editor.call("dismiss", "deaf");
  deaf.send(JSON.stringify({ type: "rpc", id: "late", method: "hit", args: [] }));
  deaf.send(submit("late"));
  await new Promise((resolve) => deaf.ws.send(" ", resolve));
  // Sent later over another connection, and answered: by then the frames before it were looked at.
  for (let round = 0; round < 5; round++) expect(await editor.call("hits")).toBe(1);
  deaf.ws.resume();
  expect(await deaf.whenClosed()).toEqual({ code: 4401, reason: "logged out" });
  expect(await editor.call("hits")).toBe(1);
  expect(await messages("main")).toBe("[]");
});

test("a yes for one conversation is none for another: it is asked again where the client is by then", async () => {
  const { host, agent, messages } = await open();
  await agent.createSession({ id: "secret", name: "Secret" });
  const slow = await connect(host, `${PATH}?as=slow`);
  slow.send(submit("late"));
  const first = await verdict();
  await agent.switchSession("secret");
  first.say(true);
  const second = await verdict();
  second.say(false);
  await slow.frame(({ type, done }) => type === "cf_agent_use_chat_response" && done === true);
  expect([first.session, second.session]).toEqual(["main", "secret"]);
  expect(await messages("secret")).toBe("[]");
});

test("a request is about the conversation that it was judged for, whichever is the current one when the verdict comes", async () => {
  const { host, agent, messages } = await open();
  await agent.createSession({ id: "secret", name: "Secret" });
  await agent.persistMessages([message("kept") as never], { session: "secret" });
  const ways: [string, string, unknown?][] = [
    ["GET", "get-messages"],
    ["POST", "chat", { message: "late" }],
    ["DELETE", "chat"],
  ];
  for (const [method, path, body] of ways) {
    await agent.switchSession("main");
    const init = { method, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const answer = fetch(`${host.url}${PATH}/${path}?as=slow`, init);
    const { session, say } = await verdict();
    await agent.switchSession("secret");
    say(true);
    expect(session).toBe("main");
    expect(await (await answer).text(), `${method} ${path}`).not.toContain("kept");
  }
  expect(JSON.parse(await messages("secret"))).toMatchObject([{ id: "m-kept" }]);
});

test("whether a request may is asked when its body is there, however slowly that came", async () => {
  const { host } = await open();
  const { hostname, port } = new URL(host.url);
  const sending = httpRequest({ hostname, port, method: "POST", path: `${PATH}/chat?as=slow` });
  const status = new Promise((resolve) => sending.on("response", (response) => resolve(response.statusCode)));
  sending.write('{"message":');
  // Others are served meanwhile; nobody was asked about the half of it.
  for (let round = 0; round < 5; round++) await fetch(`${host.url}${PATH}/get-messages`);
  expect(asked).toEqual([]);
  sending.end('"late"}');
  (await verdict()).say(false);
  expect(await status).toBe(403);
});

/** Nothing of a chat: frames of the app's own. */
class Plain extends Agent {
  static {
    callable(this, "heard");
  }
  readonly #heard: string[] = [];
  heard(): readonly string[] {
    return this.#heard;
  }
  override onMessage(connection: Connection, said: string): void {
    this.#heard.push(said);
    if (said === "bye") connection.close(4000, "bye");
  }
}

test("frames right behind the one that an agent has closed the connection for are not heard", async () => {
  const host = await openHost({ agents: { Plain } });
  const client = await connect(host, "/agents/plain/one");
  for (const said of ["hello", "bye", "and another thing"]) client.send(said);
  await client.whenClosed();
  expect(await (await connect(host, "/agents/plain/one")).call("heard")).toEqual(["hello", "bye"]);
});

/** A call waits for a yes, and who may give it is found out slowly. */
class Till extends Talk {
  override authorize(): true {
    return true;
  }
  override authorizeApproval(): Promise<boolean> {
    return new Promise((say) => pending.push({ act: "tool.approve", session: undefined, say }));
  }
}

test.each(["lower", "dismiss"])(
  "an answer whose giver may not any more when it was judged is none: %s",
  async (how) => {
    const host = await openHost({ agents: { Till } });
    const agent = host.getAgentByName(Till, "one");
    const part = {
      type: "tool-pay",
      toolCallId: "pay",
      state: "approval-requested",
      input: {},
      approval: { id: "ask" },
    };
    await agent.persistMessages([message("buy"), { id: "a", role: "assistant", parts: [part] }] as never);
    const editor = await connect(host, "/agents/till/one");
    const approver = await connect(host, "/agents/till/one?_pk=approver");
    approver.send(JSON.stringify({ type: "cf_agent_tool_approval", toolCallId: "pay", approved: true }));
    const { say } = await verdict();
    await editor.call(how, "approver");
    say(true);
    for (let round = 0; round < 5; round++) await editor.call("hits");
    const stored = await (await fetch(`${host.url}/agents/till/one/get-messages`)).text();
    expect(stored).toContain("approval-requested");
  },
);
