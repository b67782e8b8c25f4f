// A real HTTP server on loopback for anything that answers web requests.
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";

export interface WebServer {
  readonly origin: string;
  readonly port: number;
  /** Cuts every connection and stops. */
  stop(): Promise<void>;
}

/** @param port the one of a server that was stopped before, to come back where it was. */
export async function listen(answer: (request: Request) => Response | Promise<Response>, port = 0): Promise<WebServer> {
  const server: Server = createServer(getRequestListener(answer, { overrideGlobalObjects: false }));
  // Node would close idle connections after 5 s, and a request that is sent at that moment is lost.
  server.keepAliveTimeout = 75_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return {
    port: address.port,
    origin: `http://127.0.0.1:${address.port}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
