import { PerdureError } from "../../../base/error.ts";
import { type RetryOptions, resolveRetry } from "../../../work/retry.ts";
import { isRecord, tryParseJson } from "../../../base/json.ts";
import type { Sql } from "../../../port.ts";
import { deleteCell, deleteCells, listCells, writeCell } from "../../../store/cell.ts";
import type { AddMcpServerOptions, McpServerOptions, McpStdioServer } from "./types.ts";

/** Cells of servers. What a sign-in leaves is under other names, so that a list of servers reads no tokens. */
const PREFIX = "mcp:";
const MAX_ID = 40;
const MAX_NAME = 200;
const MAX_URL = 4_000;
/** An agent with more than this has a loop in its code. */
export const MAX_SERVERS = 64;

const DEFAULT_RETRY = { maxAttempts: 3, baseDelayMs: 500, maxDelayMs: 5_000 };

/** How a server is reached. */
export type McpTarget = { readonly kind: "http"; readonly url: string } | ({ readonly kind: "stdio" } & McpStdioServer);

/** A server as it is stored: everything that is needed to connect again. */
export interface McpServerRecord {
  readonly id: string;
  readonly name: string;
  readonly target: McpTarget;
  readonly options: Omit<AddMcpServerOptions, "id">;
  /** Where authorization servers send people back to. Unknown while nobody ever said under which origin we are. */
  readonly callbackUrl?: string;
}

/** The servers in the order of their ids. Cells that cannot be read are left out. */
export function readServers(db: Sql): McpServerRecord[] {
  return listCells(db, PREFIX).flatMap(({ value }) => {
    const record = tryParseJson(value);
    return isRecord(record) && typeof record.id === "string" && isRecord(record.target)
      ? [record as unknown as McpServerRecord]
      : [];
  });
}

/** Whether an agent has servers: cheap, and without any of the rest. */
export function hasMcpServers(host: Sql & { readonly blank: boolean }): boolean {
  return !host.blank && listCells(host, PREFIX).length > 0;
}

export function writeServer(db: Sql, record: McpServerRecord): void {
  writeCell(db, PREFIX + record.id, JSON.stringify(record));
}

/** Forgets a server and everything that it was signed in with. */
export function deleteServer(db: Sql, id: string): void {
  db.tx(() => {
    deleteCell(db, PREFIX + id);
    deleteCell(db, oauthKey(id));
    deleteCells(db, flowPrefix(id));
  });
}

/** The cell of what a sign-in at a server gave. */
export function oauthKey(id: string): string {
  return `mcp-oauth:${id}`;
}

/** The cells of sign-ins at a server that are under way. */
export function flowPrefix(id: string): string {
  return `mcp-flow:${id}:`;
}

/** The form in which two URLs are the same server. */
export function normaliseUrl(url: string): string {
  const parsed = new URL(url);
  parsed.hash = "";
  const path = parsed.pathname.replace(/\/+$/, "");
  return `${parsed.origin}${path}${parsed.search}`;
}

/** @throws PerdureError `bad_input` */
export function checkName(name: unknown): string {
  if (typeof name === "string" && name.trim() !== "" && name.length <= MAX_NAME) return name;
  throw new PerdureError("bad_input", `The name of an MCP server must be a string of 1 to ${MAX_NAME} characters.`);
}

/** @throws PerdureError `bad_input` */
export function checkUrl(url: unknown): string {
  // A program is never started because an app handed on what a user sent.
  if (typeof url !== "string") {
    throw new PerdureError(
      "bad_input",
      "The URL of an MCP server must be a string. For programs, use addStdioServer().",
    );
  }
  const parsed = URL.parse(url);
  if (parsed === null || url.length > MAX_URL || !["http:", "https:"].includes(parsed.protocol)) {
    throw new PerdureError(
      "bad_input",
      `"${url.slice(0, 200)}" cannot be an MCP server. Give a URL that begins with https:// or http://.`,
    );
  }
  if (parsed.username !== "" || parsed.password !== "") {
    throw new PerdureError(
      "bad_input",
      "The URL of an MCP server must not contain a user name and a password. Use transport.headers instead.",
    );
  }
  return parsed.href;
}

/** @throws PerdureError `bad_input` */
export function checkCommand(server: McpStdioServer): McpStdioServer {
  const { command, args = [], env = {}, cwd } = server;
  const texts = [command, ...args, ...Object.values(env), ...(cwd === undefined ? [] : [cwd])];
  if (command === "" || !texts.every((text) => typeof text === "string" && !text.includes("\0"))) {
    throw new PerdureError("bad_input", "A program needs a command; its arguments and variables must be strings.");
  }
  return { command, args, env, ...(cwd !== undefined && { cwd }) };
}

/** An id that can stand in the names of tools. @throws PerdureError `bad_input` */
export function checkId(id: string | undefined): string {
  if (id === undefined) return crypto.randomUUID().replaceAll("-", "").slice(0, 8);
  const plain = id
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]+/g, "-")
    .replaceAll(/^[-_]+|[-_]+$/g, "")
    .slice(0, MAX_ID);
  if (plain !== "") return plain;
  throw new PerdureError("bad_input", `The id "${id}" has no letters or digits.`);
}

/** How often a connection to a server is tried. */
export function retryOf(options: Pick<McpServerOptions, "retry">): Required<RetryOptions> {
  return resolveRetry(options.retry, DEFAULT_RETRY);
}

/** What stands for a server in what others see. The query of a URL often holds a key. */
export function shownUrl(target: McpTarget): string {
  if (target.kind === "stdio") return `stdio:${target.command.split(/[\\/]/).at(-1) ?? ""}`;
  const url = new URL(target.url);
  return `${url.origin}${url.pathname}${url.search === "" ? "" : "?…"}`;
}
