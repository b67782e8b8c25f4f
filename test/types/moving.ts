// Names and shapes of the public packages, as code that is moved over uses them.
import type { AITool as PublicTool } from "@cloudflare/ai-chat/react";
import type { OnChatMessageOptions as PublicOptions } from "@cloudflare/ai-chat";
import type { IncomingMessage as PublicIncoming, OutgoingMessage as PublicOutgoing } from "@cloudflare/ai-chat/types";
import {
  type AgentStaticOptions,
  AIChatAgent,
  type CallableMetadata,
  type ChatMessage,
  type OnChatMessageOptions,
  type SubAgentStub,
  type WSMessage,
} from "perdure";
import { type ClientToolSchema, type IncomingMessage, MessageType, type OutgoingMessage } from "perdure/chat";
import type { AgentPathStep, BuildAgentPathOptions } from "perdure/host";
import type { AITool, ChatTurnEndEvent, ChatTurnOutcome, OnToolCallCallback, UseAgentChatOptions } from "perdure/react";
import { expectTypeOf } from "vitest";

// Every word that public clients and servers say is one of ours.
expectTypeOf<`${PublicIncoming["type"]}`>().toExtend<IncomingMessage["type"]>();
expectTypeOf<IncomingMessage["type"]>().toExtend<`${PublicIncoming["type"]}`>();
expectTypeOf<`${PublicOutgoing["type"]}`>().toExtend<OutgoingMessage["type"]>();
expectTypeOf<OutgoingMessage["type"]>().toExtend<`${PublicOutgoing["type"]}`>();
expectTypeOf<IncomingMessage["type"]>().toExtend<MessageType>();
expectTypeOf<OutgoingMessage["type"]>().toExtend<MessageType>();

export function read(text: string): string | undefined {
  const frame = JSON.parse(text) as OutgoingMessage<ChatMessage>;
  if (frame.type === MessageType.CF_AGENT_CHAT_MESSAGES) return frame.messages.at(-1)?.id;
  if (frame.type === MessageType.CF_AGENT_USE_CHAT_RESPONSE) return frame.body;
  return undefined;
}

export const stop: IncomingMessage = { type: MessageType.CF_AGENT_CHAT_REQUEST_CANCEL, id: "r1" };

// Tools of a client
const publicTool: PublicTool<{ a: number }, number> = {
  parameters: { type: "object" },
  execute: ({ a }) => a,
};
export const tool: AITool<{ a: number }, number> = { ...publicTool, description: "adds" };
export const tools: Record<string, AITool> = { now: { description: "the time", execute: () => Date.now() } };
export const options: Partial<UseAgentChatOptions> = { tools };

class Chat extends AIChatAgent {
  override async onChatMessage(_onFinish: unknown, turn?: OnChatMessageOptions): Promise<Response> {
    expectTypeOf(turn?.body).toEqualTypeOf<Record<string, unknown> | undefined>();
    return new Response(turn?.requestId);
  }
}
expectTypeOf<keyof PublicOptions>().toExtend<keyof OnChatMessageOptions>();

export interface Rest {
  step: AgentPathStep;
  settings: AgentStaticOptions;
  path: BuildAgentPathOptions;
  call: CallableMetadata;
  schema: ClientToolSchema;
  stub: SubAgentStub<Chat>;
  data: WSMessage;
  end: ChatTurnEndEvent;
  outcome: ChatTurnOutcome;
  onToolCall: OnToolCallCallback;
}
