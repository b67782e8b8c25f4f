import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "perdure/node";
import type { ServedHost, ServeOptions } from "perdure/node";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import type { ClientOptions } from "ws";
import { until as eventually } from "../support/until.ts";

export { eventually };

/** A folder for one test. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "perdure-test-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A real host on a free port, stopped at the end of the test. On a folder of its own unless told otherwise. */
export async function openHost(options: ServeOptions): Promise<ServedHost> {
  const place = options.dir === undefined && options.storage === undefined ? { dir: tempDir() } : {};
  const host = await serve({ port: 0, signals: false, graceMs: 1000, ...place, ...options });
  onTestFinished(() => host.stop());
  return host;
}

/** Lets everything that is on its way on this machine arrive: several rounds through the event loop and the disk. */
export async function quiet(ms = 100): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

export type Frame = Record<string, unknown>;

/** One client's end of a socket. */
export interface Client {
  readonly ws: WebSocket;
  /** JSON frames so far. Other text is `{ text }`, binary `{ bytes }`. */
  readonly frames: readonly Frame[];
  readonly closed: { readonly code: number; readonly reason: string } | undefined;
  send(data: string | Uint8Array): void;
  /** Calls a callable method. Rejects with the text of the error frame, or when the socket closes. */
  call(method: string, ...args: unknown[]): Promise<unknown>;
  /** The first frame, past or future, that `matches`. */
  frame(matches: (frame: Frame) => boolean): Promise<Frame>;
  /** The states that were sent, in order. */
  states(): unknown[];
  whenClosed(): Promise<{ readonly code: number; readonly reason: string }>;
}

/** Connects and waits until the agent has greeted. `path` is like `/agents/counter/anna?x=1`. */
export async function connect(
  host: { readonly url: string },
  path: string,
  options: ClientOptions & { readonly greeted?: boolean } = {},
): Promise<Client> {
  const { greeted = true, ...socketOptions } = options;
  const ws = new WebSocket(`${host.url.replace("http", "ws")}${path}`, socketOptions);
  onTestFinished(() => ws.terminate());
  const frames: Frame[] = [];
  let closed: Client["closed"];
  let calls = 0;
  ws.on("message", (data: Buffer, isBinary: boolean) => frames.push(toFrame(data, isBinary)));
  ws.on("close", (code, reason) => (closed = { code, reason: reason.toString() }));
  const client: Client = {
    ws,
    frames,
    get closed() {
      return closed;
    },
    send: (data) => ws.send(data),
    async call(method, ...args) {
      const id = `call-${++calls}`;
      ws.send(JSON.stringify({ type: "rpc", id, method, args }));
      const isAnswer = (frame: Frame) => frame.type === "rpc" && frame.id === id && frame.done !== false;
      const answer = await eventually(() => frames.find(isAnswer) ?? closed, `an answer to ${method}`);
      if ("code" in answer) throw new Error(`closed with ${String(answer.code)}`);
      if (answer.success !== true) throw new Error(String(answer.error));
      return answer.result;
    },
    frame: (matches) => eventually(() => frames.find(matches), "a frame"),
    states: () => frames.filter(({ type }) => type === "cf_agent_state").map(({ state }) => state),
    whenClosed: () => eventually(() => closed, "the end of a socket"),
  };
  await new Promise<void>((resolve, reject) => {
    ws.once("open", () => resolve());
    ws.once("error", reject);
  });
  ws.on("error", () => undefined);
  if (greeted) await client.frame(({ type }) => type === "cf_agent_mcp_servers");
  return client;
}

function toFrame(data: Buffer, isBinary: boolean): Frame {
  if (isBinary) return { bytes: new Uint8Array(data) };
  const text = data.toString("utf8");
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Frame) : { text };
  } catch {
    return { text };
  }
}
