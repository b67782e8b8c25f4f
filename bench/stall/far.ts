// What a host asks, in a process of its own: pages, and an MCP server that answers whatever is the worst.
import { serve } from "perdure/node";
import { Agent } from "perdure";

class Nobody extends Agent {}

const page = (piece: string) => `<main>${piece.repeat(Math.floor(1_000_000 / piece.length))}</main>`;
const pages: Readonly<Record<string, () => string>> = {
  paragraphs: () => page("<p>x"),
  entities: () => page("&amp;"),
  cells: () => `<table>${page("<tr><td>x<td>y")}`,
};

const text = (value: string) => ({ content: [{ type: "text", text: value }] });
const answers: Readonly<Record<string, () => unknown>> = {
  long: () => text("x".repeat(3_900_000)),
  many: () => ({ content: Array.from({ length: 12_000 }, (_, n) => ({ type: "text", text: String(n) })) }),
  structured: () => ({ ...text("x"), structuredContent: { list: Array.from({ length: 24_000 }, (_, n) => [n]) } }),
  refused: () => ({ ...text("x"), structuredContent: { list: Array.from({ length: 1_000_000 }, () => []) } }),
};

interface Call {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string };
}

/** Speaks as much of the protocol as a client needs to call a tool. */
function answer({ method, params }: Call): unknown {
  if (method === "initialize")
    return {
      ...{ protocolVersion: "2025-06-18", serverInfo: { name: "far", version: "1" } },
      capabilities: { tools: {} },
    };
  if (method === "tools/list")
    return { tools: Object.keys(answers).map((name) => ({ name, inputSchema: { type: "object" } })) };
  return answers[params?.name ?? ""]?.() ?? {};
}

const host = await serve({
  ...{ agents: { Nobody }, port: 0, signals: false, log: false, dir: process.argv[2] ?? "" },
  fetch: async (request) => {
    const { pathname } = new URL(request.url);
    const found = pages[pathname.slice(1)];
    if (found !== undefined) return new Response(found(), { headers: { "content-type": "text/html" } });
    if (pathname !== "/mcp") return undefined;
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const call = (await request.json()) as Call;
    if (call.id === undefined) return new Response(null, { status: 202 });
    return Response.json({ jsonrpc: "2.0", id: call.id, result: answer(call) });
  },
});
process.send?.(host.url);
process.on("message", () => void host.stop().then(() => process.disconnect()));
