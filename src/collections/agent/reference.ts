import type { AnyTool, JSONSchema } from "@tanstack/ai";
import { PerdureError } from "../../error.ts";
import { newId } from "../../id.ts";
import { rowsOf } from "../rows.ts";
import type { AgentContext, AgentReference, AgentRequest } from "./config.ts";
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
 * Another agent as a tool of this answer. The request's id comes from the answer and the call, so a second try at
 * the answer finds the request and its reply instead of asking again.
 */
export function agentTool(reference: AgentReference, context: AgentContext): AnyTool {
  const { agent, description, inputSchema = MESSAGE_INPUT, outputSchema } = reference;
  return {
    name: agent.name,
    description,
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    execute: async (args: unknown, call?: CallContext) => {
      const callers = [...context.callers, context.agentName];
      refuseCircle(callers, agent.name);
      const requestId = `${context.generationId}:${call?.toolCallId ?? newId()}`;
      await ask(reference, { content: contentOf(args), actorId: context.agentName, requestId, callers }, context);
      const signals = call?.abortSignal === undefined ? [context.signal] : [context.signal, call.abortSignal];
      const { content } = await agent.watchForResponse(requestId, {
        timeout: reference.timeout ?? RESPONSE_TIMEOUT_MS,
        callerName: context.agentName,
        signal: AbortSignal.any(signals),
      });
      return outputSchema === undefined ? { response: content } : parseReply(agent.name, content);
    },
  };
}

/** An agent answers one thing after the other: who is waited for cannot be asked. */
function refuseCircle(callers: readonly string[], target: string): void {
  if (!callers.includes(target)) return;
  const circle = [...callers.slice(callers.indexOf(target)), target].join(" -> ");
  throw new PerdureError(
    "conflict",
    `The agent "${target}" cannot be asked now: it waits for this very answer (${circle}). Answer with what you ` +
      `know, or ask another agent.`,
  );
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
  const id = `${request.requestId}:ask`;
  const inserted = await rows.insert(
    {
      id,
      role: "user",
      targetAgent: agent.name,
      createdAt: new Date().toISOString(),
      processed: false,
      ...request,
    },
    own !== undefined && own === rows.log ? context.fence : {},
  );
  // There already: an earlier try has asked. Not there: this runner was overtaken.
  if (!inserted && rows.get(id) === undefined) {
    throw new PerdureError("fenced", `Another runner of "${context.agentName}" has taken over the answer.`);
  }
}

function contentOf(args: unknown): string {
  const message = typeof args === "object" && args !== null ? (args as { message?: unknown }).message : undefined;
  return typeof message === "string" ? message : JSON.stringify(args ?? null);
}

function parseReply(agentName: string, content: string): unknown {
  try {
    return JSON.parse(content) as unknown;
  } catch {
    throw new PerdureError("bad_input", `The agent "${agentName}" answered with what is no JSON: ${content}`);
  }
}
