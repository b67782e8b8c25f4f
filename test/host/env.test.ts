import { Agent, agent, type AgentEnv, getCurrentAgent, Think } from "perdure";
import { createHost, memoryStorage, serve } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test, vi } from "vitest";

interface Env {
  readonly REGION: string;
  readonly find: (id: string) => string;
}

class Clerk extends Agent<Env> {
  atBirth = this.env.REGION;

  region(): string {
    return `${this.env.REGION} ${this.atBirth}`;
  }

  find(id: string): string {
    return this.env.find(id);
  }

  async askChild(): Promise<string> {
    return (await this.subAgent(Helper, "one")).find("7");
  }
}

class Helper extends Think<Env> {
  find(id: string): string {
    const { agent: current } = getCurrentAgent<Helper>();
    return `${this.env.find(id)} ${current?.env === this.env}`;
  }
}

const env: Env = { REGION: "north", find: (id) => `order ${id}` };

test("What a host is given as env is this.env of its agents and of their children, as it is", async () => {
  const host = createHost({ agents: { Clerk }, subAgents: { Helper }, storage: memoryStorage(), env });
  onTestFinished(() => host.stop());
  const clerk = host.getAgentByName(Clerk, "one");
  expect(await clerk.region()).toBe("north north");
  expect(await clerk.find("3")).toBe("order 3");
  expect(await clerk.askChild()).toBe("order 7 true");
});

test("serve() hands env on, also to an agent that is declared without a class", async () => {
  const model = scriptedModel(() => ({ text: ["hello"] }));
  const asked: unknown[] = [];
  const Declared = agent<Env>({ name: "Declared", model, onStart: (self) => void asked.push(self.env) });
  const host = await serve({ agents: [Declared], storage: memoryStorage(), port: 0, signals: false, env });
  onTestFinished(() => host.stop());
  await host.getAgentByName(Declared, "one").getCallableMethods();
  expect(asked).toEqual([env]);
});

test("Without env agents get the environment of the process", async () => {
  vi.stubEnv("PERDURE_TEST_REGION", "south");
  onTestFinished(() => void vi.unstubAllEnvs());
  class Reader extends Agent {
    read(): AgentEnv[string] {
      return this.env.PERDURE_TEST_REGION;
    }
  }
  const host = createHost({ agents: { Reader }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  expect(await host.getAgentByName(Reader, "one").read()).toBe("south");
});

test.each([["text"], [7], [null]])("An env that is no object is refused: %s", (wrong) => {
  const options = { agents: { Clerk }, storage: memoryStorage(), env: wrong as never };
  expect(() => createHost(options)).toThrow(expect.objectContaining({ code: "bad_config" }));
});
