import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo, Server } from "node:net";

/** A server on a loopback address, and what it was asked. */
export interface TestServer {
  readonly port: number;
  readonly seen: { method: string; url: string; headers: IncomingMessage["headers"]; body: string }[];
  close(): Promise<void>;
}

/** Starts a real HTTP server. */
export async function startServer(
  answer: (...args: [...Parameters<RequestListener>, body: string]) => void,
  { host = "127.0.0.1", port = 0 }: { host?: string; port?: number } = {},
): Promise<TestServer> {
  const seen: TestServer["seen"] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body });
      answer(request, response, body);
    });
  });
  await listening(server, host, port);
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Resolves when a server of any kind accepts connections. */
export function listening(server: Server, host: string, port = 0): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
}

/** The PerdureError code that a promise rejects with, and its message. */
export async function refusal(promise: Promise<unknown>): Promise<{ code: string; message: string }> {
  const thrown: unknown = await promise.then(
    (value) => ({ code: "none", message: `it resolved: ${JSON.stringify(value)}` }),
    (error: unknown) => error,
  );
  const { code, message } = thrown as { code?: string; message?: string };
  return { code: String(code), message: String(message) };
}
