// A Think agent with tools that go on in the background.
import type { ToolSet, UIMessage } from "ai";
import { durableTool, type Think } from "perdure";
import { subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { onTestFinished } from "vitest";
import { textIn } from "../chat/client.ts";
import type { AgentOptions } from "../chat/open-agent.ts";
import { until } from "../support/until.ts";
import { openThink, serverTool, type ThinkBase } from "./harness.ts";

export type Settings = Partial<Pick<Think, "maxBackgroundCalls" | "maxAgentToolRuns">>;
type ScriptOf = Extract<Script, (...args: never[]) => unknown>;

/** To "go c1 c2" it calls the tool `work` under these ids; all else it reads back. */
export const calling = (({ step, userText }) =>
  step === 0 && userText.startsWith("go ")
    ? {
        toolCalls: userText
          .split(" ")
          .slice(1)
          .map((toolCallId) => ({ toolName: "work", input: {}, toolCallId })),
      }
    : `read: ${userText}`) satisfies ScriptOf;

/** What the events of background calls tell. */
export interface BackgroundEvent {
  readonly type: string;
  readonly toolCallId: string;
  readonly status?: string;
  readonly reason?: string;
}

export async function openBackground(
  tools: ToolSet,
  { script = calling, settings = {}, ...options }: AgentOptions & { script?: Script; settings?: Settings } = {},
  more: (Base: ThinkBase) => ThinkBase = (Base) => Base,
) {
  const model = scriptedModel(script);
  const kit = await openThink((Base) => {
    class Talk extends more(Base) {
      override maxBackgroundCalls = settings.maxBackgroundCalls ?? 16;
      override maxAgentToolRuns = settings.maxAgentToolRuns ?? 100;
      override getModel() {
        return model;
      }
      override getTools() {
        return tools;
      }
    }
    return Talk;
  }, options);
  const events: BackgroundEvent[] = [];
  onTestFinished(
    subscribe("chat:background:*", ({ type, payload }) => {
      events.push({ ...payload, type: type.slice("chat:background:".length) });
    }),
  );
  const ended = () => until(() => events.find(({ type }) => type === "ended"), "the end of a background call");
  return Object.assign(kit, { model, events, ended });
}

/** A tool that ends when the test says so. */
export function gate(options: Parameters<typeof durableTool>[1] = { background: true }) {
  const runs: { key: string | undefined; signal: AbortSignal | undefined; end: PromiseWithResolvers<unknown> }[] = [];
  const work = durableTool(
    serverTool((_: object, handed: { abortSignal?: AbortSignal; idempotencyKey?: string }) => {
      const end = Promise.withResolvers<unknown>();
      runs.push({ key: handed.idempotencyKey, signal: handed.abortSignal, end });
      return end.promise;
    }),
    options,
  );
  const begun = (n = 1) => until(() => (runs.length >= n ? runs[n - 1] : undefined), `run ${n}`);
  return { work, runs, begun };
}

export const lastOf = (messages: readonly UIMessage[]) =>
  messages.map((message) => `${message.role}: ${textIn(message)}`);

/** What the model is told of a call of the tool `work`. */
export const told = (call: string, how: string) =>
  `The call ${call} of "work", which went on in the background, ${how}`;
