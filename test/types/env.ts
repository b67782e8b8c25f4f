import { agent, Agent, type AgentEnv, AIChatAgent, getCurrentAgent, Think } from "perdure";
import { createHost, memoryStorage } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expectTypeOf } from "vitest";

interface Env {
  readonly DATABASE: { query(text: string): string[] };
  readonly API_KEY: string;
}

interface Count {
  readonly count: number;
}

interface Props {
  readonly region: string;
}

// The order is that of the public packages: environment, state, props.
class Plain extends Agent<Env, Count, Props> {
  override onStart(props?: Props): void {
    expectTypeOf(props).toEqualTypeOf<Props | undefined>();
    expectTypeOf(this.env).toEqualTypeOf<Env>();
    expectTypeOf(this.state).toEqualTypeOf<Count>();
  }
}

class Chat extends AIChatAgent<Env, Count, Props> {
  own(): void {
    expectTypeOf(this.env.DATABASE.query("x")).toEqualTypeOf<string[]>();
    expectTypeOf(this.state.count).toBeNumber();
    // @ts-expect-error not in the environment
    void this.env.MISSING;
  }
}

class Thinker extends Think<Env> {
  own(): void {
    expectTypeOf(this.env.API_KEY).toBeString();
    expectTypeOf(this.state).toBeUnknown();
    expectTypeOf(getCurrentAgent<Thinker>().agent?.env).toEqualTypeOf<Env | undefined>();
  }
}

// Without one: the environment of a process.
class Bare extends Think {
  own(): void {
    expectTypeOf(this.env).toEqualTypeOf<AgentEnv>();
    expectTypeOf(this.env.OPENAI_API_KEY).toEqualTypeOf<string | undefined>();
  }
}

// @ts-expect-error an environment is an object
class Wrong extends Agent<string> {}

// All of them run on one host and are agents, whatever their environment.
createHost({ agents: { Plain, Chat, Thinker, Bare, Wrong }, storage: memoryStorage(), env: { API_KEY: "k" } });
expectTypeOf<Plain>().toExtend<Agent<object>>();
expectTypeOf<Thinker>().toExtend<Think<object>>();

export const Declared = agent<Env, Count>({
  model: (self) => scriptedModel(() => ({ text: [self.env.API_KEY] })),
  initialState: { count: 0 },
  instructions: (self) => self.env.DATABASE.query("prompt").join(" "),
});
expectTypeOf<InstanceType<typeof Declared>["env"]>().toEqualTypeOf<Env>();

// @ts-expect-error an environment is an object
createHost({ agents: { Plain }, storage: memoryStorage(), env: "production" });
