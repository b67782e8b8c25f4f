import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** What the server can do: one tool. */
const forecast = {
  name: "forecast",
  description: "Says what the weather will be like in a city.",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

interface Call {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: { readonly arguments?: { readonly city?: string }; readonly protocolVersion?: string };
}

function answer({ method, params }: Call): unknown {
  switch (method) {
    case "initialize": {
      const serverInfo = { name: "weather", version: "1.0.0" };
      return { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo };
    }
    case "tools/list":
      return { tools: [forecast] };
    case "tools/call":
      return { content: [{ type: "text", text: `Sun in ${params?.arguments?.city ?? "the city"}, 21 degrees.` }] };
    default:
      return undefined;
  }
}

let started: Promise<string> | undefined;

/** Starts an MCP server on this machine, once. @returns its address. */
export function startMcpServer(): Promise<string> {
  return (started ??= listen());
}

async function listen(): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (request.method !== "POST") return response.writeHead(405).end();
      const call = JSON.parse(Buffer.concat(chunks).toString()) as Call;
      if (call.id === undefined) return response.writeHead(202).end();
      const result = answer(call);
      const body = result === undefined ? { error: { code: -32601, message: "Unknown method" } } : { result };
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify({ jsonrpc: "2.0", id: call.id, ...body }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // The example may end although this runs.
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}
