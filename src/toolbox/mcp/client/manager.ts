import type { Tool } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { within } from "../../../base/time.ts";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { isRecord } from "../../../base/json.ts";
import { buildAgentPath } from "../../../wire/agent-path.ts";
import type { McpState } from "../../../wire/frames.ts";
import { createGuardedFetch } from "../../egress/guarded-fetch.ts";
import { guardUrl } from "../../egress/url-guard.ts";
import { loadClientSdk } from "../load-sdk.ts";
import type { McpOAuthCallbackOptions } from "../oauth/callback.ts";
import type { McpOAuthProvider } from "../oauth/own-provider.ts";
import { CALLBACK, SignIns } from "../oauth/sign-ins.ts";
import { aiToolsOf, type ToolSource } from "./ai-tools.ts";
import { McpConnection } from "./connection.ts";
import { answerServer, capabilitiesOf, type ElicitationHandlers, type McpClientFeatures } from "./elicitation.ts";
import { type FetchRules, isLoopback, type McpFetch, placeOf, serverFetch } from "./http-fetch.ts";
import { McpRegistry, settle } from "./registry.ts";
import { callTool, requestOptions } from "./requests.ts";
import { checkCommand, checkName, checkUrl, type McpServerRecord, type McpTarget } from "./server-record.ts";
import { isUsable, mcpFrame, mcpState } from "./state.ts";
import type {
  AddMcpServerOptions,
  AddMcpServerResult,
  McpCallOptions,
  McpCallResult,
  McpHost,
  McpOAuthClient,
  McpPrompt,
  McpResource,
  McpResourceTemplate,
  McpServerFilter,
  McpServerInfo,
  McpServerOptions,
  McpStdioServer,
  McpTool,
  McpTransportOptions,
} from "./types.ts";

const serverNames = namesOf<McpServerOptions>()("id retry callTimeoutMs connectTimeoutMs protocol");
const addNames = namesOf<AddMcpServerOptions>()(
  "id retry callTimeoutMs connectTimeoutMs protocol transport callbackHost callbackPath oauth",
);
const transportNames = namesOf<McpTransportOptions>()("type headers skipIssuerMetadataValidation allowPrivate");
const oauthNames = namesOf<McpOAuthClient>()("clientId clientSecret issuer scope clientName clientMetadataUrl");
const programNames = namesOf<McpStdioServer>()("command args env cwd");

/** What a manager works with. */
export interface McpClientManagerOptions {
  readonly host: McpHost;
  /** What clients see of the servers has changed. Called once for changes that come together. Must not throw. */
  readonly changed: () => void;
  /** The origin that the current request or socket came to, for the way back of sign-ins. */
  readonly origin?: () => string | undefined;
  /** As given to the host. Default `agents`. */
  readonly prefix?: string;
  /** What servers, and people who sign in, are told. Default `perdure`. */
  readonly name?: string;
  readonly version?: string;
  /** Decides what it likes about signing in at a server; see {@link McpOAuthProvider}. May return nothing. */
  readonly createOAuthProvider?: (where: {
    readonly serverId: string;
    readonly callbackUrl: string | undefined;
  }) => McpOAuthProvider | undefined;
  /** Instead of the one that refuses private addresses. For tests, and for platforms that have their own. */
  readonly fetch?: McpFetch;
  /** Refuses servers on this machine too. */
  readonly refuseLoopback?: boolean;
}

/** Different sets of places that may be private, for which a `fetch` is kept. */
const MAX_KEPT = 64;
/** A tool may think for long before it says anything; the requests have timeouts of their own. */
const HEADERS_MS = 60 * 60 * 1000;

/**
 * One agent's MCP servers: stored, and reconnected in the background in each life. They never block the start, and a server that
 * is down costs only its tools.
 */
export class McpClientManager {
  readonly #options: McpClientManagerOptions;
  readonly #host: McpHost;
  readonly #servers: McpRegistry;
  readonly #signIns: SignIns;
  readonly #rules: FetchRules;
  #features: McpClientFeatures = {};
  #halted = false;
  #telling = false;

  constructor(options: McpClientManagerOptions) {
    this.#options = options;
    this.#host = options.host;
    const { fetch } = options;
    this.#rules = {
      reach: fetch === undefined ? guardedReach() : (url, init) => fetch(url, init),
      loopback: options.refuseLoopback !== true,
    };
    this.#servers = new McpRegistry(this.#host, (record) => this.#open(record));
    this.#signIns = new SignIns({
      host: this.#host,
      rules: this.#rules,
      clientName: this.#name,
      createProvider: options.createOAuthProvider,
    });
  }

  // Servers

  /**
   * Adds an MCP server over HTTP, and connects. The same name and URL again is the same server: returned as it is, reconnected if
   * it failed or its options changed. Stored, and connected in every later life until removed.
   * @throws PerdureError `bad_input`, `conflict`, `limit`; `not_allowed` for a private address (nothing is stored then);
   *   `disconnected` when it could not be reached (it is stored, and tried again)
   */
  async addServer(name: string, url: string, options: AddMcpServerOptions = {}): Promise<AddMcpServerResult> {
    refuseUnknown(options, addNames, "addMcpServer()");
    refuseUnknown(options.transport, transportNames, "addMcpServer(): transport");
    refuseUnknown(options.oauth, oauthNames, "addMcpServer(): oauth");
    const target: McpTarget = { kind: "http", url: checkUrl(url) };
    const { id, ...rest } = options;
    this.#guard(target.url, rest);
    const callbackUrl = this.#callbackUrl(rest);
    const moved = rest.callbackHost !== undefined || rest.callbackPath !== undefined;
    const known = callbackUrl === undefined ? {} : { callbackUrl };
    return this.#servers.add({ name: checkName(name), target, options: rest, ...known, moved }, id);
  }

  /**
   * Adds an MCP server that is a local program, and starts it. For your own code only: whoever says what to run can run anything.
   * Otherwise like {@link McpClientManager.addServer}.
   * @throws PerdureError `bad_input`, `conflict`, `limit`, `disconnected`
   */
  async addStdioServer(
    name: string,
    server: McpStdioServer,
    options: McpServerOptions = {},
  ): Promise<AddMcpServerResult> {
    refuseUnknown(options, serverNames, "addStdioServer()");
    refuseUnknown(server, programNames, "The program of addStdioServer()");
    const { id, ...rest } = options;
    const target: McpTarget = { kind: "stdio", ...checkCommand(server) };
    return this.#servers.add({ name: checkName(name), target, options: rest }, id);
  }

  /** Ends the connection and forgets the server with its tokens. One that is not there is no error. */
  async removeServer(id: string): Promise<void> {
    await this.#servers.remove(id);
    this.#changed();
  }

  /** Connects anew, also if the server is connected. @throws as {@link McpClientManager.addServer} */
  async reconnect(id: string): Promise<AddMcpServerResult> {
    const connection = this.#servers.find(id);
    await connection.close();
    return settle(connection, connection.connect());
  }

  listServers(filter?: McpServerFilter): McpServerInfo[] {
    return this.#servers.chosen(filter).map(({ info }) => info);
  }

  /** Resolves when no connection is being made, whatever came of it, or after `timeout` ms (0: at once). Never rejects. */
  async waitForConnections({ timeout }: { readonly timeout?: number } = {}): Promise<void> {
    const pending = this.#servers.all.flatMap((one) => one.pending ?? []);
    if (pending.length === 0 || timeout === 0) return;
    const all = Promise.all(pending).then(() => {});
    if (timeout === undefined) return all;
    await within(this.#host.clock, timeout, all);
  }

  // Catalogues

  /** The tools as their servers describe them, within limits. */
  listTools(filter?: McpServerFilter): McpTool[] {
    return this.#listed(filter, (one) => one.catalogue.tools) as unknown as McpTool[];
  }

  listPrompts(filter?: McpServerFilter): McpPrompt[] {
    return this.#listed(filter, (one) => one.catalogue.prompts) as unknown as McpPrompt[];
  }

  listResources(filter?: McpServerFilter): McpResource[] {
    return this.#listed(filter, (one) => one.catalogue.resources) as unknown as McpResource[];
  }

  listResourceTemplates(filter?: McpServerFilter): McpResourceTemplate[] {
    return this.#listed(filter, (one) => one.catalogue.resourceTemplates) as unknown as McpResourceTemplate[];
  }

  /**
   * The usable servers' tools for a model: `tool_<server>_<name>`. Inputs are checked; a tool's failure fails the call; a call
   * that a crash cut runs again only if the server says that is harmless.
   */
  getAITools(filter?: McpServerFilter): Record<string, Tool> {
    const sources = this.#servers.chosen(filter).flatMap((connection): ToolSource[] => {
      if (!isUsable(connection)) return [];
      const { record, catalogue } = connection;
      const run: ToolSource["run"] = (tool, input, options) =>
        callTool(connection, tool, isRecord(input) ? input : {}, options);
      return [{ serverId: record.id, serverName: record.name, tools: catalogue.tools, run }];
    });
    const ids = this.#servers.all.map(({ record }) => record.id);
    return aiToolsOf(sources, ids);
  }

  // Calls

  /**
   * Calls a tool, reconnecting first if needed. A call that was under way when the connection broke is repeated only if the
   * server says that is harmless.
   * @throws PerdureError `not_found`, `not_allowed`, `disconnected`; the server's error; the reason of the signal
   */
  async callTool(
    call: { readonly serverId: string; readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> },
    options: McpCallOptions = {},
  ): Promise<McpCallResult> {
    const connection = this.#servers.find(call.serverId);
    const known = connection.catalogue.tools.find((tool) => tool.name === call.name);
    return callTool(
      connection,
      known ?? { name: call.name, inputSchema: { type: "object" } },
      call.arguments ?? {},
      options,
    );
  }

  /** @throws as {@link McpClientManager.callTool} */
  async readResource(
    { serverId, uri }: { readonly serverId: string; readonly uri: string },
    options: McpCallOptions = {},
  ): Promise<{ readonly contents: readonly Readonly<Record<string, unknown>>[] }> {
    const connection = this.#servers.find(serverId);
    return connection.use((client) => client.readResource({ uri }, requestOptions(connection, options)), {
      safe: true,
    });
  }

  /** @throws as {@link McpClientManager.callTool} */
  async getPrompt(
    prompt: { readonly serverId: string; readonly name: string; readonly arguments?: Readonly<Record<string, string>> },
    options: McpCallOptions = {},
  ): Promise<{
    readonly messages: readonly Readonly<Record<string, unknown>>[];
    readonly description?: string | undefined;
  }> {
    const { serverId, name, arguments: given } = prompt;
    const connection = this.#servers.find(serverId);
    const params = { name, ...(given !== undefined && { arguments: { ...given } }) };
    return connection.use((client) => client.getPrompt(params, requestOptions(connection, options)), {
      safe: true,
    });
  }

  // Settings

  /** What people see when they come back from signing in. */
  configureOAuthCallback(options: McpOAuthCallbackOptions): void {
    this.#signIns.callback = options;
  }

  /** How servers may ask people. Only what is given is offered; connections that exist offer it after they are made anew. */
  configureElicitationHandlers(handlers: ElicitationHandlers): void {
    this.#features = { ...this.#features, elicitation: handlers };
  }

  /** Lets servers ask a model through you. Off unless this is called. */
  configureSampling(handler: NonNullable<McpClientFeatures["sampling"]>): void {
    this.#features = { ...this.#features, sampling: handler };
  }

  /** Tells servers of places. Off unless this is called. */
  configureRoots(roots: NonNullable<McpClientFeatures["roots"]>): void {
    this.#features = { ...this.#features, roots };
  }

  // What the agent asks

  /** What clients are told. */
  state(): McpState {
    return mcpState(this.#servers.all);
  }

  /** The same as a frame. */
  frame(): string {
    return mcpFrame(this.state());
  }

  /** Connects what was stored, in the background. */
  started(): void {
    for (const connection of this.#servers.all) {
      if (connection.state === "not-connected") void connection.connect();
    }
  }

  /** Whether a request is somebody who comes back from signing in. */
  isReturn(request: Request, rest: string): boolean {
    return this.#signIns.isReturn(request, rest, this.#servers.all);
  }

  /** Answers people who come back from signing in. */
  comeBack(request: Request): Promise<Response> {
    const signedIn = (connection: McpConnection) => {
      if (this.#halted) return;
      void connection.close();
      void connection.connect();
    };
    const back = this.#signIns.comeBack(new URL(request.url), (id) => this.#servers.get(id), signedIn);
    return this.#host.keepAwake(back);
  }

  /** Ends all connections. Nothing is written. */
  halt(): void {
    this.#halted = true;
    for (const connection of this.#servers.made) void connection.close();
  }

  // Inside

  get #name(): string {
    return this.#options.name ?? "perdure";
  }

  #open(record: McpServerRecord): McpConnection {
    const connection: McpConnection = new McpConnection(record, {
      clock: this.#host.clock,
      load: loadClientSdk,
      hold: (work) => this.#host.keepAwake(work),
      changed: () => this.#changed(),
      settled: ({ info }) => this.#report(info),
      redescribed: ({ info: { id, name } }, tools) =>
        this.#host.emit("mcp:tools_changed", { serverId: id, server: name, tools: [...tools] }),
      parts: (current) => ({
        info: { name: this.#name, version: this.#options.version ?? "1.0.0" },
        fetch: current.target.kind === "http" ? serverFetch(current, this.#rules) : undefined,
        auth: this.#signIns.providerOf(connection),
        client: { capabilities: capabilitiesOf(this.#features) },
        prepare: (client) => answerServer(client, current.id, () => this.#features),
      }),
    });
    this.#changed();
    return connection;
  }

  /** @throws PerdureError `not_allowed` for what the text of a URL already says */
  #guard(url: string, options: Omit<AddMcpServerOptions, "id">): void {
    if (this.#options.fetch !== undefined) return;
    const target = new URL(url);
    const allow = options.transport?.allowPrivate ?? false;
    const local = this.#rules.loopback && isLoopback(target);
    const allowPrivate = [
      ...(allow === true || local ? [placeOf(target)] : []),
      ...(Array.isArray(allow) ? allow : []),
    ];
    const verdict = guardUrl(target, { allowPrivate });
    if (verdict.ok) return;
    throw new PerdureError(
      "not_allowed",
      `The MCP server cannot be at ${target.host}: ${verdict.reason} If it is your own, set transport: { allowPrivate: true }.`,
    );
  }

  #callbackUrl(options: Omit<AddMcpServerOptions, "id">): string | undefined {
    const host = options.callbackHost ?? this.#options.origin?.();
    if (host === undefined) return undefined;
    const base = URL.parse(/^https?:\/\//.test(host) ? host : `https://${host}`);
    if (base === null)
      throw new PerdureError("bad_input", `callbackHost "${host}" is not an origin such as https://app.example.com.`);
    const { prefix } = this.#options;
    const path =
      options.callbackPath ??
      buildAgentPath(this.#host.path, { ...(prefix !== undefined && { prefix }), leafPath: CALLBACK });
    return new URL(path, base.origin).href;
  }

  #listed(filter: McpServerFilter | undefined, list: (one: McpConnection) => readonly object[]): object[] {
    return this.#servers
      .chosen(filter)
      .flatMap((one) => list(one).map((item) => ({ serverId: one.record.id, ...item })));
  }

  #report({ id, name, state, error, warnings, protocolVersion }: McpServerInfo): void {
    if (this.#halted) return;
    const about = { serverId: id, server: name };
    if (state === "ready") {
      this.#host.emit("mcp:connected", { ...about, protocolVersion: protocolVersion ?? "", warnings: [...warnings] });
    } else if (state === "authenticating") this.#host.emit("mcp:sign_in_needed", about);
    else if (state === "failed") {
      this.#host.emit("mcp:failed", { ...about, error: error ?? "" });
      this.#host.report(error ?? "", { stage: `MCP server ${name}` });
    }
  }

  #changed(): void {
    if (this.#telling || this.#halted) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      if (!this.#halted) this.#options.changed();
    });
  }
}

/** Asks public hosts, with names resolved once and held on to; and the private places that are named. */
function guardedReach(): FetchRules["reach"] {
  const kept = new Map<string, ReturnType<typeof createGuardedFetch>>();
  return (url, init, allowPrivate) => {
    const key = allowPrivate.join(" ");
    let fetch = kept.get(key);
    if (fetch === undefined) {
      if (kept.size >= MAX_KEPT) kept.clear();
      fetch = createGuardedFetch({ allowPrivate, headersMs: HEADERS_MS });
      kept.set(key, fetch);
    }
    return fetch(url, init);
  };
}
