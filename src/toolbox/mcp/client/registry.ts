import { PerdureError } from "../../../base/error.ts";
import { deleteCell, readCell } from "../../../store/cell.ts";
import { openFlow } from "../oauth/flows.ts";
import type { McpConnection } from "./connection.ts";
import {
  checkId,
  deleteServer,
  MAX_SERVERS,
  type McpServerRecord,
  normaliseUrl,
  oauthKey,
  readServers,
  retryOf,
  writeServer,
} from "./server-record.ts";
import type { AddMcpServerResult, McpHost, McpServerFilter } from "./types.ts";

/** A server that is to be added. `moved`: where people come back to was said, and not only found out. */
type NewServer = Omit<McpServerRecord, "id"> & { readonly moved?: boolean };

/** The servers of an agent: their rows, and a connection for each. */
export class McpRegistry {
  readonly #host: McpHost;
  readonly #make: (record: McpServerRecord) => McpConnection;
  readonly #connections = new Map<string, McpConnection>();
  #restored = false;

  /** @param make gives a connection that does nothing yet */
  constructor(host: McpHost, make: (record: McpServerRecord) => McpConnection) {
    this.#host = host;
    this.#make = make;
  }

  get all(): readonly McpConnection[] {
    this.#restore();
    return [...this.#connections.values()];
  }

  /** Those that this life has used: nothing is read. */
  get made(): Iterable<McpConnection> {
    return this.#connections.values();
  }

  get(id: string): McpConnection | undefined {
    this.#restore();
    return this.#connections.get(id);
  }

  /** @throws PerdureError `not_found` */
  find(id: string): McpConnection {
    const found = this.get(id);
    if (found !== undefined) return found;
    throw new PerdureError("not_found", `There is no MCP server with the id "${id}".`);
  }

  chosen(filter: McpServerFilter = {}): McpConnection[] {
    const fits = (wanted: string | readonly string[] | undefined, value: string) =>
      wanted === undefined || (typeof wanted === "string" ? wanted === value : wanted.includes(value));
    return this.all.filter(
      ({ record, state }) =>
        fits(filter.serverId, record.id) && fits(filter.serverName, record.name) && fits(filter.state, state),
    );
  }

  /** Stores a server and connects; the same one again is only connected if it has to be. */
  async add({ moved = false, ...record }: NewServer, id: string | undefined): Promise<AddMcpServerResult> {
    retryOf(record.options);
    const wanted = id === undefined ? undefined : checkId(id);
    const same = this.all.find((one) => isSame(one.record, record));
    if (same !== undefined && (wanted === undefined || wanted === same.record.id))
      return this.#again(same, record, moved);
    if (wanted !== undefined && this.#connections.has(wanted)) {
      throw new PerdureError(
        "conflict",
        `Another MCP server has the id "${wanted}". Remove it first, or choose another id.`,
      );
    }
    if (this.#connections.size >= MAX_SERVERS) {
      throw new PerdureError("limit", `An agent may have at most ${MAX_SERVERS} MCP servers. Remove some.`);
    }
    const made: McpServerRecord = { ...record, id: wanted ?? checkId(undefined) };
    writeServer(this.#host, made);
    const connection = this.#open(made);
    try {
      return await settle(connection, connection.connect());
    } catch (thrown) {
      // What may not be reached, or cannot be signed in at, is not tried again and again.
      if (PerdureError.is(thrown, "not_allowed")) await this.remove(made.id);
      throw thrown;
    }
  }

  async remove(id: string): Promise<void> {
    const connection = this.get(id);
    this.#connections.delete(id);
    deleteServer(this.#host, id);
    await connection?.leave();
  }

  async #again(
    connection: McpConnection,
    record: Omit<McpServerRecord, "id">,
    moved: boolean,
  ): Promise<AddMcpServerResult> {
    const { id, target, callbackUrl: before } = connection.record;
    const callbackUrl = moved ? record.callbackUrl : (before ?? record.callbackUrl);
    // Another spelling of the same URL is no change.
    const next: McpServerRecord = { ...record, target, id, ...(callbackUrl !== undefined && { callbackUrl }) };
    if (textOf(next) !== textOf(connection.record)) {
      writeServer(this.#host, next);
      // What was registered leads back to the old place.
      if (before !== undefined && before !== callbackUrl) deleteCell(this.#host, oauthKey(id));
      connection.record = next;
      await connection.close();
    }
    if (connection.pending !== undefined) return settle(connection, connection.pending);
    if (connection.state === "ready") return { id, state: "ready" };
    const flow = openFlow(this.#host, this.#host.clock, id);
    if (connection.state === "authenticating" && flow !== undefined) {
      return { id, state: "authenticating", authUrl: flow.authUrl };
    }
    return settle(connection, connection.connect());
  }

  #restore(): void {
    if (this.#restored) return;
    this.#restored = true;
    if (this.#host.blank) return;
    for (const record of readServers(this.#host)) {
      const connection = this.#open(record);
      // A person is on the way: what they were sent away with still counts.
      const flow = openFlow(this.#host, this.#host.clock, record.id);
      const signedIn = readCell(this.#host, oauthKey(record.id))?.includes('"tokens":') ?? false;
      if (flow !== undefined && !signedIn) connection.needsAuth(flow.authUrl);
    }
  }

  #open(record: McpServerRecord): McpConnection {
    const connection = this.#make(record);
    this.#connections.set(record.id, connection);
    return connection;
  }
}

/** What came of a try to connect. @throws PerdureError when it failed */
export async function settle(connection: McpConnection, pending: Promise<void>): Promise<AddMcpServerResult> {
  await pending;
  const { record, state, authUrl, failure, error } = connection;
  if (state === "ready") return { id: record.id, state };
  if (state === "authenticating" && authUrl !== null) return { id: record.id, state, authUrl };
  const refused = causeOf(failure);
  if (refused !== undefined) throw refused;
  const message = `The MCP server "${record.name}" could not be used: ${error ?? "it was closed"}`;
  throw new PerdureError("disconnected", message, { cause: failure });
}

/** An error that says by itself what to do. */
function causeOf(failure: unknown): PerdureError | undefined {
  for (let at = failure, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (PerdureError.is(at, "not_allowed") || PerdureError.is(at, "bad_config")) return at;
  }
  return undefined;
}

function isSame(a: Pick<McpServerRecord, "name" | "target">, b: Pick<McpServerRecord, "name" | "target">): boolean {
  if (a.name !== b.name) return false;
  if (a.target.kind === "http" && b.target.kind === "http")
    return normaliseUrl(a.target.url) === normaliseUrl(b.target.url);
  return textOf(a.target) === textOf(b.target);
}

/** The same for things that say the same, in whatever order. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "object" && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
