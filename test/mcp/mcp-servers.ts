// MCP servers made with the official package: the newest protocol, the older one with sessions, and the oldest over SSE.
import {
  createMcpHandler,
  type JSONRPCMessage,
  McpServer,
  type Transport,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { listen, type WebServer } from "./web-server.ts";

export type Build = (server: McpServer) => void;

/** A server under test. */
export interface TestServer {
  readonly url: string;
  readonly origin: string;
  /** Every request that came, as `METHOD path`, with its headers. */
  readonly requests: { readonly method: string; readonly path: string; readonly headers: Headers }[];
  /** The servers that are connected now. */
  readonly live: McpServer[];
  /** Says that the tools have changed, in the way of the newest generation. */
  changed(): void;
  stop(): Promise<void>;
  /** Goes away with everything that it knows, and comes back at the same place. */
  restart(): Promise<void>;
}

/** How a request is turned away before it comes to the server. */
export type Gate = (request: Request) => Response | undefined | Promise<Response | undefined>;

export type Generation = "modern" | "sessions" | "sse";

export async function startMcp(generation: Generation, build: Build, gate?: Gate): Promise<TestServer> {
  const requests: { method: string; path: string; headers: Headers }[] = [];
  const live: McpServer[] = [];
  const make = () => {
    const server = new McpServer({ name: "under-test", version: "1.0.0" }, { instructions: "Ask nicely." });
    build(server);
    live.push(server);
    return server;
  };
  const fresh = () =>
    generation === "modern" ? modern(make) : generation === "sessions" ? withSessions(make) : withSse(make);
  let answer: Answer = fresh();
  const handle = async (request: Request) => {
    const url = new URL(request.url);
    requests.push({ method: request.method, path: url.pathname, headers: request.headers });
    return (await gate?.(request)) ?? answer(request);
  };
  let web: WebServer = await listen(handle);
  onTestFinished(() => web.stop());
  const path = generation === "sse" ? "/sse" : "/mcp";
  return {
    url: `${web.origin}${path}`,
    origin: web.origin,
    requests,
    live,
    changed: () => answer.changed?.(),
    stop: () => web.stop(),
    restart: async () => {
      const { port } = web;
      await web.stop();
      live.length = 0;
      answer = fresh();
      web = await listen(handle, port);
    },
  };
}

type Answer = ((request: Request) => Promise<Response>) & { changed?: () => void };

function modern(make: () => McpServer): Answer {
  const handler = createMcpHandler(make);
  return Object.assign((request: Request) => handler.fetch(request), { changed: () => handler.notify.toolsChanged() });
}

/** Each session has a server and a transport of its own, as the 2025 revisions have it. */
function withSessions(make: () => McpServer): Answer {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return async (request) => {
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return new Response("Session not found", { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (made) => void sessions.set(made, transport),
    });
    await make().connect(transport);
    return transport.handleRequest(request);
  };
}

/** The transport of 2024: a stream at one place, messages to another. */
function withSse(make: () => McpServer): Answer {
  const open = new Map<string, Transport>();
  return async (request) => {
    const url = new URL(request.url);
    if (request.method === "POST" && url.pathname === "/messages") {
      const message = (await request.json()) as JSONRPCMessage;
      open.get(url.searchParams.get("id") ?? "")?.onmessage?.(message);
      return new Response("Accepted", { status: 202 });
    }
    if (request.method !== "GET") return new Response("No", { status: 405 });
    const id = crypto.randomUUID();
    const encoder = new TextEncoder();
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        const send = (event: string, data: string) =>
          controller.enqueue(encoder.encode(`event: ${event}\ndata: ${data}\n\n`));
        const transport: Transport = {
          start: async () => {},
          send: async (message) => send("message", JSON.stringify(message)),
          close: async () => {},
        };
        open.set(id, transport);
        void make()
          .connect(transport)
          .then(() => send("endpoint", `/messages?id=${id}`));
      },
      cancel: () => void open.delete(id),
    });
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  };
}
