import type * as client from "@modelcontextprotocol/client";
import type * as server from "@modelcontextprotocol/server";
import type * as stdio from "./node/stdio.ts";
import { PerdureError } from "../../base/error.ts";

/** What the official client package exports. */
export type ClientSdk = typeof client;
/** What the official server package exports. */
export type ServerSdk = typeof server;
/** The part of the client package that starts processes. */
type StdioSdk = typeof stdio;

/** Loads the client package. @throws PerdureError `bad_config` when it is not installed */
export function loadClientSdk(): Promise<ClientSdk> {
  return load(() => import("@modelcontextprotocol/client"), "client", "MCP servers can be used");
}

/** Loads what talks to a process. @throws PerdureError `bad_config` when it is not installed */
export function loadStdioSdk(): Promise<StdioSdk> {
  return load(() => import("./node/stdio.ts"), "client", "MCP servers can be used");
}

/** Loads the server package. @throws PerdureError `bad_config` when it is not installed */
export function loadServerSdk(): Promise<ServerSdk> {
  return load(() => import("@modelcontextprotocol/server"), "server", "an agent can be an MCP server");
}

async function load<T>(work: () => Promise<T>, name: string, what: string): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new PerdureError(
      "bad_config",
      `The package @modelcontextprotocol/${name} could not be loaded. Install it (npm install @modelcontextprotocol/${name}) before ${what}.`,
      { cause },
    );
  }
}
