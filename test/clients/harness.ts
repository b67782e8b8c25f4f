import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentClient, type AgentClientOptions } from "agents/client";
import { type ServedHost, type ServeOptions, serve, subscribe } from "perdure/node";
import { afterEach, expect, vi } from "vitest";
import { PATIENCE_MS } from "../support/until.ts";

/*
 * A real host on a free port, the unmodified public clients, and an end of each test that fails when a socket
 * or an agent is left over, or when an agent failed and the test did not say so.
 */

const LOOK_EVERY_MS = 5;
/** How soon clients come back in tests; their default is 3 s. */
export const QUICK = { minReconnectionDelay: 10, maxReconnectionDelay: 50 } as const;

const cleanups: (() => unknown)[] = [];
const hosts: { host: ServedHost; dir: string }[] = [];
let failures: string[] = [];
let unsubscribe: (() => void) | undefined;

/** Runs at the end of the test, last first, before the hosts stop. */
export function atEnd(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** Waits until `check` does not throw, and returns what it returns. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: PATIENCE_MS, interval: LOOK_EVERY_MS });
}

/** What agents failed with since the last call. A test that expects failures must take them. */
export function takeFailures(): string[] {
  const taken = failures;
  failures = [];
  return taken;
}

/** A folder of its own, gone after everything that `atEnd` was told later. */
export function tempDir(): string {
  const dir = makeDir();
  atEnd(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function makeDir(): string {
  return mkdtempSync(join(tmpdir(), "perdure-clients-"));
}

export type TestHostOptions = Omit<ServeOptions, "dir" | "port" | "signals"> & { readonly dir?: string };

/** Starts a host with real files on a free port. */
export async function startHost(options: TestHostOptions): Promise<ServedHost> {
  unsubscribe ??= subscribe("agent:failed", ({ id, payload }) => {
    failures.push(`${id} ${payload.stage}: ${payload.error}`);
  });
  const dir = options.dir ?? makeDir();
  const host = await serve({ port: 0, signals: false, ...options, dir });
  hosts.push({ host, dir });
  return host;
}

/** The `host` option of the public clients. */
export function addressOf(host: { readonly port: number }): string {
  return `127.0.0.1:${host.port}`;
}

export interface Frame {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** A public client and all that it saw. */
export interface TestClient<State = unknown> {
  readonly client: AgentClient<unknown, State>;
  /** Every text frame that is a JSON object, in order. */
  readonly frames: Frame[];
  /** Every message as it came. */
  readonly messages: unknown[];
  readonly states: { state: State; source: "server" | "client" }[];
  readonly stateErrors: string[];
  readonly identities: { name: string; agent: string }[];
  readonly closes: { code: number; reason: string }[];
  opens: number;
}

/** Connects an `AgentClient`; it is closed at the end of the test. */
export function connect<State = unknown>(
  host: { readonly port: number },
  options: Omit<AgentClientOptions<State>, "host">,
): TestClient<State> {
  const seen = { frames: [], messages: [], states: [], stateErrors: [], identities: [], closes: [], opens: 0 };
  const client = new AgentClient<unknown, State>({
    ...QUICK,
    ...options,
    host: addressOf(host),
    onStateUpdate(state, source) {
      test.states.push({ state, source });
      options.onStateUpdate?.(state, source);
    },
    onStateUpdateError: (error) => void test.stateErrors.push(error),
    onIdentity: (name, agent) => void test.identities.push({ name, agent }),
  });
  const test: TestClient<State> = { client, ...seen };
  client.addEventListener("open", () => void test.opens++);
  client.addEventListener("close", ({ code, reason }) => void test.closes.push({ code, reason }));
  client.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    test.messages.push(data);
    const frame = parsed(data);
    if (frame !== undefined) test.frames.push(frame);
  });
  atEnd(() => client.close());
  return test;
}

/** Connects and waits until the client knows where it is. */
export async function connected<State = unknown>(
  host: { readonly port: number },
  options: Omit<AgentClientOptions<State>, "host">,
): Promise<TestClient<State>> {
  const test = connect<State>(host, options);
  await test.client.ready;
  return test;
}

/** A bare socket, for what the public clients do not send. Closed at the end of the test. */
export async function rawSocket(url: string, protocols?: string[]): Promise<{ ws: WebSocket; frames: Frame[] }> {
  const ws = new WebSocket(url.replace(/^http/, "ws"), protocols);
  ws.binaryType = "arraybuffer";
  const frames: Frame[] = [];
  ws.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    const frame = parsed(data);
    if (frame !== undefined) frames.push(frame);
  });
  atEnd(() => ws.close());
  await new Promise((resolve, reject) => {
    ws.addEventListener("open", resolve);
    ws.addEventListener("error", () => reject(new Error(`no connection to ${url}`)));
  });
  return { ws, frames };
}

/** Waits until every agent has left memory; use a host with a small `idleMs`. */
export function asleep(host: ServedHost): Promise<void> {
  return eventually(() => expect(host.status().live, "agents in memory").toBe(0));
}

/** The frames of a type. */
export function ofType(frames: readonly Frame[], type: string): Frame[] {
  return frames.filter((frame) => frame.type === type);
}

function parsed(data: unknown): Frame | undefined {
  if (typeof data !== "string" || !data.startsWith('{"')) return undefined;
  return JSON.parse(data) as Frame;
}

/** Stops a host before the end of the test and returns its folder. */
export async function stopHost(host: ServedHost): Promise<string> {
  const index = hosts.findIndex((entry) => entry.host === host);
  const [entry] = hosts.splice(index, 1);
  if (entry === undefined) throw new Error("This host was not started here.");
  await host.stop();
  atEnd(() => rmSync(entry.dir, { recursive: true, force: true }));
  return entry.dir;
}

afterEach(leaveNothing);

async function leaveNothing(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  for (const { host, dir } of hosts.splice(0)) {
    await eventually(() => expect(host.status().connections, "sockets left on the host").toBe(0));
    await host.stop();
    expect(host.status()).toEqual({ ok: false, live: 0, kept: 0, connections: 0 });
    await eventually(async () => expect(await openSockets(host), "TCP connections left").toBe(0));
    rmSync(dir, { recursive: true, force: true });
  }
  expect(takeFailures()).toEqual([]);
}

function openSockets({ server }: ServedHost): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}
