// The agents that are fuzzed: one of each class, a child, an MCP server and a webhook, all with something to lose.
import { generateKeyPairSync, sign } from "node:crypto";
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { Agent, type AgentEnv, type AgentHost, AIChatAgent, callable, type ChatTurnOptions, Think } from "perdure";
import type { ConnectionContext, StreamingResponse } from "perdure";
import type { SessionOp } from "perdure/chat";
import { durableStreamsWebhookAdapter, handleDurableStreamsWake } from "perdure/collections";
import { agentMcpServer, createMcpHandler } from "perdure/mcp";
import { type Channel, defineMessengers, messenger } from "perdure/messengers";
import type { Act } from "../../src/door/authorize.ts";
import { MemoryNetwork, scriptedModel, type ScriptedCall, type ScriptedReply } from "perdure/testing";

/** What a method throws that is meant to fail. */
export const ON_PURPOSE = "on purpose";

/** The answer to an ordinary question. */
export const ANSWER = "That is all.";

function reply({ userText, step }: ScriptedCall): string | ScriptedReply {
  if (step > 0) return ANSWER;
  const call = (toolName: string) => ({ toolName, input: {} });
  if (userText.includes("both")) return { toolCalls: [call("pay"), call("place"), call("look")] };
  if (userText.includes("pay")) return { toolCalls: [call("pay")] };
  if (userText.includes("where")) return { toolCalls: [call("place")] };
  if (userText.includes("look")) return { text: "I look.", toolCalls: [call("look")] };
  if (userText.includes("slow")) return { text: ["One ", "two ", "three."], delayMs: 3 };
  if (userText.includes("fail")) throw new Error(ON_PURPOSE);
  return ANSWER;
}

const model = scriptedModel(reply);
const nothing = jsonSchema<object>({ type: "object" });
const tools = () => ({
  pay: tool({ inputSchema: nothing, needsApproval: true, execute: () => "paid" }),
  place: tool({ inputSchema: nothing, outputSchema: jsonSchema<unknown>({}) }),
  look: tool({ inputSchema: nothing, execute: () => "seen" }),
});

/** What the agents were asked for, in all. */
export const reached = new Set<Act>();

function noteAct(act: Act): boolean {
  reached.add(act);
  return true;
}

/** Whoever says so in the address may only look. */
function isViewer({ request }: ConnectionContext): boolean {
  return new URL(request.url).searchParams.has("view");
}

/** Every row of every table. */
function rowsOf(port: AgentHost): string {
  const tables = port.sql<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
  return JSON.stringify(tables.map(({ name }) => [name, port.sql(`SELECT * FROM "${name}"`)]));
}

export class Plain extends Agent<AgentEnv, { count: number }> {
  static override readonly subAgents = ["Leaf"];
  static override options = { allowClientState: true };
  static {
    callable(this, "add");
    callable(this, "echo");
    callable(this, "fail");
    callable(this, "count", { streaming: true });
  }
  override initialState = { count: 0 };
  readonly port: AgentHost;
  #added = 0;

  constructor(host: AgentHost) {
    super(host);
    this.port = host;
  }
  override authorize(_identity: unknown, act: Act): boolean {
    return noteAct(act);
  }
  override shouldConnectionBeReadonly(_connection: unknown, context: ConnectionContext): boolean {
    return isViewer(context);
  }
  override getCollections() {
    return { "*": {} };
  }
  add(): number {
    return ++this.#added;
  }
  echo(...args: unknown[]): unknown {
    return args;
  }
  fail(): void {
    throw new Error(ON_PURPOSE);
  }
  count(stream: StreamingResponse): void {
    stream.send(1);
    stream.end(2);
  }
  dump(): string {
    return rowsOf(this.port);
  }
}

/** A child of {@link Plain}. */
export class Leaf extends Plain {
  static {
    callable(this, "add");
  }
}

/**
 * Nobody deletes the conversation of all who name none: the next one would take its place, and whoever is there would
 * rightly hear what is said to it.
 */
function maySession(ask: SessionOp): boolean {
  return ask.op !== "delete" || (ask.session !== undefined && ask.session !== "main");
}

/** What the network puts into a header of all that it delivers. */
export const NETWORK_SECRET = "fuzz";

/** A network that delivers to a webhook. What its body cannot mean is nothing that anybody said. */
function hooked(network: MemoryNetwork): Channel {
  const { listen: _, ...channel } = network.channel();
  return {
    ...channel,
    verify: ({ headers }) =>
      Promise.resolve(headers.get("x-secret") === NETWORK_SECRET ? undefined : new Response("no", { status: 401 })),
    read: (_request, body) => Promise.resolve({ input: JSON.parse(new TextDecoder().decode(body)) as unknown }),
    parse: (input) => {
      const { id, from, text } = (input ?? {}) as Readonly<Record<string, unknown>>;
      if (typeof id !== "string" || typeof from !== "string" || typeof text !== "string") return [];
      const author = { id: from, name: from, isBot: false };
      const said = { kind: "message" as const, keys: [id], thread: `memory:${from}`, dm: true, author };
      return [{ ...said, messageId: id, text, mentioned: false, files: [] }];
    },
  };
}

export class Talk extends AIChatAgent {
  static {
    callable(this, "add");
  }
  readonly port: AgentHost;
  constructor(host: AgentHost) {
    super(host);
    this.port = host;
  }
  override getMessengers() {
    return defineMessengers({
      memory: messenger(hooked(new MemoryNetwork()), { conversation: "session", coalesceMs: 0, allow: () => true }),
    });
  }
  override authorize(_identity: unknown, act: Act): boolean {
    return noteAct(act);
  }
  override shouldConnectionBeReadonly(_connection: unknown, context: ConnectionContext): boolean {
    return isViewer(context);
  }
  override allowSessionOp(_connection: unknown, ask: SessionOp): boolean {
    return maySession(ask);
  }
  override async onChatMessage(_onFinish: unknown, { abortSignal }: ChatTurnOptions) {
    const result = streamText({
      model,
      messages: await convertToModelMessages(this.messages),
      tools: tools(),
      stopWhen: isStepCount(3),
      abortSignal,
      maxRetries: 0,
      onError: () => undefined,
    });
    return result.toUIMessageStreamResponse();
  }
  add(): number {
    return 1;
  }
  dump(): string {
    return rowsOf(this.port);
  }
}

export class Mind extends Think {
  static {
    callable(this, "add");
  }
  override workspaceTools = false as const;
  readonly port: AgentHost;
  constructor(host: AgentHost) {
    super(host);
    this.port = host;
  }
  override authorize(_identity: unknown, act: Act): boolean {
    return noteAct(act);
  }
  override shouldConnectionBeReadonly(_connection: unknown, context: ConnectionContext): boolean {
    return isViewer(context);
  }
  override allowSessionOp(_connection: unknown, ask: SessionOp): boolean {
    return maySession(ask);
  }
  override getModel() {
    return model;
  }
  override getTools() {
    return tools();
  }
  add(): number {
    return 1;
  }
  dump(): string {
    return rowsOf(this.port);
  }
}

const keys = generateKeyPairSync("ed25519");
const jwk = keys.publicKey.export({ format: "jwk" });
const KID = "fuzz";

/** The header that a Durable Streams server would send along with this body. */
export function signatureOf(body: string): string {
  const time = Math.floor(Date.now() / 1000);
  return `t=${time},kid=${KID},ed25519=${sign(null, Buffer.from(`${time}.${body}`), keys.privateKey).toString("base64url")}`;
}

/** What else is served beside the agents: `/mcp` and `/wake`. */
export function besideAgents(failed: (error: unknown) => void) {
  const shown = { add: (by: number) => by + 1, getCallableMethods: () => new Map([["add", {}]]) };
  const factory = agentMcpServer(shown, { name: "fuzz", tools: { look: tools().look }, methods: { add: {} } });
  const mcp = createMcpHandler(factory, { sessions: true, onError: () => undefined });
  const key = { kid: KID, kty: String(jwk.kty), crv: String(jwk.crv), x: String(jwk.x) };
  const adapter = durableStreamsWebhookAdapter({ keys: [key] });
  return {
    async fetch(request: Request): Promise<Response | undefined> {
      const { pathname } = new URL(request.url);
      if (pathname === "/mcp") return mcp(request);
      if (pathname !== "/wake") return undefined;
      return handleDurableStreamsWake({ request, adapter, run: () => Promise.resolve(), onError: failed });
    },
    close: () => mcp.close(),
  };
}
