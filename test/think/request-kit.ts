// Requests of past calls, shown again from rows, beside what the model was really handed.
import { experimental_streamLanguageModelCall, jsonSchema, type ModelMessage, type ToolSet, tool } from "ai";
import type { AgentHost, Think } from "perdure";
import { type RecordedCall, type ScriptedCall, type ScriptedReply, scriptedModel } from "perdure/testing";
import { findRequest, showRequest, type ShownRequest } from "../../src/model/read-request.ts";
import type { Sql } from "../../src/port.ts";

/** The requests of all calls of turns, oldest first. */
export async function shownRequests(rows: Sql): Promise<ShownRequest[]> {
  const calls = rows.sql<{ id: string }>("SELECT id FROM perdure_usage WHERE purpose = 'turn' ORDER BY seq");
  const found = calls.map(({ id }) => findRequest(rows, id));
  return Promise.all(found.flatMap((one) => (one === undefined ? [] : [showRequest(one)])));
}

/** What a provider is handed for a request that is shown: prompt and tools, as the AI SDK makes them of it. */
export async function asHanded({ instructions, tools, messages }: ShownRequest): Promise<string> {
  const probe = scriptedModel(["-"]);
  const set: ToolSet = Object.fromEntries(
    Object.entries(tools as Record<string, { description?: string; inputSchema?: object }>).map(([name, shown]) => [
      name,
      tool({ ...shown, inputSchema: jsonSchema(shown.inputSchema ?? {}) } as never),
    ]),
  );
  const { stream } = await experimental_streamLanguageModelCall({
    ...{ model: probe, messages: messages as ModelMessage[], tools: set, allowSystemInMessages: true },
    ...(instructions !== null && { instructions: instructions as string }),
  } as never);
  for await (const _ of stream) continue;
  return handed(probe.calls[0]);
}

/** What a provider was handed. */
export function handed(call: RecordedCall | undefined): string {
  const tools = call?.tools.map(({ name, type, ...rest }) => ({
    ...{ name, type, inputSchema: (rest as { inputSchema?: unknown }).inputSchema },
  }));
  return JSON.stringify([call?.prompt, tools]);
}

/** The rows of an agent, as they are. */
export function rowsOf(port: AgentHost | undefined): Sql {
  if (port === undefined) throw new Error("The agent has not begun.");
  return port;
}

export type Reply = string | ScriptedReply;
export type Answer = (call: ScriptedCall) => Reply | Promise<Reply>;
export type ThinkClass = new (host: AgentHost) => Think;
