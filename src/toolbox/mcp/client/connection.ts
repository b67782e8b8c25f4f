import type { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { aborted } from "../../../base/abort.ts";
import { PerdureError } from "../../../base/error.ts";
import { retry } from "../../../work/retry.ts";
import { type Clock, within } from "../../../base/time.ts";
import type { ClientSdk } from "../load-sdk.ts";
import { listTools } from "./list-tools.ts";
import {
  boundCapabilities,
  boundInstructions,
  boundOthers,
  boundTools,
  type Catalogue,
  type CatalogueTool,
  EMPTY_CATALOGUE,
  MAX_TOOLS,
} from "./catalogue.ts";
import { failureOf, mayPass, reasonOf, WROTE } from "./failure.ts";
import { type Link, type LinkOptions, makeLink } from "./link.ts";
import { type McpServerRecord, retryOf, shownUrl } from "./server-record.ts";
import type { McpConnectionState, McpServerInfo } from "./types.ts";

/** A connection that breaks sooner than this after it was made is not made again by itself: it would go on for ever. */
const STEADY_MS = 10_000;
/** How long a server may take to hear that it is not needed any more. */
const GOOD_BYE_MS = 1_000;

/** What a connection asks of its manager. */
interface ConnectionOptions {
  readonly clock: Clock;
  readonly load: () => Promise<ClientSdk>;
  /** What the connection is made from; asked each time, since handlers may have been added. */
  readonly parts: (record: McpServerRecord) => Pick<LinkOptions, "auth" | "client" | "fetch" | "info" | "prepare">;
  /** Something that others can see has changed. Must not throw. */
  readonly changed: () => void;
  /** Tools of these names say something else of themselves than they did. */
  readonly redescribed: (connection: McpConnection, tools: readonly string[]) => void;
  /** A try came to an end. */
  readonly settled: (connection: McpConnection) => void;
  /** Keeps the agent awake. */
  readonly hold: <T>(work: Promise<T>) => Promise<T>;
}

/** A link and the requests on it. One that has been replaced is closed when the last of them has ended. */
interface UsedLink extends Link {
  users: number;
  retired: boolean;
}

/** One server: its state, its catalogue, and the link to it while there is one. */
export class McpConnection {
  record: McpServerRecord;
  state: McpConnectionState = "not-connected";
  error: string | null = null;
  authUrl: string | null = null;
  catalogue: Catalogue = EMPTY_CATALOGUE;
  instructions: string | null = null;
  capabilities: Readonly<Record<string, unknown>> | null = null;
  protocolVersion: string | null = null;
  /** What failed last, as it was thrown. */
  failure: unknown;
  /** Until the try under way has ended; never rejects. */
  pending: Promise<void> | undefined;
  readonly #options: ConnectionOptions;
  #link: UsedLink | undefined;
  #stop = new AbortController();
  #readyAt = 0;
  /** What each tool said of itself, last. */
  readonly #said = new Map<string, string>();

  constructor(record: McpServerRecord, options: ConnectionOptions) {
    this.record = record;
    this.#options = options;
  }

  get info(): McpServerInfo {
    const { record, state, error, authUrl, instructions, capabilities, protocolVersion, catalogue } = this;
    const { id, name, target } = record;
    const shown = { state, error, authUrl, instructions, capabilities, protocolVersion };
    return { id, name, url: shownUrl(target), ...shown, warnings: catalogue.warnings };
  }

  /** Connects, if that is not under way, and reads the catalogue. Never rejects: {@link state} says how it ended. */
  connect(): Promise<void> {
    const { pending } = this;
    if (pending !== undefined) return pending;
    const { signal } = this.#stop;
    const work = this.#options.hold(Promise.race([this.#connect(signal), aborted(signal)]));
    const settled = work
      .catch((thrown: unknown) => this.fail(thrown))
      .finally(() => {
        if (this.pending === settled) this.pending = undefined;
        this.#options.settled(this);
      });
    this.pending = settled;
    return settled;
  }

  /** Ends the link, and whatever is under way on it. What is known of the server stays. */
  async close(state: McpConnectionState = "not-connected"): Promise<void> {
    this.#stop.abort(new PerdureError("disconnected", "The connection to the MCP server was closed."));
    this.#stop = new AbortController();
    this.pending = undefined;
    this.#set(state);
    const link = this.#link;
    this.#link = undefined;
    if (link !== undefined) await closeLink(link);
  }

  /** Ends the server's session as well, if it is there to hear it; and then {@link close}. */
  async leave(): Promise<void> {
    const transport = this.#link?.transport;
    if (transport !== undefined && "terminateSession" in transport) {
      const said = (transport as StreamableHTTPClientTransport).terminateSession().catch(() => {});
      await within(this.#options.clock, GOOD_BYE_MS, said);
    }
    await this.close();
  }

  /** Runs one request on the link, which is made first if there is none. @throws PerdureError `not_allowed`, `disconnected` */
  async use<T>(work: (client: Client, sdk: ClientSdk) => Promise<T>, options: { safe: boolean }): Promise<T> {
    const sdk = await this.#options.load();
    const link = await this.#ready();
    const { signal } = this.#stop;
    try {
      return await this.#run(link, work, sdk);
    } catch (thrown) {
      const failure = failureOf(sdk, thrown);
      if (failure === "answered" || failure === "refused" || signal.aborted) throw thrown;
      if (failure === "unauthorized") throw this.#unauthorized();
      // Several calls may find out at the same time: one of them is enough.
      if (this.#link === link) void this.connect();
      if (failure === "lost" && !options.safe) {
        throw new PerdureError(
          "disconnected",
          `The connection to the MCP server "${this.record.name}" was lost during the call. The call may have taken effect: check before you repeat it.`,
          { cause: thrown },
        );
      }
      return this.#run(await this.#ready(), work, sdk);
    }
  }

  /** Marks the server as failed. */
  fail(thrown: unknown): void {
    this.failure = thrown;
    this.error = reasonOf(thrown);
    this.#set("failed");
  }

  /** A person has to sign in. */
  needsAuth(authUrl: string): void {
    this.authUrl = authUrl;
    this.error = null;
    this.#set("authenticating");
  }

  async #run<T>(link: UsedLink, work: (client: Client, sdk: ClientSdk) => Promise<T>, sdk: ClientSdk): Promise<T> {
    link.users++;
    try {
      return await this.#options.hold(work(link.client, sdk));
    } finally {
      link.users--;
      if (link.retired && link.users === 0) void closeLink(link);
    }
  }

  async #ready(): Promise<UsedLink> {
    if (this.pending !== undefined) await this.pending;
    if (this.#link === undefined && this.state !== "authenticating") await this.connect();
    if (this.state === "authenticating") throw this.#unauthorized();
    if (this.#link === undefined) throw this.#unusable();
    return this.#link;
  }

  async #connect(signal: AbortSignal): Promise<void> {
    this.#retire();
    this.error = null;
    this.authUrl = null;
    this.failure = undefined;
    this.#set("connecting");
    const sdk = await this.#options.load();
    const { record } = this;
    const parts = this.#options.parts(record);
    const prepare = (client: Client) => {
      parts.prepare(client);
      client.onclose = () => this.#lost(client);
    };
    const linkOptions = { ...parts, client: { ...parts.client, ...this.#listChanged() }, prepare, sdk, record, signal };
    try {
      const link = await retry(this.#options.clock, () => makeLink(linkOptions), {
        ...retryOf(record.options),
        signal,
        shouldRetry: (thrown) => !signal.aborted && mayPass(sdk, thrown),
      });
      if (signal.aborted) return await closeLink(link);
      this.#link = { ...link, users: 0, retired: false };
      this.#set("connected");
      await this.#discover(sdk, link.client, signal);
      this.#readyAt = this.#options.clock.now();
      this.#watch(link.client);
    } catch (thrown) {
      if (signal.aborted) return;
      this.#retire();
      if (failureOf(sdk, thrown) !== "unauthorized") throw thrown;
      // The provider has said where to; without one there is nowhere.
      if (this.authUrl === null) throw this.#unauthorized();
      this.#set("authenticating");
    }
  }

  async #discover(sdk: ClientSdk, client: Client, signal: AbortSignal): Promise<void> {
    this.#set("discovering");
    const capabilities = client.getServerCapabilities() ?? {};
    const warnings: string[] = [];
    const list = async <T>(what: string, has: unknown, read: () => Promise<readonly T[]>): Promise<readonly T[]> => {
      if (has === undefined) return [];
      try {
        return await read();
      } catch (thrown) {
        if (what === "tools") throw thrown;
        warnings.push(`The ${what} could not be listed: ${reasonOf(thrown)}`);
        return [];
      }
    };
    const { tools, prompts, resources } = capabilities;
    const [toolList, promptList, resourceList, templateList] = await Promise.all([
      list("tools", tools, () => listTools(sdk, client, signal)),
      list("prompts", prompts, async () => (await client.listPrompts(undefined, { signal })).prompts),
      list("resources", resources, async () => (await client.listResources(undefined, { signal })).resources),
      list(
        "resource templates",
        resources,
        async () => (await client.listResourceTemplates(undefined, { signal })).resourceTemplates,
      ),
    ]);
    if (signal.aborted) return;
    const bounded = boundTools(toolList);
    this.#compare(bounded.items);
    const others = [
      boundOthers(promptList, "name"),
      boundOthers(resourceList, "uri"),
      boundOthers(templateList, "uriTemplate"),
    ] as const;
    this.catalogue = {
      tools: bounded.items,
      prompts: others[0].items,
      resources: others[1].items,
      resourceTemplates: others[2].items,
      warnings: [...warnings, ...bounded.warnings, ...others.flatMap((one) => one.warnings)],
    };
    this.instructions = boundInstructions(client.getInstructions());
    this.capabilities = boundCapabilities(capabilities);
    this.protocolVersion = client.getNegotiatedProtocolVersion() ?? null;
    this.#set("ready");
  }

  /** A tool that was harmless when somebody looked at it need not stay so: what has changed is told. */
  #compare(tools: readonly CatalogueTool[]): void {
    const changed: string[] = [];
    for (const { name, title, description, inputSchema } of tools) {
      const says = JSON.stringify([title, description, inputSchema]);
      const before = this.#said.get(name);
      if (before !== undefined && before !== says) changed.push(name);
      this.#said.set(name, says);
    }
    // One that is offered under ever new names must not fill the memory.
    if (this.#said.size > 2 * MAX_TOOLS) this.#said.clear();
    if (changed.length > 0) this.#options.redescribed(this, changed);
  }

  /** The package reads a list again when the server says that it has changed. */
  #listChanged(): Pick<LinkOptions["client"], "listChanged"> {
    const update = (change: Partial<Catalogue>) => {
      this.catalogue = { ...this.catalogue, ...change };
      this.#options.changed();
    };
    return {
      listChanged: {
        tools: {
          onChanged: (_error, items) => {
            const take = (list: readonly unknown[]) => {
              const { items: tools, warnings } = boundTools(list);
              this.#compare(tools);
              update({ tools, warnings });
            };
            if (items !== null) take(items);
            else
              void this.#toolsAsTheyAre()
                .then(take)
                .catch(() => undefined);
          },
        },
        prompts: {
          onChanged: (_error, items) => items !== null && update({ prompts: boundOthers(items, "name").items }),
        },
        resources: {
          onChanged: (_error, items) => items !== null && update({ resources: boundOthers(items, "uri").items }),
        },
      },
    };
  }

  /** After the package could not read a list that has changed. */
  async #toolsAsTheyAre(): Promise<readonly unknown[]> {
    const { client } = await this.#ready();
    return listTools(await this.#options.load(), client, this.#stop.signal);
  }

  /** Newer servers tell their news on a stream of its own; when that breaks, everything is read again. */
  #watch(client: Client): void {
    const ended = (why: string) => {
      if (why !== "remote" || this.#link?.client !== client || this.#stop.signal.aborted) return;
      if (this.#isSteady()) void this.connect();
    };
    void client.autoOpenedSubscription?.closed.then(ended, () => ended("remote"));
  }

  #isSteady(): boolean {
    return this.#options.clock.now() - this.#readyAt >= STEADY_MS;
  }

  /** The other side went away. */
  #lost(client: Client): void {
    const link = this.#link;
    if (link?.client !== client || this.#stop.signal.aborted) return;
    this.#link = undefined;
    const words = link.lastWords();
    this.fail(
      new PerdureError("disconnected", `The server closed the connection.${words === "" ? "" : `${WROTE}${words}`}`),
    );
    if (this.#isSteady()) void this.connect();
  }

  /** Closes the link, but not before what runs on it has ended: another call's trouble is not its own. */
  #retire(): void {
    const link = this.#link;
    this.#link = undefined;
    if (link === undefined) return;
    link.retired = true;
    if (link.users === 0) void closeLink(link);
  }

  #unauthorized(): PerdureError {
    const { name } = this.record;
    if (this.authUrl !== null) {
      if (this.state !== "authenticating") this.#set("authenticating");
      return new PerdureError("not_allowed", `The MCP server "${name}" wants a person to sign in first.`);
    }
    const why =
      this.record.callbackUrl === undefined
        ? "wants a sign-in, but it is not known where people come back to. Give callbackHost (such as https://app.example.com), or a token in transport.headers."
        : "does not take the token that it was given.";
    return new PerdureError("not_allowed", `The MCP server "${name}" ${why}`);
  }

  #unusable(): PerdureError {
    const { error, record } = this;
    return new PerdureError(
      "disconnected",
      `The MCP server "${record.name}" cannot be reached: ${error ?? "it is not connected"}`,
    );
  }

  #set(state: McpConnectionState): void {
    this.state = state;
    this.#options.changed();
  }
}

async function closeLink({ client, transport }: Link): Promise<void> {
  client.onclose = () => {};
  await client.close().catch(() => {});
  await transport.close().catch(() => {});
}
