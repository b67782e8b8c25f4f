// The least server that holds a chat: Node, ws, SQLite and streamText in one process. A yardstick for rows, not a product: it
// checks nothing that it is sent, resumes nothing, recovers nothing, and syncs nothing to the disk.
// Like `chat/server.ts` it takes STATE_DIR and PORT from its environment; it tells its address over IPC, or prints it.
import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { isStepCount, jsonSchema, type ModelMessage, streamText, tool } from "ai";
import Database from "better-sqlite3";
import { type WebSocket, WebSocketServer } from "ws";
import { mockModel } from "../chat/mock-model.ts";

interface Message {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly parts: readonly { readonly type: string; readonly text?: string }[];
}

interface ChatRequest {
  readonly type: string;
  readonly id: string;
  readonly init: { readonly body: string };
}

interface Conversation {
  readonly name: string;
  readonly sockets: Set<WebSocket>;
  readonly messages: Message[];
  last: Promise<void>;
}

const MAX_STEPS = 100;

const dir = process.env.STATE_DIR ?? ".perdure/floor";
mkdirSync(dir, { recursive: true });
const db = new Database(join(dir, "floor.db"));
db.pragma("journal_mode = WAL");
db.pragma("synchronous = NORMAL");
db.exec(`
  CREATE TABLE IF NOT EXISTS message (agent TEXT, seq INTEGER, body TEXT, PRIMARY KEY (agent, seq)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS chunk (stream TEXT, seq INTEGER, body TEXT, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
`);
const putMessage = db.prepare("INSERT INTO message VALUES (?, ?, ?)");
const putChunk = db.prepare("INSERT INTO chunk VALUES (?, ?, ?)");
const dropChunks = db.prepare("DELETE FROM chunk WHERE stream = ?");
const readMessages = db.prepare<[string], string>("SELECT body FROM message WHERE agent = ? ORDER BY seq").pluck();

const echo = tool({
  description: "Gives back what it is given.",
  inputSchema: jsonSchema<{ tag: string; k: number }>({ type: "object" }),
  execute: ({ tag, k }) => ({ ok: true, tag, k }),
});

const conversations = new Map<string, Conversation>();

function conversation(name: string): Conversation {
  const known = conversations.get(name);
  if (known !== undefined) return known;
  const messages = readMessages.all(name).map((body) => JSON.parse(body) as Message);
  const made = { name, sockets: new Set<WebSocket>(), messages, last: Promise.resolve() };
  conversations.set(name, made);
  return made;
}

function add({ name, messages }: Conversation, message: Message): void {
  putMessage.run(name, messages.length, JSON.stringify(message));
  messages.push(message);
}

function toModel({ role, parts }: Message): ModelMessage {
  return { role, content: parts.flatMap(({ type, text }) => (type === "text" ? [{ type, text: text ?? "" }] : [])) };
}

async function reply(chat: Conversation, id: string): Promise<void> {
  const send = (body: string, done: boolean) => {
    const frame = JSON.stringify({ type: "cf_agent_use_chat_response", id, body, done });
    for (const socket of chat.sockets) socket.send(frame);
  };
  const messageId = randomUUID();
  const answer = streamText({
    model: mockModel(),
    system: "You are a benchmark.",
    messages: chat.messages.map(toModel),
    tools: { echo },
    stopWhen: isStepCount(MAX_STEPS),
  });
  let text = "";
  let seq = 0;
  for await (const chunk of answer.toUIMessageStream({ generateMessageId: () => messageId })) {
    const body = JSON.stringify(chunk);
    putChunk.run(id, seq++, body);
    if (chunk.type === "text-delta") text += chunk.delta;
    send(body, false);
  }
  add(chat, { id: messageId, role: "assistant", parts: [{ type: "text", text }] });
  dropChunks.run(id);
  send("", true);
}

/** `/agents/<class>/<name>…` */
function nameIn(url = ""): string {
  return decodeURIComponent(url.split("?")[0]?.split("/")[3] ?? "");
}

const server = createServer((request, response) => {
  const isHistory = request.url?.endsWith("/get-messages") === true;
  response.end(isHistory ? JSON.stringify(conversation(nameIn(request.url)).messages) : "ok");
});
new WebSocketServer({ server, perMessageDeflate: false }).on("connection", (socket, request) => {
  const chat = conversation(nameIn(request.url));
  chat.sockets.add(socket);
  socket.on("close", () => chat.sockets.delete(socket));
  socket.send(JSON.stringify({ type: "cf_agent_chat_messages", messages: chat.messages }));
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString("utf8")) as ChatRequest;
    if (frame.type !== "cf_agent_use_chat_request") return;
    const known = new Set(chat.messages.map(({ id }) => id));
    const { messages } = JSON.parse(frame.init.body) as { messages: readonly Message[] };
    for (const message of messages) if (!known.has(message.id)) add(chat, message);
    chat.last = chat.last.then(() => reply(chat, frame.id));
  });
});
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  if (process.send === undefined) console.log(url);
  else process.send({ result: url });
});
// Who measures is gone.
if (process.send !== undefined) process.on("disconnect", () => process.exit());
