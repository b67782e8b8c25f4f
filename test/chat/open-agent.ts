// A real host with one agent that holds a conversation.
import type { UIMessage } from "ai";
import type { Agent, AgentHost } from "perdure";
import { memoryStorage, serve, subscribe } from "perdure/node";
import type { ServedHost, ServeOptions } from "perdure/node";
import { manualClock } from "perdure/testing";
import type { ManualClock } from "perdure/testing";
import { expect, onTestFinished } from "vitest";
import { type ChatClient, connectTo } from "./client.ts";

type TalkingAgent = Agent & {
  hasPendingInteraction(): boolean;
  waitUntilStable(): Promise<boolean>;
};

/** What the class under test notes about itself. */
export interface Notes<A> {
  /** Every life of the agent, oldest first. */
  readonly lives: A[];
  port: AgentHost | undefined;
  /** What `onError` was given. */
  errors: string[];
}

export function newNotes<A>(): Notes<A> {
  return { lives: [], port: undefined, errors: [] };
}

/** For `onError` of the class under test. */
export function noteError(notes: Pick<Notes<unknown>, "errors">, error: unknown): void {
  notes.errors.push(error instanceof Error ? error.message : String(error));
}

export interface AgentOptions {
  /** Time stands still unless the test moves it. */
  readonly manual?: boolean;
  readonly host?: Partial<ServeOptions>;
  /** Classes of children. */
  readonly children?: Readonly<Record<string, new (host: AgentHost) => Agent>>;
}

/** An agent under test. */
export interface TestAgent<A> {
  readonly host: ServedHost;
  /** Only with `manual`. */
  readonly clock: ManualClock;
  /** The agent itself, as server code inside of it sees it. */
  agent(): Promise<A>;
  connect(): Promise<ChatClient>;
  /** What `get-messages` answers. */
  stored(): Promise<UIMessage[]>;
  /** Rows of the framework's tables. */
  rows<T>(query: string): Promise<T[]>;
  /** What `onError` was given since the last call. A test that expects errors must take them. */
  takeErrors(): string[];
  /** Ends the process's part of everything, at once, and starts again on the same rows. */
  restart(): Promise<void>;
  /** Ends this life of the agent at once, and begins the next one. Its sockets stay. */
  nextLife(): Promise<void>;
  /** Waits until nothing runs or waits. */
  stable(): Promise<void>;
  /** The address of the agent. */
  readonly url: string;
}

const PATH = "/agents/talk/one";

/** Opens a host with `Talk` and an agent named "one". At the end of the test no error may be left that was not taken. */
export async function openAgent<A extends TalkingAgent>(
  Talk: new (host: AgentHost) => A,
  notes: Notes<A>,
  options: AgentOptions,
): Promise<TestAgent<A>> {
  const Hosted: new (host: AgentHost) => TalkingAgent = Talk;
  const clock = manualClock();
  const storage = memoryStorage();
  const open = () =>
    serve({
      agents: { Talk, ...options.children },
      storage,
      port: 0,
      signals: false,
      idleMs: 1e9,
      graceMs: 0,
      ...(options.manual === true && { clock }),
      ...options.host,
    });
  const own = new Set(["Talk", ...Object.keys(options.children ?? {})]);
  const forget = subscribe("agent:failed", ({ agent, payload }) => {
    // Files share a process: what another one left behind is not about this agent.
    if (!own.has(agent)) return;
    // Sockets are closed by the host as it stops, which is no failure of the agent.
    if (payload.stage !== "close") notes.errors.push(`${payload.stage}: ${payload.error}`);
  });
  let host = await open();
  onTestFinished(async () => {
    await host.stop();
    forget();
    expect(notes.errors, "errors of the agent that the test did not take").toEqual([]);
  });

  const kit: TestAgent<A> = {
    get host() {
      return host;
    },
    clock,
    async agent() {
      await host.getAgentByName(Hosted, "one").hasPendingInteraction();
      const agent = notes.lives.at(-1);
      if (agent === undefined) throw new Error("The agent was not made.");
      return agent;
    },
    connect: () => connectTo(host.url + PATH),
    stored: async () => (await (await fetch(`${host.url}${PATH}/get-messages`)).json()) as UIMessage[],
    async rows<T>(query: string) {
      await kit.agent();
      return notes.port?.sql<T>(query) ?? [];
    },
    takeErrors() {
      const taken = notes.errors;
      notes.errors = [];
      return taken;
    },
    async restart() {
      await host.stop();
      host = await open();
    },
    async nextLife() {
      const { port } = notes;
      port?.abort(port.path, new Error("This life is over."));
      await kit.agent();
    },
    async stable() {
      expect(await (await kit.agent()).waitUntilStable()).toBe(true);
    },
    get url() {
      return host.url + PATH;
    },
  };
  return kit;
}
