import type { Client, ClientOptions, Transport } from "@modelcontextprotocol/client";
import { type ClientSdk, loadStdioSdk } from "../load-sdk.ts";
import type { CellOAuthProvider } from "../oauth/provider.ts";
import { checkSchema } from "../check-schema.ts";
import { maySpeakSse, WROTE } from "./failure.ts";
import type { McpFetch } from "./http-fetch.ts";
import { MAX_LIST_PAGES } from "./list-tools.ts";
import { failLostStreams } from "./lost-streams.ts";
import type { McpServerRecord } from "./server-record.ts";

const DEFAULT_CONNECT_TIMEOUT_MS = 30_000;
/** A message of a program. */
const MAX_STDIO_BYTES = 8 * 1024 * 1024;
/** What is kept of the last words of a program that died. */
const STDERR_TAIL = 1_000;

/** A connection that was made, and the way to end it. */
export interface Link {
  readonly client: Client;
  readonly transport: Transport;
  /** What the program wrote last, for a server that is one. */
  lastWords(): string;
}

/** What a link is made from. */
export interface LinkOptions {
  readonly sdk: ClientSdk;
  readonly record: McpServerRecord;
  readonly info: { readonly name: string; readonly version: string };
  readonly fetch: McpFetch | undefined;
  readonly auth: CellOAuthProvider | undefined;
  readonly client: Pick<ClientOptions, "capabilities" | "listChanged">;
  /** Sets the handlers of requests from the server, before anything is sent. */
  readonly prepare: (client: Client) => void;
  readonly signal: AbortSignal;
}

/** Connects once. @throws what the client package throws; nothing is left open then */
export async function makeLink(options: LinkOptions): Promise<Link> {
  const { record } = options;
  if (record.target.kind === "stdio") return connect(options, await stdioTransport(record));
  const type = record.options.transport?.type ?? "auto";
  if (type !== "sse") {
    try {
      return await connect(options, streamableTransport(options));
    } catch (thrown) {
      if (type !== "auto" || !maySpeakSse(options.sdk, thrown)) throw thrown;
      try {
        return await connect(options, sseTransport(options));
      } catch (again) {
        // A server that is neither is described by what it said to the newer way.
        throw options.sdk.UnauthorizedError.isInstance(again) ? again : thrown;
      }
    }
  }
  return connect(options, sseTransport(options));
}

interface OpenTransport {
  readonly transport: Transport;
  readonly lastWords: () => string;
}

async function connect(options: LinkOptions, { transport, lastWords }: OpenTransport): Promise<Link> {
  const { sdk, info, record, signal } = options;
  const client = new sdk.Client(info, {
    ...options.client,
    listMaxPages: MAX_LIST_PAGES,
    // Schemas are those of a stranger: no code is made from them.
    jsonSchemaValidator: {
      getValidator:
        <T>(schema: unknown) =>
        (input: unknown) => {
          const fault = checkSchema(schema, input, "the output");
          return fault === undefined
            ? { valid: true, data: input as T, errorMessage: undefined }
            : { valid: false, data: undefined, errorMessage: fault };
        },
    },
    versionNegotiation: { mode: record.options.protocol ?? "auto" },
  });
  // Out of band, and of no use to anybody: what matters fails a request.
  client.onerror = () => {};
  options.prepare(client);
  // The package does not hear the signal at every moment.
  const stop = () => void transport.close().catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  try {
    await client.connect(transport, { timeout: record.options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS, signal });
    return { client, transport, lastWords };
  } catch (thrown) {
    await client.close().catch(() => {});
    await transport.close().catch(() => {});
    const words = lastWords();
    if (words !== "" && thrown instanceof Error) thrown.message += `${WROTE}${words}`;
    throw thrown;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function streamableTransport({ sdk, record, fetch, auth }: LinkOptions): OpenTransport {
  const transport = new sdk.StreamableHTTPClientTransport(urlOf(record), httpOptions(record, fetch, auth));
  failLostStreams(transport);
  return { transport, lastWords: () => "" };
}

function sseTransport({ sdk, record, fetch, auth }: LinkOptions): OpenTransport {
  return {
    transport: new sdk.SSEClientTransport(urlOf(record), httpOptions(record, fetch, auth)),
    lastWords: () => "",
  };
}

/** What both HTTP transports are made with. */
export function httpOptions(record: McpServerRecord, fetch: McpFetch | undefined, auth: CellOAuthProvider | undefined) {
  const skip = record.options.transport?.skipIssuerMetadataValidation ?? false;
  return {
    ...(fetch !== undefined && { fetch }),
    ...(auth !== undefined && { authProvider: auth }),
    ...(skip && { skipIssuerMetadataValidation: true }),
  };
}

async function stdioTransport({ target }: McpServerRecord): Promise<OpenTransport> {
  if (target.kind !== "stdio") throw new TypeError("The server is no program.");
  const { StdioClientTransport, getDefaultEnvironment } = await loadStdioSdk();
  const transport = new StdioClientTransport({
    command: target.command,
    args: [...(target.args ?? [])],
    env: { ...getDefaultEnvironment(), ...target.env },
    ...(target.cwd !== undefined && { cwd: target.cwd }),
    stderr: "pipe",
    maxBufferSize: MAX_STDIO_BYTES,
  });
  let tail = "";
  transport.stderr?.on("data", (chunk: unknown) => {
    tail = `${tail}${String(chunk)}`.slice(-STDERR_TAIL);
  });
  return { transport, lastWords: () => tail.trim() };
}

function urlOf({ target }: McpServerRecord): URL {
  if (target.kind !== "http") throw new TypeError("The server has no URL.");
  return new URL(target.url);
}
