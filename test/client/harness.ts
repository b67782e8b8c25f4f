import { Agent, type AgentEnv, callable, type Connection, type StreamingResponse } from "perdure";
import { AgentClient, type AgentClientOptions, type StateOf } from "../../src/client/index.ts";
import { addressOf, atEnd, QUICK } from "../clients/harness.ts";
import { newLine, type Line } from "../chat-client/task-socket.ts";

export interface Count {
  readonly n: number;
}

/** An agent with a state and some methods. */
export class Counter extends Agent<AgentEnv, Count> {
  static override options = { allowClientState: true };
  override initialState: Count = { n: 0 };

  static {
    callable(this, "add");
    callable(this, "fail");
    callable(this, "never");
    callable(this, "count", { streaming: true });
    callable(this, "stumble", { streaming: true });
  }

  add(by: number, more = 0): number {
    this.setState({ n: this.state.n + by + more });
    return this.state.n;
  }

  fail(): void {
    throw new Error("not today");
  }

  never(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    atEnd(() => resolve("at the end of the test"));
    return promise;
  }

  secret(): string {
    return "secret";
  }

  count(stream: StreamingResponse<number, string>, to: number): void {
    for (let i = 1; i <= to; i++) stream.send(i);
    stream.end("all");
  }

  stumble(stream: StreamingResponse<number, string>): void {
    stream.send(1);
    stream.error("fell");
  }

  override validateStateChange(next: Count): void {
    if (next.n < 0) throw new Error("below zero");
  }

  override onMessage(connection: Connection, message: string | Uint8Array): void {
    if (message === '"close for good"') connection.close(4001, "go away");
    else connection.send(JSON.stringify({ echo: JSON.parse(String(message)) }));
  }

  override onRequest(request: Request): Response {
    return Response.json({ url: new URL(request.url).pathname + new URL(request.url).search, method: request.method });
  }
}

/** A client of ours on a line that can be cut; closed at the end of the test. */
export function connect<AgentT = Counter>(
  host: { readonly port: number },
  options: Partial<AgentClientOptions<StateOf<AgentT>>> = {},
): { client: AgentClient<AgentT>; line: Line } {
  const line = newLine();
  const client = new AgentClient<AgentT>({
    ...QUICK,
    agent: "Counter",
    name: "x",
    WebSocket: line.Socket,
    ...options,
    host: addressOf(host),
  });
  atEnd(() => client.close());
  return { client, line };
}
