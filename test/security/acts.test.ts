import { expect, test } from "vitest";
import { ACTS, FRAME_ACTS } from "../../src/door/authorize.ts";
import { CHAT_ROUTES } from "../../src/parts/chat.ts";
import { parseFrame, type ParsedFrame } from "../../src/wire/parse.ts";
import type { SessionOpName } from "../../src/wire/session-frames.ts";
import type { Client, Frame } from "../host/open-host.ts";
import { openVault, type Vault } from "./vault.ts";

/** Where calls wait for an answer, and turns for their start. */
const IN_OTHER = "&_session=other";

const SESSION_OPS: Record<SessionOpName, object> = {
  sessions: {},
  create: { name: "n" },
  rename: { name: "n" },
  delete: {},
  clear: {},
  attach: { session: "main" },
  fork: {},
  branches: { messageId: "u1-other" },
  switchBranch: { messageId: "u1-other", own: true, named: true },
  search: { query: "secret" },
  report: {},
  compact: { preview: true },
  applyCompaction: { summary: "s", messageId: "u1-other" },
  undoCompaction: { compaction: "c" },
  pin: { messageId: "u1-other" },
  unpin: { messageId: "u1-other" },
  title: {},
};

const chat = (id: string, body: string) => ({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
const text = { id: "u9", role: "user", parts: [{ type: "text", text: "mine" }] };
const rows = [{ table: "notes", key: "k", operation: "insert", value: { id: "k" } }];

const DEEP = `${"[".repeat(300)}${"]".repeat(300)}`;
/** More than is read in one go. */
const MANY = Array.from({ length: 40_000 }, (_, i) => ({ ...text, id: `many-${i}` }));

/** Frames of every kind, as a client sends them. A new kind without one does not compile. */
const FRAMES: Record<ParsedFrame["kind"], readonly unknown[]> = {
  rpc: [{ type: "rpc", id: "q", method: "look", args: [] }],
  "rpc-refused": [{ type: "rpc", id: "q", method: "look", args: 1 }],
  state: [{ type: "cf_agent_state", state: { mine: 1 } }],
  "state-refused": [`{"type":"cf_agent_state","state":${DEEP}}`],
  other: [{ type: "mine" }],
  refused: [DEEP],
  "chat-request": [chat("r9", JSON.stringify({ messages: [text], trigger: "submit-message" }))],
  "chat-long": [chat("r9", JSON.stringify({ messages: MANY, trigger: "submit-message" }))],
  "chat-refused": [chat("r9", "no json")],
  "chat-messages": [{ type: "cf_agent_chat_messages", messages: [text] }],
  "transcript-long": [{ type: "cf_agent_chat_messages", messages: MANY }],
  "chat-clear": [{ type: "cf_agent_chat_clear" }],
  "chat-cancel": [{ type: "cf_agent_chat_request_cancel", id: "running-other" }],
  "chat-older": [{ type: "perdure_chat_older", before: 3 }],
  "resume-request": [{ type: "cf_agent_stream_resume_request", probeId: "p" }],
  "resume-ack": [{ type: "cf_agent_stream_resume_ack", id: "running-other" }],
  "tool-result": [{ type: "cf_agent_tool_result", toolCallId: "run-other", toolName: "danger", output: "forged" }],
  "tool-approval": [{ type: "cf_agent_tool_approval", toolCallId: "yes-other", approved: true }],
  "tool-stop": [{ type: "perdure_tool_stop", toolCallId: "later-other" }],
  session: Object.entries(SESSION_OPS).map(([op, more]) => ({ type: "perdure_session", id: "q", op, ...more })),
  "session-refused": [{ type: "perdure_session", id: "q", op: "none" }],
  "rows-subscribe": [{ type: "perdure_rows_subscribe", id: "q", since: { notes: 0 } }],
  "rows-unsubscribe": [{ type: "perdure_rows_unsubscribe" }],
  "rows-write": [{ type: "perdure_rows_write", txid: "t", changes: rows }],
  "rows-refused": [{ type: "perdure_rows_write", txid: "t" }],
};

/** What tells its sender that a frame of a kind was refused. Undefined: nobody waits for anything. */
const TOLD: Record<ParsedFrame["kind"], Frame | undefined> = {
  rpc: { type: "rpc", id: "q", success: false },
  "rpc-refused": { type: "rpc", id: "q", success: false },
  state: { type: "cf_agent_state_error" },
  "state-refused": { type: "cf_agent_state_error" },
  other: undefined,
  refused: undefined,
  "chat-request": { type: "cf_agent_use_chat_response", id: "r9", done: true, error: true },
  "chat-long": { type: "cf_agent_use_chat_response", id: "r9", done: true, error: true },
  "chat-refused": { type: "cf_agent_use_chat_response", id: "r9", done: true, error: true },
  "chat-messages": { type: "cf_agent_chat_messages" },
  "transcript-long": { type: "cf_agent_chat_messages" },
  "chat-clear": { type: "cf_agent_chat_messages" },
  "chat-cancel": { type: "cf_agent_chat_messages" },
  "chat-older": { type: "perdure_chat_older", before: 3, messages: [] },
  "resume-request": { type: "cf_agent_stream_resume_none", probeId: "p" },
  "resume-ack": { type: "cf_agent_use_chat_response", id: "running-other", done: true },
  "tool-result": { type: "perdure_chat_approval_refused", toolCallId: "run-other" },
  "tool-approval": { type: "perdure_chat_approval_refused", toolCallId: "yes-other" },
  "tool-stop": { type: "cf_agent_chat_messages" },
  session: { type: "perdure_session_result", id: "q", error: {} },
  "session-refused": { type: "perdure_session_result", id: "q", error: {} },
  "rows-subscribe": { type: "perdure_rows_error", id: "q" },
  "rows-unsubscribe": { type: "perdure_rows_error" },
  "rows-write": { type: "perdure_rows_error", txid: "t" },
  "rows-refused": { type: "perdure_rows_error", txid: "t" },
};

const asText = (frame: unknown) => (typeof frame === "string" ? frame : JSON.stringify(frame));

/** Every frame, with its kind and act. */
const cases = Object.entries(FRAMES).flatMap(([kind, frames]) =>
  frames.map((frame) => {
    const parsed = parseFrame(asText(frame));
    if (parsed.kind !== kind) throw new Error(`A frame of the kind ${kind} is read as ${parsed.kind}.`);
    const { act } = (FRAME_ACTS[parsed.kind] as (one: ParsedFrame) => { act: keyof typeof ACTS })(parsed);
    return { kind: parsed.kind, act, frame, name: `${kind} (${act})` };
  }),
);

/** Sends a frame, and waits until it was handled. */
async function send(client: Client, frame: unknown): Promise<void> {
  client.send(asText(frame));
  await client.call("no such method").catch(() => undefined);
  // What is asked of sessions may take a while, such as a search, and is always answered.
  if (parseFrame(asText(frame)).kind === "session") await client.frame(({ type }) => type === "perdure_session_result");
}

test("there is a frame here for every act that frames can be", () => {
  const acts = new Set(cases.map(({ act }) => act));
  const byHttp = new Set(CHAT_ROUTES.flatMap((route) => route.acts));
  const others = ["connect", "child.reach", "request", "mcp.signIn", "messenger.receive"];
  const missing = Object.keys(ACTS).filter((act) => !acts.has(act as never) && !byHttp.has(act as never));
  expect(missing.toSorted()).toEqual(others.toSorted());
});

const writes = cases.filter(({ act }) => ACTS[act] === "write");
const others = cases.filter(({ act }) => ACTS[act] !== "write");

test.each(writes)(
  "a viewer's frame that would write is refused, and is answered: $name",
  async ({ kind, act, frame }) => {
    const vault = await openVault();
    const viewer = await vault.connect("viewer", IN_OTHER);
    const before = await vault.dump();
    await send(viewer, frame);
    await expect.poll(() => viewer.frames.some((one) => says(one, TOLD[kind]))).toBe(true);
    expect(await vault.dump()).toEqual(before);
    expect(vault.takeRefused()).toMatchObject([{ act, code: "read_only", by: "viewer" }]);
  },
);

test.each(others)("a viewer's frame that only looks is taken, and changes nothing: $name", async ({ frame }) => {
  const vault = await openVault();
  const viewer = await vault.connect("viewer", IN_OTHER);
  const before = await vault.dump();
  await send(viewer, frame);
  expect(await vault.dump()).toEqual(before);
  expect(vault.takeRefused()).toEqual([]);
});

/** Whether a frame says this, and perhaps more. An empty object stands for any. */
function says(frame: Frame, told: Frame | undefined): boolean {
  return Object.entries(told ?? {}).every(([key, value]) =>
    typeof value === "object" && !Array.isArray(value)
      ? typeof frame[key] === "object"
      : JSON.stringify(frame[key]) === JSON.stringify(value),
  );
}

const decided = cases.filter(({ act }) => act !== "malformed");

test.each(decided)("what `authorize` refuses is not done, and is answered: $name", async ({ kind, act, frame }) => {
  const vault = await openVault();
  const nobody = await vault.connect("nobody", IN_OTHER);
  const before = await vault.dump();
  await send(nobody, frame);
  // Nobody waits for an answer to a frame of the app's own: any frame will do.
  await expect.poll(() => nobody.frames.some((one) => says(one, TOLD[kind]))).toBe(true);
  expect(await vault.dump()).toEqual(before);
  expect(vault.takeRefused()[0]).toMatchObject({ act, code: "not_allowed", by: "nobody" });
});

test("frames of one connection stay in order when the verdict takes its time", async () => {
  const vault = await openVault();
  const client = await vault.connect("slow-nobody");
  for (let i = 0; i < 20; i++) client.send(JSON.stringify({ type: "rpc", id: `c${i}`, method: "look", args: [] }));
  await client.frame(({ id }) => id === "c19");
  const ids = client.frames.filter(({ type }) => type === "rpc").map(({ id }) => id);
  expect(ids).toEqual(Array.from({ length: 20 }, (_, i) => `c${i}`));
});

const BODIES: Readonly<Record<string, unknown>> = {
  "POST chat": { requestId: "r9", message: "mine" },
  "POST chat/tools/{call}": { approved: true },
  "PATCH chat/inbox/{request}": { text: "changed" },
};

const requests = CHAT_ROUTES.map(({ method, shape, acts }) => {
  const hash = "a".repeat(64);
  const path = shape.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === "call" ? "yes-other" : name === "hash" ? hash : name === "turn" ? "running-other" : "waiting-other",
  );
  const act = shape === "chat/tools/{call}" ? ("tool.approve" as const) : acts[0];
  return { name: `${method} ${shape}`, method, path, act, body: BODIES[`${method} ${shape}`] };
});

async function ask(vault: Vault, role: "viewer" | "nobody" | "editor", one: (typeof requests)[number]) {
  const response = await vault.fetch(role, one.method, one.path, one.body, IN_OTHER);
  // A stream goes on for as long as its turn.
  if (response.ok) await response.body?.cancel();
  return response;
}

const writing = requests.filter(({ act }) => ACTS[act] === "write");
const reading = requests.filter(({ act }) => ACTS[act] !== "write");

/** The code of an error; of one without a body what it would be. */
async function codeOf(response: Response): Promise<string> {
  const text = await response.text();
  return text === "" ? "not_allowed" : (JSON.parse(text) as { error: { code: string } }).error.code;
}

test.each(writing)("over HTTP a viewer changes nothing: $name", async (one) => {
  const vault = await openVault();
  const before = await vault.dump();
  const response = await ask(vault, "viewer", one);
  expect([response.status, await codeOf(response)]).toEqual([403, "read_only"]);
  expect(await vault.dump()).toEqual(before);
  expect(vault.takeRefused()).toMatchObject([{ act: one.act, code: "read_only", by: "viewer" }]);
});

test.each(reading)("over HTTP a viewer may look: $name", async (one) => {
  const vault = await openVault();
  const before = await vault.dump();
  expect((await ask(vault, "viewer", one)).status).not.toBe(403);
  expect([await vault.dump(), vault.takeRefused()]).toEqual([before, []]);
});

test.each(requests)("over HTTP what `authorize` refuses is not done: $name", async (one) => {
  const vault = await openVault();
  const before = await vault.dump();
  const response = await ask(vault, "nobody", one);
  expect([response.status, await codeOf(response)]).toEqual([403, "not_allowed"]);
  expect(await vault.dump()).toEqual(before);
  expect(vault.takeRefused()).toMatchObject([{ act: one.act, code: "not_allowed", by: "nobody" }]);
});

test.each(requests)("over HTTP who may is let in: $name", async (one) => {
  const vault = await openVault();
  expect((await ask(vault, "editor", one)).status).not.toBe(403);
  expect(vault.takeRefused()).toEqual([]);
});

test("what is for onRequest, a new socket and a tool answer inside of a chat request are acts too", async () => {
  const vault = await openVault();
  expect((await vault.fetch("nobody", "GET", "anything")).status).toBe(403);
  expect(await (await vault.fetch("viewer", "GET", "anything")).text()).toBe("anything");
  const parts = [
    { type: "tool-danger", toolCallId: "yes-other", state: "approval-responded", approval: { approved: true } },
  ];
  const body = { messages: [{ id: "a1-other", role: "assistant", parts }] };
  const before = await vault.dump();
  expect((await vault.fetch("viewer", "POST", "chat", body, IN_OTHER)).status).toBe(403);
  expect(await vault.dump()).toEqual(before);
  expect(vault.takeRefused().map(({ act }) => act)).toEqual(["request", "chat.submit"]);
});
