import type { RetryOptions } from "../../../work/retry.ts";
import type { AgentHost } from "../../../port.ts";
import type { McpServerState } from "../../../wire/frames.ts";

/** What an MCP client manager asks of the agent's host. */
export type McpHost = Pick<AgentHost, "sql" | "tx" | "clock" | "emit" | "report" | "keepAwake" | "path" | "blank">;

/** How far a connection is, in the words that clients know. */
export type McpConnectionState = McpServerState["state"];

/** How an MCP server is reached over HTTP. */
export interface McpTransportOptions {
  /** `auto` (the default): streamable HTTP, and the older SSE transport if the server does not know that. */
  readonly type?: "auto" | "streamable-http" | "sse";
  /** Sent with every request to the server itself, and to nobody else. Stored with the agent's data. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes metadata of an authorization server that names another issuer. Weakens the protection of sign-ins. */
  readonly skipIssuerMetadataValidation?: boolean;
  /**
   * Private addresses are refused. `true` allows this server's own; a list of `host:port` names more, such as its authorization
   * server. Only for URLs from your own code.
   */
  readonly allowPrivate?: boolean | readonly string[];
}

/** What is known of this app at an authorization server, when it is not registered on the fly. */
export interface McpOAuthClient {
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** The authorization server that may see the secret. Default: the first one that the MCP server names. */
  readonly issuer?: string;
  readonly scope?: string;
  /** What people read when they are asked. Default: the name of the manager. */
  readonly clientName?: string;
  /** An https URL where the metadata of this client can be read; servers that know such ids need no registration. */
  readonly clientMetadataUrl?: string;
}

/** What all kinds of servers have in common. */
export interface McpServerOptions {
  /** A name of your own for the server, for the names of its tools. Default: made up. */
  readonly id?: string;
  /** How often a connection is tried. Default: 3 times, 500 ms to 5 s apart. */
  readonly retry?: RetryOptions;
  /** How long a call of a tool may take without any news of it, in milliseconds. Default 120000. */
  readonly callTimeoutMs?: number;
  /** How long one try to connect may take, in milliseconds. Default 30000. */
  readonly connectTimeoutMs?: number;
  /** `auto` (the default) asks for the newest protocol and falls back; `legacy` only does the `initialize` handshake. */
  readonly protocol?: "auto" | "legacy";
}

/** How `addMcpServer` connects. All of it is stored, and used again after a restart. */
export interface AddMcpServerOptions extends McpServerOptions {
  readonly transport?: McpTransportOptions;
  /** The origin that browsers reach this host under, such as `https://app.example.com`. Default: that of the current request. */
  readonly callbackHost?: string;
  /** The path that authorization servers send people back to. Default: the agent's own address and `/callback`. */
  readonly callbackPath?: string;
  readonly oauth?: McpOAuthClient;
}

/** A program that is an MCP server on its standard input and output. Whoever names it runs code on this machine. */
export interface McpStdioServer {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to a short list of harmless variables; the rest of this process's environment is not handed on. Stored. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** What came of adding a server: it can be used, or a person has to sign in at `authUrl` first. */
export type AddMcpServerResult =
  | { readonly id: string; readonly state: "ready" }
  | { readonly id: string; readonly state: "authenticating"; readonly authUrl: string };

/** One server, as it is now. */
export interface McpServerInfo {
  readonly id: string;
  readonly name: string;
  /** Without its query, which may hold a key; `stdio:` and the command for a program. */
  readonly url: string;
  readonly state: McpConnectionState;
  readonly error: string | null;
  readonly authUrl: string | null;
  readonly instructions: string | null;
  readonly capabilities: unknown;
  /** Which revision of the protocol is spoken. */
  readonly protocolVersion: string | null;
  /** What of the server's catalogue was left out, and why. */
  readonly warnings: readonly string[];
}

/** Something that a server describes. */
interface McpDescribed {
  readonly serverId: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
}

/** A tool as its server describes it, within limits. */
export interface McpTool extends McpDescribed {
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** A prompt as its server describes it. */
export interface McpPrompt extends McpDescribed {
  readonly arguments?: readonly unknown[];
}

/** A resource as its server describes it. */
export interface McpResource extends McpDescribed {
  readonly uri: string;
  readonly mimeType?: string;
}

/** A family of resources. */
export interface McpResourceTemplate extends McpDescribed {
  readonly uriTemplate: string;
  readonly mimeType?: string;
}

/** Which servers are meant; all that is given must fit. */
export interface McpServerFilter {
  readonly serverId?: string | readonly string[];
  readonly serverName?: string | readonly string[];
  readonly state?: McpConnectionState | readonly McpConnectionState[];
}

/** The answer of a tool. */
export interface McpCallResult {
  readonly content: readonly Readonly<Record<string, unknown>>[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

/** How long, and until when, a call may go on. */
export interface McpCallOptions {
  /** Cancels the request at the server. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}
