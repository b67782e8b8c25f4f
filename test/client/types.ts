// Checked by the compiler (`npm run check`), never run.
import type { UIMessage } from "ai";
import { Agent, type StreamingResponse } from "perdure";
import { expectTypeOf } from "vitest";
import { AgentClient, type CallStream } from "../../src/client/index.ts";
import { useAgent, useAgentChat, type UseAgentChat } from "../../src/client/react.ts";

interface Count {
  readonly n: number;
}

class Counter extends Agent<Count> {
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

  const untyped = new AgentClient({ agent: "Counter" });
  expectTypeOf(untyped.state).toEqualTypeOf<unknown>();
  expectTypeOf(await untyped.call<number>("anything", [1])).toEqualTypeOf<number>();
  expectTypeOf(untyped.stub.anything?.(1)).toEqualTypeOf<Promise<unknown> | undefined>();

  client.addEventListener("message", (event) => expectTypeOf(event.data).toEqualTypeOf<unknown>());
  client.addEventListener("close", (event) => expectTypeOf(event.code).toEqualTypeOf<number>());
  // @ts-expect-error no such event
  client.addEventListener("opened", () => {});
}

type Message = UIMessage<{ at: number }, { sources: { results: string[] } }>;

export function Page(): null {
  const agent = useAgent<Counter>({ agent: "Counter" });
  expectTypeOf(agent.state).toEqualTypeOf<Count | undefined>();
  const chat = useAgentChat<Count, Message>({ agent, body: () => ({ zone: "UTC" }) });
  expectTypeOf(chat).toEqualTypeOf<UseAgentChat<Message>>();
  for (const message of chat.messages) {
    expectTypeOf(message.metadata).toEqualTypeOf<{ at: number } | undefined>();
    for (const part of message.parts)
      if (part.type === "data-sources") expectTypeOf(part.data.results).toEqualTypeOf<string[]>();
  }
  void chat.sendMessage({ text: "hi", metadata: { at: 1 } });
  // @ts-expect-error not this chat's metadata
  void chat.sendMessage({ text: "hi", metadata: { when: 1 } });
  expectTypeOf(chat.status).toEqualTypeOf<"submitted" | "streaming" | "ready" | "error">();
  expectTypeOf(useAgentChat({ agent: useAgent({ agent: "Any" }) }).messages).toEqualTypeOf<UIMessage[]>();
  // @ts-expect-error an agent is needed
  useAgentChat({});
  return null;
}
