import { Agent, type AgentEnv, callable } from "perdure";

/** What most tests need of an agent: an answer that proves that every earlier frame has arrived, and a way to hang up. */
export class Base<State = unknown> extends Agent<AgentEnv, State> {
  static {
    callable(this, "ping");
  }

  readonly errors: unknown[] = [];

  /** Frames of one connection arrive in order: when this is answered, all before it was received. */
  ping(): string {
    return "pong";
  }

  /** Closes every connection, or those of one id. */
  drop(code: number, reason = "", id?: string): number {
    let dropped = 0;
    for (const connection of this.getConnections()) {
      if (id !== undefined && connection.id !== id) continue;
      connection.close(code, reason);
      dropped++;
    }
    return dropped;
  }

  /** The ids of the open connections. */
  ids(tag?: string): string[] {
    return [...this.getConnections(tag)].map((connection) => connection.id);
  }

  say(text: string): void {
    this.broadcast(text);
  }

  override onError(error: unknown): void {
    this.errors.push(error);
  }
}

export interface Count {
  readonly count: number;
}

/** An agent with a state that only the server changes. */
export class Counter extends Base<Count> {
  static {
    callable(this, "add");
    callable(this, "read");
  }

  override initialState: Count = { count: 0 };

  add(by = 1): number {
    this.setState({ count: this.state.count + by });
    return this.state.count;
  }

  read(): number {
    return this.state.count;
  }
}
