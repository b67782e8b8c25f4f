// Checked by the compiler (`npm run check`), never run.
import { Agent, type AgentEnv, callable, getCurrentAgent } from "perdure";
import type {
  Connection,
  ConnectionContext,
  CurrentAgent,
  FiberContext,
  Schedule,
  StateSource,
  StreamingResponse,
} from "perdure";
import type { AgentPath, SqlRow, SqlValue } from "perdure/host";
import type { FiberInspection } from "perdure/work";
import { expectTypeOf } from "vitest";

interface CounterState {
  count: number;
}
interface CounterProps {
  region: string;
}

class Counter extends Agent<AgentEnv, CounterState, CounterProps> {
  static {
    callable(this, "add");
    callable(this, "stream", { streaming: true, description: "counts" });
    // @ts-expect-error there is no such method
    callable(this, "subtract");
    // @ts-expect-error a field is not a method
    callable(this, "initialState");
    // @ts-expect-error not an option
    callable(this, "add", { streamed: true });
  }
  override initialState = { count: 0 };
  label = "counter";

  override onStart(props?: CounterProps): void {
    expectTypeOf(props).toEqualTypeOf<CounterProps | undefined>();
  }
  override onStateChanged(state: CounterState, source: StateSource): void {
    expectTypeOf(state).toEqualTypeOf<CounterState>();
    expectTypeOf(source).toEqualTypeOf<Connection | "server">();
  }
  override validateStateChange(next: CounterState): void {
    expectTypeOf(next.count).toBeNumber();
  }
  override onConnect(connection: Connection, context: ConnectionContext): void {
    expectTypeOf(connection.state).toBeUnknown();
    expectTypeOf(context.request).toEqualTypeOf<Request>();
  }
  add(by: number): number {
    this.setState({ count: this.state.count + by });
    // @ts-expect-error not the state
    this.setState({ total: 1 });
    // @ts-expect-error not the state
    this.setState("one");
    // @ts-expect-error the state has a type
    void this.state.total;
    return this.state.count;
  }
  async slow(): Promise<string> {
    return this.name;
  }
  stream(response: StreamingResponse<number, string>, upto: number): void {
    response.send(upto);
    response.end("done");
    // @ts-expect-error chunks are numbers
    response.send("one");
    // @ts-expect-error the last value is text
    response.end(1);
  }
  remind(_payload: { text: string }, _run: unknown): void {}

  async members(): Promise<void> {
    expectTypeOf(this.state).toEqualTypeOf<CounterState>();
    expectTypeOf(this.name).toBeString();
    expectTypeOf(this.selfPath).toEqualTypeOf<AgentPath>();

    // SQL
    expectTypeOf(this.sql`SELECT 1`).toEqualTypeOf<SqlRow[]>();
    expectTypeOf(this.sql`SELECT 1`[0]).toEqualTypeOf<Record<string, SqlValue> | undefined>();
    expectTypeOf(this.sql<{ id: number; text: string | null }>`SELECT id, text FROM note`).toEqualTypeOf<
      { id: number; text: string | null }[]
    >();
    this.sql`SELECT ${1}, ${"a"}, ${null}, ${true}, ${new Uint8Array()}`;
    // @ts-expect-error SQLite cannot store a date
    this.sql`SELECT ${new Date()}`;
    // @ts-expect-error SQLite cannot store an object
    this.sql`SELECT ${{ a: 1 }}`;
    // @ts-expect-error a template, not a text: values must not be pasted in
    this.sql("SELECT 1");
    expectTypeOf(this.transaction(() => 5)).toBeNumber();

    // Work
    expectTypeOf(await this.schedule(1, "remind", { text: "a" })).toEqualTypeOf<Schedule<{ text: string }>>();
    await this.schedule(new Date(), "add");
    await this.schedule("0 * * * *", "add", undefined, { timeZone: "Europe/Berlin" });
    await this.scheduleEvery(60, "slow");
    // @ts-expect-error there is no such method
    await this.schedule(1, "forget");
    // @ts-expect-error a time zone is for cron expressions
    await this.scheduleEvery(60, "slow", undefined, { timeZone: "Europe/Berlin" });
    expectTypeOf(await this.queue("add", 1)).toBeString();
    // @ts-expect-error there is no such method
    await this.queue("forget");
    expectTypeOf(this.spawnFiber("slow")).toBeString();
    // @ts-expect-error there is no such method
    this.spawnFiber("forget");
    expectTypeOf(
      await this.runFiber("work", async (fiber) => {
        expectTypeOf(fiber).toEqualTypeOf<FiberContext>();
        return 5;
      }),
    ).toBeNumber();
    expectTypeOf(this.inspectFiber("id")).toEqualTypeOf<FiberInspection | null>();
    expectTypeOf(await this.retry(() => "again")).toBeString();
    expectTypeOf(await this.keepAliveWhile(async () => 1)).toBeNumber();

    // Connections
    for (const connection of this.getConnections<{ user: string }>("tag")) {
      expectTypeOf(connection.state).toEqualTypeOf<{ user: string } | null>();
      connection.setState({ user: "anna" });
      connection.setState((previous) => ({ user: `${previous?.user ?? ""}!` }));
      // @ts-expect-error not what is kept with it
      connection.setState({ name: "anna" });
    }
    // @ts-expect-error a frame is text or bytes
    this.broadcast({ type: "object" });
  }
}

class Stateless extends Agent {
  check(): void {
    expectTypeOf(this.state).toBeUnknown();
  }
}

expectTypeOf(getCurrentAgent()).toEqualTypeOf<CurrentAgent>();
expectTypeOf(getCurrentAgent<Counter>().agent).toEqualTypeOf<Counter | undefined>();
expectTypeOf(getCurrentAgent().connection).toEqualTypeOf<Connection | undefined>();

class Wrong extends Agent<AgentEnv, CounterState> {
  // @ts-expect-error the state is what the class says
  override initialState = { total: "none" };
}

// As a decorator; `tsc` checks it although Node cannot run the syntax.
expectTypeOf(callable({ streaming: true })).toBeFunction();

export { Counter, Stateless, Wrong };
