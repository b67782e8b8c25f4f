import type { AnyTextAdapter, AnyTool, JSONSchema } from "@tanstack/ai";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { AgentMessage, AgentToolCall } from "../contract.ts";
import { rowsOf, type Rows } from "../log/rows.ts";
import { checkValue } from "../log/schema.ts";
import type { AgentContext, AgentReference, AgentRequest } from "./config.ts";
import { byPlace, createdNow } from "./message.ts";
import { RESPONSE_TIMEOUT_MS } from "./response.ts";

const MESSAGE_INPUT: JSONSchema = {
  type: "object",
  properties: { message: { type: "string", description: "What to ask or to tell." } },
  required: ["message"],
};

/** What an agent's tool is called with besides its arguments. */
interface CallContext {
  readonly toolCallId?: string;
  readonly abortSignal?: AbortSignal;
}

/**
 * Other agents as tools of this answer. A request's id derives from the answer and the call, so a second try finds the request
 * and its reply. The first tool to run asks all agents called in the same turn (`calls`), so they work in parallel; each tool
 * then waits for its own reply.
 */
export function agentTools(
  references: readonly AgentReference[],
  context: AgentContext,
  calls: readonly AgentToolCall[],
): AnyTool[] {
  const byName = new Map(references.map((reference) => [reference.agent.name, reference]));
  const asked = new Map<string, Promise<void>>();
  const begin = (reference: AgentReference, requestId: string, args: unknown) => {
    let asking = asked.get(requestId);
    if (asking === undefined) {
      asking = askWith(reference, requestId, args, context);
      // Told by the tool itself, when it is its turn.
      asking.catch(() => {});
      asked.set(requestId, asking);
    }
    return asking;
  };
  const beginOthers = async () => {
    for (const { id, name, arguments: text } of calls) {
      const reference = byName.get(name);
      const args = reference === undefined ? undefined : await argumentsOf(reference, text);
      if (reference !== undefined && args !== undefined)
        void begin(reference, `${context.generationId}:${id}`, args.value);
    }
  };
  return references.map((reference) => {
    const { agent, description, inputSchema = MESSAGE_INPUT, outputSchema } = reference;
    return {
      name: agent.name,
      description,
      inputSchema,
      ...(outputSchema === undefined ? {} : { outputSchema }),
      execute: async (args: unknown, call?: CallContext) => {
        const requestId = `${context.generationId}:${call?.toolCallId ?? newId()}`;
        const asking = begin(reference, requestId, args);
        await beginOthers();
        await asking;
        const signals = call?.abortSignal === undefined ? [context.signal] : [context.signal, call.abortSignal];
        const content = await responseOf(reference, requestId, context.agentName, AbortSignal.any(signals));
        return outputSchema === undefined ? { response: content } : parseReply(agent.name, content);
      },
    };
  });
}

async function askWith(
  reference: AgentReference,
  requestId: string,
  args: unknown,
  context: AgentContext,
): Promise<void> {
  const callers = [...context.callers, context.agentName];
  refuseCircle(callers, reference.agent.name);
  await ask(reference, { content: contentOf(args), actorId: context.agentName, requestId, callers }, context);
}

/** What `chat()` will give to the tool; undefined: what the model has said is wrong, and the tool will not be called. */
async function argumentsOf(
  { inputSchema }: AgentReference,
  text: string,
): Promise<{ readonly value: unknown } | undefined> {
  try {
    return { value: await checkValue(inputSchema, JSON.parse(text === "" ? "{}" : text), "") };
  } catch {
    return undefined;
  }
}

async function responseOf(
  { agent, timeout = RESPONSE_TIMEOUT_MS }: AgentReference,
  requestId: string,
  callerName: string,
  signal: AbortSignal,
): Promise<string> {
  try {
    return (await agent.watchForResponse(requestId, { timeout, callerName, signal })).content;
  } catch (error) {
    // Nobody waits for it any more, so it stands in nobody's way. That cannot be told: so be it.
    const messages = agent.collections?.messages;
    if (PerdureError.is(error, "timeout") && messages !== undefined) {
      await rowsOf(messages)
        .update(requestRowId(requestId), (row) => void (row.callers = []))
        .catch(() => {});
    }
    throw error;
  }
}

/** An agent answers one thing after the other: who is waited for cannot be asked. */
function refuseCircle(callers: readonly string[], target: string): void {
  if (callers.includes(target)) throw circleError(target, [...callers.slice(callers.indexOf(target)), target]);
}

function circleError(target: string, circle: readonly string[]): PerdureError {
  return new PerdureError(
    "conflict",
    `The agent "${target}" cannot be asked now: it is waiting for this very answer (${circle.join(" -> ")}). Answer with ` +
      `what you know, or ask another agent.`,
  );
}

function requestRowId(requestId: string): string {
  return `${requestId}:ask`;
}

/** Unrelated requests may also make agents wait in a circle. The request that closed it, last in the log, is withdrawn. */
async function withdrawIfCircle(rows: Rows<AgentMessage>, id: string): Promise<void> {
  const mine = rows.get(id);
  if (mine === undefined) return;
  const waits = rows
    .all()
    .filter((row) => row.requestId !== undefined && !row.processed && (row.callers?.length ?? 0) > 0 && row.id !== id)
    .filter((row) => byPlace(row, mine) < 0);
  const path = pathBetween(waits, mine.targetAgent, mine.actorId);
  if (path === undefined) return;
  const error = circleError(mine.targetAgent, [mine.actorId, ...path]);
  await rows.update(id, (row) => void Object.assign(row, { processed: true, error: error.message }));
  throw error;
}

/** From who waits to whom it waits for, step by step; undefined when there is no way. */
function pathBetween(waits: readonly AgentMessage[], from: string, to: string): string[] | undefined {
  const paths = new Map([[from, [from]]]);
  for (const [name, path] of paths) {
    if (name === to) return path;
    for (const wait of waits) {
      if (wait.actorId === name && !paths.has(wait.targetAgent))
        paths.set(wait.targetAgent, [...path, wait.targetAgent]);
    }
  }
  return undefined;
}

async function ask(reference: AgentReference, request: AgentRequest, context: AgentContext): Promise<void> {
  const { agent, insertMessage } = reference;
  if (insertMessage !== undefined) return insertMessage(request);
  const messages = agent.collections?.messages;
  if (messages === undefined) {
    throw new PerdureError(
      "bad_config",
      `The agent "${agent.name}" has no collections: give its AgentReference an insertMessage.`,
    );
  }
  const rows = rowsOf(messages);
  const own = context.collections === undefined ? undefined : rowsOf(context.collections.messages).log;
  const id = requestRowId(request.requestId);
  const inserted = await rows.insert(
    {
      id,
      role: "user",
      targetAgent: agent.name,
      createdAt: createdNow(),
      processed: false,
      ...request,
    },
    own !== undefined && own === rows.log ? context.fence : {},
  );
  // There already: an earlier try has asked. Not there: this runner was overtaken.
  if (!inserted && rows.get(id) === undefined) {
    throw new PerdureError("fenced", `Another runner of "${context.agentName}" has taken over the answer.`);
  }
  await withdrawIfCircle(rows, id);
}

function contentOf(args: unknown): string {
  const message = typeof args === "object" && args !== null ? (args as { message?: unknown }).message : undefined;
  return typeof message === "string" ? message : JSON.stringify(args ?? null);
}

function parseReply(agentName: string, content: string): unknown {
  try {
    return JSON.parse(content) as unknown;
  } catch {
    throw new PerdureError("bad_input", `The agent "${agentName}" returned an answer that is not JSON: ${content}`);
  }
}

/** An adapter, and the tool calls of the turn that it has spoken last. */
interface WatchedAdapter {
  readonly adapter: AnyTextAdapter;
  /** Filled while the model speaks, emptied when it begins again. */
  readonly calls: readonly AgentToolCall[];
}

/** What is looked at of the events of a model. */
interface CallEvent {
  readonly type?: unknown;
  readonly toolCallId?: unknown;
  readonly toolCallName?: unknown;
  readonly delta?: unknown;
}

/** The adapter, recording tool calls: `chat()` runs a turn's tools one by one; here all are known before the first runs. */
export function watchCalls(adapter: AnyTextAdapter): WatchedAdapter {
  const calls: AgentToolCall[] = [];
  async function* watched(stream: AsyncIterable<unknown>) {
    calls.length = 0;
    for await (const event of stream) {
      keep(calls, event as CallEvent);
      yield event;
    }
  }
  const proxy = new Proxy(adapter, {
    get(target, name) {
      // As a method of the adapter itself: it may have private fields.
      const found: unknown = Reflect.get(target, name, target);
      if (typeof found !== "function") return found;
      if (name !== "chatStream") return found.bind(target) as unknown;
      return (...args: unknown[]) => watched(found.apply(target, args) as AsyncIterable<unknown>);
    },
  });
  return { adapter: proxy, calls };
}

function keep(calls: AgentToolCall[], { type, toolCallId: id, toolCallName: name, delta }: CallEvent): void {
  if (typeof id !== "string") return;
  if (type === "TOOL_CALL_START" && typeof name === "string") calls.push({ id, name, arguments: "" });
  const call = calls.find((one) => one.id === id);
  if (type === "TOOL_CALL_ARGS" && call !== undefined && typeof delta === "string") call.arguments += delta;
}
