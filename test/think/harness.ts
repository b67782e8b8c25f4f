// A real host with one Think agent. The model is a script; each test writes the class as a user would.
import { APICallError, jsonSchema, type ModelMessage, tool, type Tool, type UIMessage } from "ai";
import { type AgentHost, type ChatResponseResult, type SaveMessagesResult, Think } from "perdure";
import type { WaitTurnOptions } from "perdure/chat";
import type { ScriptedModel } from "perdure/testing";
import { type AgentOptions, newNotes, noteError, openAgent, type TestAgent } from "../chat/open-agent.ts";
import { user } from "../chat/client.ts";

/** What the class under test extends: it notes its lives, its errors and the ends of its turns. */
export type ThinkBase = new (host: AgentHost) => Think;

/** A Think agent under test. */
export interface TestThink<A extends Think> extends TestAgent<A> {
  /** What `onChatResponse` was told; only where the class leaves it to its base. */
  readonly responses: readonly ChatResponseResult[];
  /** Runs a turn that answers this text, and waits for its end. */
  ask(text: string, extras?: Pick<WaitTurnOptions, "tools" | "config" | "signal">): Promise<SaveMessagesResult>;
  /** The last message. */
  last(): Promise<UIMessage | undefined>;
}

export async function openThink<A extends Think>(
  make: (Base: ThinkBase) => new (host: AgentHost) => A,
  options: AgentOptions = {},
): Promise<TestThink<A>> {
  const notes = newNotes<A>();
  const responses: ChatResponseResult[] = [];
  class Base extends Think {
    override workspaceTools = false as const;
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      // What is made here is what `make` returns: nothing else extends it.
      notes.lives.push(this as unknown as A);
    }
    override onChatResponse(result: ChatResponseResult): void {
      responses.push(result);
    }
    override onError(error: unknown): void {
      noteError(notes, error);
    }
  }
  let asked = 0;
  const kit = await openAgent(make(Base), notes, options);
  const own: Omit<TestThink<A>, keyof TestAgent<A>> = {
    responses,
    ask: async (text, extras) => (await kit.agent()).runTurn({ ...extras, input: user(`ask-${++asked}`, text) }),
    last: async () => (await kit.stored()).at(-1),
  };
  return Object.assign(kit, own);
}

/** A tool of the server; it takes anything. */
export function serverTool<INPUT extends object = Record<string, unknown>>(
  execute: NonNullable<Tool<INPUT>["execute"]>,
  more: Pick<Tool<INPUT>, "needsApproval" | "toModelOutput" | "description"> = {},
): Tool<INPUT> {
  return tool({ inputSchema: jsonSchema<INPUT>({ type: "object" }), execute, ...more } as Tool<INPUT>);
}

/** A provider that refuses. */
export function refusal(statusCode: number, message = "no", responseHeaders: Record<string, string> = {}) {
  return new APICallError({
    message,
    url: "https://model.example",
    requestBodyValues: {},
    statusCode,
    responseHeaders,
  });
}

/** The messages of a call as JSON, without the system prompt. */
export function sent(model: ScriptedModel, call: number): string[] {
  const prompt = model.calls[call]?.prompt ?? [];
  return prompt.filter(({ role }) => role !== "system").map((message) => JSON.stringify(message));
}

/** The system prompt of a call. */
export function systemOf(model: ScriptedModel, call = 0): string {
  return (model.calls[call]?.prompt ?? []).map((one) => (one.role === "system" ? one.content : "")).join("");
}

/** The outputs that the model was sent with a call, by tool call id. */
export function outputsSent(model: ScriptedModel, call: number): Record<string, unknown> {
  const outputs: Record<string, unknown> = {};
  for (const message of model.calls[call]?.prompt ?? []) {
    if (message.role !== "tool") continue;
    for (const part of message.content) if (part.type === "tool-result") outputs[part.toolCallId] = part.output;
  }
  return outputs;
}

/** A message for a model. */
export function said(text: string): ModelMessage {
  return { role: "user", content: text };
}
