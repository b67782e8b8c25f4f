import { request } from "node:http";
import { WebSocket } from "ws";
import { parseFrame } from "../../src/wire/parse.ts";
import { until } from "../support/until.ts";
import type { Sent } from "./routes.ts";

type Frame = Readonly<Record<string, unknown>>;

/** How often something must be answered. */
interface Owed {
  readonly least: number;
  readonly most: number;
  readonly text: string;
}

/** As many ids are remembered to be used again. */
const REMEMBERED = 40;
/** As much of a frame is shown when something is wrong. */
const SHOWN = 400;

/** One socket: what it sent and is owed, what came, and what must never come. */
export class Wire {
  readonly path: string;
  readonly isChat: boolean;
  /** What no frame to this socket may hold. */
  readonly never: string;
  readonly messages: string[] = [];
  readonly calls: string[] = [];
  readonly sessions: string[] = [];
  readonly turns: string[] = [];
  /** What went wrong, in words. */
  readonly faults: string[] = [];
  /** Has sent something that moves it elsewhere: what it asked for before may be told to others only. */
  moved = false;
  #ws: WebSocket | undefined;
  #answers = new Map<string, number>();
  #owed = new Map<string, Owed>();
  #used: Set<string>;
  #calls = 0;
  #greeted = false;

  constructor(path: string, options: { readonly never: string; readonly used: Set<string> }) {
    this.path = path;
    this.isChat = !path.startsWith("/agents/plain");
    this.never = options.never;
    this.#used = options.used;
  }

  get isOpen(): boolean {
    return this.#ws?.readyState === WebSocket.OPEN;
  }

  async open(url: string): Promise<void> {
    this.#answers = new Map();
    this.#owed = new Map();
    this.moved = false;
    this.#greeted = false;
    const ws = new WebSocket(url.replace("http", "ws") + this.path);
    this.#ws = ws;
    ws.on("message", (data: Buffer, isBinary: boolean) => isBinary || this.#take(data.toString("utf8")));
    ws.on("error", () => undefined);
    ws.on("close", (code) => {
      if (code === 1011 || code === 1006) this.faults.push(`${this.path} was closed with ${code}`);
    });
    await until(() => this.#greeted || ws.readyState === WebSocket.CLOSED, `a greeting on ${this.path}`);
  }

  /** Breaks the connection off. */
  cut(): void {
    this.#ws?.removeAllListeners("close");
    this.#ws?.terminate();
  }

  send(data: string | Uint8Array): void {
    if (!this.isOpen) return;
    if (typeof data === "string") this.#owe(data);
    this.#ws?.send(data);
  }

  /** Calls a method, and waits for the answer. */
  async call(method: string, ...args: unknown[]): Promise<unknown> {
    const id = `own-${++this.#calls}`;
    let answer: Frame | undefined;
    const listen = (data: Buffer) => {
      const text = data.toString("utf8");
      if (text.startsWith(`{"type":"rpc","id":"${id}"`)) answer = JSON.parse(text) as Frame;
    };
    this.#ws?.on("message", listen);
    this.#ws?.send(JSON.stringify({ type: "rpc", id, method, args }));
    const found = await until(() => answer ?? (this.isOpen ? undefined : {}), `an answer to ${method} on ${this.path}`);
    this.#ws?.off("message", listen);
    return "result" in found ? found.result : found.error;
  }

  /** What is owed and did not come, or came too often. `turns`: also the ends of turns. */
  debts(turns: boolean): string[] {
    if (!this.isOpen) return [];
    return [...this.#owed].flatMap(([key, { least, most, text }]) => {
      const isTurn = key.startsWith("turn ");
      if (isTurn && !turns) return [];
      const count = this.#answers.get(key) ?? 0;
      if (count < least && !(isTurn && this.moved)) return [`${this.path} got no answer to ${text}`];
      return count > most ? [`${this.path} got ${count} answers to ${text}`] : [];
    });
  }

  /** What was owed is no longer looked at. */
  settle(): void {
    this.#owed.clear();
    this.#answers.clear();
  }

  #owe(text: string): void {
    const frame = parseFrame(text);
    const owe = (key: string, id: string, least = 1, most = 1) => {
      const isNew = !this.#used.has(id);
      this.#used.add(id);
      // A name that comes again may be answered with what was told before, or together.
      if (isNew) this.#owed.set(`${key} ${id}`, { least, most, text: text.slice(0, SHOWN) });
      else this.#owed.delete(`${key} ${id}`);
    };
    if (frame.kind === "rpc" || frame.kind === "rpc-refused") owe("rpc", frame.id);
    if (frame.kind === "rows-subscribe") owe("rows", frame.id, 1, Number.POSITIVE_INFINITY);
    if (frame.kind === "rows-write") owe("write", frame.txid);
    if (frame.kind === "rows-refused" && frame.txid !== undefined) owe("write", frame.txid);
    if (frame.kind === "rows-refused" && frame.id !== undefined) owe("rows", frame.id);
    if (!this.isChat) return;
    if (frame.kind === "session" || frame.kind === "session-refused") owe("session", frame.id);
    if (frame.kind === "chat-request" || frame.kind === "chat-refused" || frame.kind === "chat-long")
      owe("turn", frame.id, 1, Number.POSITIVE_INFINITY);
    if (frame.kind === "resume-request" && frame.probeId !== undefined)
      owe("probe", frame.probeId, 1, Number.POSITIVE_INFINITY);
    if (frame.kind === "session" && ["attach", "switchBranch", "delete", "clear"].includes(frame.ask.op))
      this.moved = true;
    if (frame.kind === "chat-request") remember(this.turns, frame.id);
  }

  #take(text: string): void {
    if (text.includes(this.never))
      this.faults.push(`${this.path} was sent what is not its own: ${text.slice(0, SHOWN)}`);
    const frame = JSON.parse(text) as Frame;
    const { type, id, txid, probeId } = frame;
    if (type === "cf_agent_mcp_servers") this.#greeted = true;
    const note = (key: string) => this.#answers.set(key, (this.#answers.get(key) ?? 0) + 1);
    if (type === "rpc" && (frame.success === false || frame.done !== false)) note(`rpc ${String(id)}`);
    if (type === "perdure_session_result") note(`session ${String(id)}`);
    if (type === "perdure_rows_page" || (type === "perdure_rows_error" && id !== undefined)) note(`rows ${String(id)}`);
    if (type === "perdure_rows_receipt" || (type === "perdure_rows_error" && txid !== undefined))
      note(`write ${String(txid)}`);
    if (type === "cf_agent_use_chat_response" && frame.done === true) note(`turn ${String(id)}`);
    if (probeId !== undefined) note(`probe ${String(probeId)}`);
    this.#learn(text, frame);
  }

  /** What the next frames may refer to. */
  #learn(text: string, frame: Frame): void {
    for (const [, id = ""] of text.matchAll(/\\?"toolCallId\\?":\\?"([\w.-]+)\\?"/g)) remember(this.calls, id);
    if (frame.type === "cf_agent_chat_messages" && Array.isArray(frame.messages)) {
      for (const one of frame.messages.slice(-5) as Frame[]) remember(this.messages, String(one.id));
    }
    const value = frame.value as Frame | null | undefined;
    if (frame.type === "perdure_session_result" && typeof value?.id === "string") remember(this.sessions, value.id);
  }
}

function remember(list: string[], id: string): void {
  if (!list.includes(id)) list.push(id);
  if (list.length > REMEMBERED) list.shift();
}

/** Sends a request as it is. Resolves with the status when it is answered; what is streamed is not waited for. */
export function ask(url: string, { method, path, headers, body }: Sent): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const sent = request(
      { hostname, port, method, path, headers: { ...headers, ...length }, agent: false },
      (answer) => {
        resolve(answer.statusCode ?? 0);
        answer.on("error", () => undefined);
        if (String(answer.headers["content-type"]).includes("event-stream")) answer.destroy();
        else answer.resume();
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}
