// Checked by the compiler (`npm run check`), never run.
import { useAgent as usePublicAgent } from "agents/react";
import { type InferUITools, jsonSchema, tool, type UIMessage } from "ai";
import { Agent, type AgentEnv, AIChatAgent, type ChatAnswer, type StreamingResponse } from "perdure";
import { expectTypeOf } from "vitest";
import { AgentClient, AgentToolEvents, type CallStream } from "../../src/client/index.ts";
import {
  type AgentToolRunState,
  getAgentMessages,
  useAgent,
  useAgentChat,
  type UseAgentChat,
  useAgentToolEvents,
} from "../../src/client/react.ts";

interface Count {
  readonly n: number;
}

class Counter extends Agent<AgentEnv, Count> {
  readonly label = "counter";
  add(by: number, more?: number): number {
    return by + (more ?? 0);
  }
  async later(): Promise<{ id: string }> {
    return { id: "" };
  }
  count(stream: StreamingResponse<number, string>, to: number): void {
    stream.end(String(to));
  }
  join(...words: string[]): string {
    return words.join(" ");
  }
  async forget(): Promise<void> {}
}

export async function clients(): Promise<void> {
  const client = new AgentClient<Counter>({
    agent: "Counter",
    onStateUpdate: (state) => expectTypeOf(state).toEqualTypeOf<Count>(),
  });
  expectTypeOf(client.state).toEqualTypeOf<Count | undefined>();
  expectTypeOf(client.setState).parameters.toEqualTypeOf<[state: Count]>();
  expectTypeOf(client.stub.add).toEqualTypeOf<(by: number, more?: number) => Promise<number>>();
  expectTypeOf(client.stub.later).toEqualTypeOf<() => Promise<{ id: string }>>();
  expectTypeOf(client.stub.count).toEqualTypeOf<(to: number) => Promise<string>>();
  expectTypeOf(await client.call("add", [1, 2])).toEqualTypeOf<number>();
  expectTypeOf(await client.call("later")).toEqualTypeOf<{ id: string }>();
  expectTypeOf(client.callStream("count", [1])).toEqualTypeOf<CallStream<number, string>>();
  await client.call("count", [1], { stream: { onChunk: (chunk) => expectTypeOf(chunk).toEqualTypeOf<number>() } });

  // @ts-expect-error wrong argument
  await client.call("add", ["1"]);
  // @ts-expect-error missing arguments
  await client.call("add");
  // @ts-expect-error no such method
  await client.call("subtract", [1]);
  // @ts-expect-error not a method
  void client.stub.label;
  // @ts-expect-error for the agent's own code
  void client.stub.sql;
  // @ts-expect-error for the agent's own code
  void client.stub.onConnect;
  // @ts-expect-error not the state
  client.setState({ m: 1 });

  expectTypeOf(client.stub.join).toEqualTypeOf<(...words: string[]) => Promise<string>>();
  expectTypeOf(await client.call("join", ["a", "b"])).toEqualTypeOf<string>();
  expectTypeOf(await client.stub.forget()).toEqualTypeOf<void>();
  expectTypeOf(await client.call("forget", [], { timeout: 1 })).toEqualTypeOf<void>();
  // @ts-expect-error no arguments
  await client.call("forget", [1]);

  // The class itself names the agent as well as its instances do.
  const byClass = new AgentClient<typeof Counter>({ agent: "Counter" });
  expectTypeOf(byClass.state).toEqualTypeOf<Count | undefined>();
  expectTypeOf(byClass.stub).toEqualTypeOf(client.stub);
  expectTypeOf(await byClass.call("add", [1])).toEqualTypeOf<number>();
  expectTypeOf(byClass.callStream("count", [1])).toEqualTypeOf<CallStream<number, string>>();
  // @ts-expect-error wrong argument
  await byClass.call("add", ["1"]);

  const untyped = new AgentClient({ agent: "Counter" });
  expectTypeOf(untyped.state).toEqualTypeOf<unknown>();
  expectTypeOf(await untyped.call<number>("anything", [1])).toEqualTypeOf<number>();
  expectTypeOf(untyped.stub.anything?.(1)).toEqualTypeOf<Promise<unknown> | undefined>();

  client.addEventListener("message", (event) => expectTypeOf(event.data).toEqualTypeOf<unknown>());
  client.addEventListener("close", (event) => expectTypeOf(event.code).toEqualTypeOf<number>());
  // @ts-expect-error no such event
  client.addEventListener("opened", () => {});
}

const tools = {
  weather: tool({
    inputSchema: jsonSchema<{ city: string }>({ type: "object" }),
    execute: async ({ city }): Promise<{ degrees: number }> => ({ degrees: city.length }),
  }),
  ask: tool({
    inputSchema: jsonSchema<{ question: string }>({ type: "object" }),
    outputSchema: jsonSchema<boolean>({}),
  }),
};

type Message = UIMessage<{ at: number }, { sources: { results: string[] } }, InferUITools<typeof tools>>;

class Talk extends AIChatAgent<AgentEnv, Count> {
  async rename(title: string): Promise<boolean> {
    return title !== "";
  }
  override onChatMessage(): ChatAnswer {
    return new Response("hi");
  }
}

export function Page(): null {
  const agent = useAgent<Counter>({
    agent: "Counter",
    onStateUpdate: (state, source) => {
      expectTypeOf(state).toEqualTypeOf<Count>();
      expectTypeOf(source).toEqualTypeOf<"server" | "client">();
    },
  });
  expectTypeOf(agent.state).toEqualTypeOf<Count | undefined>();
  expectTypeOf(agent.setState).parameters.toEqualTypeOf<[state: Count]>();
  expectTypeOf(agent.stub.add).toEqualTypeOf<(by: number, more?: number) => Promise<number>>();
  expectTypeOf(agent.call("later")).toEqualTypeOf<Promise<{ id: string }>>();
  expectTypeOf(useAgent<typeof Counter>({ agent: "Counter" }).stub).toEqualTypeOf(agent.stub);
  // @ts-expect-error wrong argument
  void agent.stub.add("1");
  // @ts-expect-error no such method
  void agent.call("subtract");

  const talk = useAgent<Talk>({ agent: "Talk" });
  expectTypeOf(talk.stub).toEqualTypeOf<{ readonly rename: (title: string) => Promise<boolean> }>();
  // @ts-expect-error for the agent's own code
  void talk.stub.saveMessages;

  const chat = useAgentChat<Count, Message>({
    agent: talk,
    body: () => ({ zone: "UTC" }),
    onData: (part) => {
      if (part.type === "data-sources") expectTypeOf(part.data).toEqualTypeOf<{ results: string[] }>();
      // @ts-expect-error no such data
      if (part.type === "data-other") return;
    },
    onFinish: ({ message, messages }) => {
      message.parts.forEach(shown);
      expectTypeOf(messages).toEqualTypeOf<Message[]>();
    },
    onToolCall: ({ toolCall, addToolOutput }) => {
      if (toolCall.toolName === "ask") expectTypeOf(toolCall.input).toEqualTypeOf<{ question: string }>();
      if (toolCall.toolName === "weather") expectTypeOf(toolCall.input).toEqualTypeOf<{ city: string }>();
      // @ts-expect-error no such tool
      if (toolCall.toolName === "forecast") return;
      addToolOutput({ toolCallId: toolCall.toolCallId, output: true });
    },
    sendAutomaticallyWhen: ({ messages }) => messages.at(-1)?.metadata?.at === 1,
    prepareSendMessagesRequest: ({ messages }) => ({ body: { at: messages.at(-1)?.metadata?.at } }),
  });
  expectTypeOf(chat).toEqualTypeOf<UseAgentChat<Message>>();
  for (const message of chat.messages) {
    expectTypeOf(message.metadata).toEqualTypeOf<{ at: number } | undefined>();
    for (const part of message.parts) shown(part);
  }
  void chat.sendMessage({ text: "hi", metadata: { at: 1 } });
  // @ts-expect-error not this chat's metadata
  void chat.sendMessage({ text: "hi", metadata: { when: 1 } });
  chat.setMessages((messages) => {
    expectTypeOf(messages).toEqualTypeOf<Message[]>();
    return messages.slice(1);
  });
  expectTypeOf(chat.status).toEqualTypeOf<"submitted" | "streaming" | "ready" | "error">();
  const any = useAgentChat({
    agent: useAgent({ agent: "Any" }),
    onData: (part) => expectTypeOf(part.data).toEqualTypeOf<unknown>(),
    onToolCall: ({ toolCall }) => {
      expectTypeOf(toolCall.toolName).toEqualTypeOf<string>();
      expectTypeOf(toolCall.input).toEqualTypeOf<unknown>();
    },
  });
  expectTypeOf(any.messages).toEqualTypeOf<UIMessage[]>();
  const load = async (): Promise<Message[]> => getAgentMessages<Message>({ url: "" });
  expectTypeOf(useAgentChat({ agent, getInitialMessages: load }).messages).toEqualTypeOf<Message[]>();
  // @ts-expect-error an agent is needed
  useAgentChat({});
  return null;
}

/** What a page does with a part: each kind has its own types, without a cast. */
function shown(part: Message["parts"][number]): void {
  if (part.type === "data-sources") expectTypeOf(part.data.results).toEqualTypeOf<string[]>();
  if (part.type === "tool-weather") {
    if (part.state === "input-available") expectTypeOf(part.input).toEqualTypeOf<{ city: string }>();
    if (part.state === "output-available") expectTypeOf(part.output).toEqualTypeOf<{ degrees: number }>();
  }
  if (part.type === "tool-ask" && part.state === "output-available") expectTypeOf(part.output).toEqualTypeOf<boolean>();
  // @ts-expect-error no such tool
  if (part.type === "tool-forecast") return;
}

export function Runs(): null {
  const agent = useAgent<Talk>({ agent: "Talk" });
  const runs = useAgentToolEvents({ agent });
  expectTypeOf(runs.runsById).toEqualTypeOf<Record<string, AgentToolRunState>>();
  expectTypeOf(runs.getRunsForToolCall("c")).toEqualTypeOf<AgentToolRunState[]>();
  for (const { parts, status, progress } of runs.unboundRuns) {
    expectTypeOf(parts).toEqualTypeOf<UIMessage["parts"]>();
    expectTypeOf(status).toEqualTypeOf<"running" | "completed" | "error" | "aborted" | "interrupted">();
    expectTypeOf(progress?.fraction).toEqualTypeOf<number | undefined>();
  }
  const typed = useAgentToolEvents<Message["parts"][number]>({ agent });
  for (const { parts } of typed.unboundRuns) parts.forEach(shown);
  // It listens to any socket, the public client's too.
  useAgentToolEvents({ agent: usePublicAgent({ agent: "talk" }), throttle: false });
  void new AgentToolEvents(agent).getSnapshot().unboundRuns;
  void new AgentToolEvents(new WebSocket("ws://127.0.0.1"));
  // @ts-expect-error an agent is needed
  useAgentToolEvents({});
  return null;
}
