import type { ModelMessage } from "@tanstack/ai";
import type { AgentMessage } from "../contract.ts";
import type { AgentReply } from "./config.ts";
import type { Turn } from "./desk.ts";
import { createdNow } from "./message.ts";

/** The id of the reply of an answer. */
export function replyRowId(generationId: string): string {
  return `${generationId}:reply`;
}

/**
 * The rows of an answer: what the model said and was told on the way, then the reply. Their ids come from the
 * generation's, so the same answer cannot be stored twice; the reply carries the request that it answers.
 */
export function replyRows(agentName: string, turn: Turn<AgentMessage>, reply: AgentReply): AgentMessage[] {
  const { generationId } = turn;
  const last = turn.rows.at(-1);
  const base = {
    actorId: agentName,
    targetAgent: last?.actorId ?? agentName,
    processed: true,
    generationId,
  };
  const steps = stepsOf(reply).map((message, index): AgentMessage => ({
    ...base,
    id: `${generationId}:${index}`,
    createdAt: createdNow(),
    ...stepFields(message),
  }));
  const answer: AgentMessage = {
    ...base,
    id: replyRowId(generationId),
    createdAt: createdNow(),
    role: "assistant",
    content: reply.content,
  };
  return [...steps, last?.requestId === undefined ? answer : { ...answer, inReplyTo: last.requestId }];
}

/** The messages of a reply without the answer itself and without what others said. */
function stepsOf(reply: AgentReply): ModelMessage[] {
  const messages = (reply.messages ?? []).filter((message) => message.role !== "user");
  const last = messages.at(-1);
  const isAnswer = last?.role === "assistant" && (last.toolCalls?.length ?? 0) === 0;
  return isAnswer ? messages.slice(0, -1) : messages;
}

function stepFields(message: ModelMessage): Pick<AgentMessage, "role" | "content"> & Partial<AgentMessage> {
  const content = textOf(message.content);
  if (message.role === "tool") return { role: "tool", content, toolCallId: message.toolCallId ?? "" };
  const toolCalls = (message.toolCalls ?? []).map((call) => ({
    id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  return { role: "assistant", content, ...(toolCalls.length === 0 ? {} : { toolCalls }) };
}

/** The text of a message's content; parts that are no text are left out. */
function textOf(content: ModelMessage["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => (part.type === "text" ? part.content : "")).join("");
}
