// A client of the chat wire that does only what the test says: frames in, frames out.
import type { UIMessage, UIMessageChunk } from "ai";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../host/open-host.ts";

export interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly body?: string;
  readonly done?: boolean;
  readonly error?: boolean;
  readonly outcome?: string;
  readonly replay?: boolean;
  readonly replayComplete?: boolean;
  readonly continuation?: boolean;
  readonly seq?: number;
  readonly messageIds?: readonly string[];
  readonly messages?: readonly UIMessage[];
  readonly message?: UIMessage;
  readonly probeId?: string;
  readonly reason?: string;
  readonly recovering?: boolean;
  readonly connect?: boolean;
}

export interface RequestExtras {
  readonly trigger?: string;
  readonly clientTools?: readonly unknown[];
  readonly [field: string]: unknown;
}

export interface ChatClient {
  readonly ws: WebSocket;
  /** Everything that came, in order; without what every agent sends on connect, and the conversation of then. */
  readonly frames: readonly Frame[];
  /** The conversation as it was sent on connect, if it was. */
  readonly greeting: Frame | undefined;
  readonly isOpen: boolean;
  raw(data: string | Uint8Array): void;
  send(frame: Record<string, unknown>): void;
  /** Sends a chat request with these messages. */
  request(id: string, messages: readonly unknown[], extras?: RequestExtras): void;
  cancel(id: string): void;
  clear(): void;
  /** Asks for a stream; resolves with the answer. */
  probe(probeId?: string): Promise<Frame>;
  ack(id: string): void;
  result(toolCallId: string, output: unknown, extras?: Record<string, unknown>): void;
  approve(toolCallId: string, approved: boolean, extras?: Record<string, unknown>): void;
  /** The first frame, past or future, that matches. */
  frame(matches: (frame: Frame) => boolean, what?: string): Promise<Frame>;
  /** The frame that ends a turn. */
  done(id: string): Promise<Frame>;
  /** Waits until the text of a turn, live or replayed, ends with this. */
  said(id: string, text: string): Promise<void>;
  /** Response frames of a turn. */
  of(id: string): readonly Frame[];
  ofType(type: string): readonly Frame[];
  /** Waits until the server has handled everything that was sent before on this socket. */
  flushed(): Promise<void>;
  close(): Promise<void>;
}

export const RESPONSE = "cf_agent_use_chat_response";
export const TRANSCRIPT = "cf_agent_chat_messages";
export const UPDATED = "cf_agent_message_updated";
export const RESUMING = "cf_agent_stream_resuming";
export const PENDING = "cf_agent_stream_pending";
export const NONE = "cf_agent_stream_resume_none";
export const RECOVERING = "cf_agent_chat_recovering";
export const CLEAR = "cf_agent_chat_clear";

const GREETING: ReadonlySet<string> = new Set(["cf_agent_identity", "cf_agent_state", "cf_agent_mcp_servers", "rpc"]);

/** Connects and waits for the greeting. */
export async function connectTo(url: string): Promise<ChatClient> {
  const ws = new WebSocket(url.replace("http", "ws"));
  onTestFinished(() => ws.terminate());
  const frames: Frame[] = [];
  let greeting: Frame | undefined;
  let greeted = false;
  let calls = 0;
  const answered = new Set<string>();
  ws.on("message", (data: Buffer, isBinary: boolean) => {
    if (isBinary) return;
    const frame = JSON.parse(data.toString("utf8")) as Frame;
    if (frame.type === "cf_agent_mcp_servers") greeted = true;
    if (frame.type === "rpc" && frame.id !== undefined) answered.add(frame.id);
    // Whoever was away is told that nothing is being recovered.
    if (!greeted && frame.type === RECOVERING && frame.recovering === false) return;
    if (frame.connect === true) greeting = frame;
    else if (!GREETING.has(frame.type)) frames.push(frame);
  });
  const client: ChatClient = {
    ws,
    frames,
    get greeting() {
      return greeting;
    },
    get isOpen() {
      return ws.readyState === WebSocket.OPEN;
    },
    raw: (data) => ws.send(data),
    send: (frame) => ws.send(JSON.stringify(frame)),
    request(id, messages, extras = {}) {
      const body = JSON.stringify({ messages, trigger: "submit-message", ...extras });
      client.send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
    },
    cancel: (id) => client.send({ type: "cf_agent_chat_request_cancel", id }),
    clear: () => client.send({ type: CLEAR }),
    async probe(probeId = `probe-${++calls}`) {
      client.send({ type: "cf_agent_stream_resume_request", probeId });
      return client.frame((frame) => frame.probeId === probeId, "an answer to a probe");
    },
    ack: (id) => client.send({ type: "cf_agent_stream_resume_ack", id }),
    result: (toolCallId, output, extras) =>
      client.send({ type: "cf_agent_tool_result", toolCallId, toolName: "", output, autoContinue: true, ...extras }),
    approve: (toolCallId, approved, extras) =>
      client.send({ type: "cf_agent_tool_approval", toolCallId, approved, autoContinue: true, ...extras }),
    frame: (matches, what = "a frame") =>
      eventually(() => frames.find(matches), `${what}; there were ${summary(frames)}`),
    done: (id) => client.frame((frame) => frame.id === id && frame.done === true, `the end of ${id}`),
    async said(id, text) {
      await eventually(() => textOf(client.of(id)).endsWith(text), `"${text}" in ${id}`);
    },
    of: (id) => frames.filter((frame) => frame.type === RESPONSE && frame.id === id),
    ofType: (type) => frames.filter((frame) => frame.type === type),
    async flushed() {
      // Frames of one socket are handled in order; a call of a method that does not exist changes nothing.
      const id = `flush-${++calls}`;
      client.send({ type: "rpc", id, method: "nothing", args: [] });
      await eventually(() => answered.has(id), "an answer to a call");
    },
    async close() {
      ws.close();
      await eventually(() => ws.readyState === WebSocket.CLOSED, "the end of a socket");
    },
  };
  await new Promise<void>((resolve, reject) => {
    ws.once("open", () => resolve());
    ws.once("error", reject);
  });
  ws.on("error", () => undefined);
  await eventually(() => greeted, "a greeting");
  return client;
}

function summary(frames: readonly Frame[]): string {
  return frames
    .map(({ type, id, body, done }) => `${type} ${id ?? ""} ${body?.slice(0, 40) ?? ""} ${done ?? ""}`)
    .join("\n");
}

/** The chunks of response frames. */
export function chunksOf(frames: readonly Frame[]): UIMessageChunk[] {
  const chunks: UIMessageChunk[] = [];
  for (const { body, done, error } of frames) {
    if (body !== undefined && body !== "" && done === false && error !== true)
      chunks.push(JSON.parse(body) as UIMessageChunk);
  }
  return chunks;
}

/** The text of response frames, with what was replayed counted once. */
export function textOf(frames: readonly Frame[]): string {
  const last = frames.findLastIndex(({ replay, seq }) => replay === true && seq === 0);
  const chunks = chunksOf(last === -1 ? frames : frames.slice(last));
  return chunks.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join("");
}

export function user(id: string, text = id): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

/** All text of a message. */
export function textIn(message: UIMessage | undefined): string {
  return message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";
}
