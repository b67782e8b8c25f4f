import { Agent, type AgentEnv } from "perdure";
import { createHost, type HostOptions, subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { tempDir } from "./open-host.ts";

class Notes extends Agent<AgentEnv, { text: string }> {
  write(text: string): void {
    this.setState({ text });
  }

  read(): string | undefined {
    return (this.state as { text: string } | undefined)?.text;
  }
}
class Other extends Agent {
  touch(): void {
    this.setState(1);
  }
}
class Renamed extends Notes {}

test("a class with data that is not registered any more is told once at the start, and nothing is deleted", async () => {
  const dir = tempDir();
  const lines: string[] = [];
  const log: HostOptions["log"] = ({ agent, error }) => lines.push(`${agent}: ${(error as Error).message}`);
  const told: unknown[] = [];
  onTestFinished(subscribe("agent:failed", (event) => told.push(event.payload)));
  const first = createHost({ agents: { Notes, Other }, dir, log });
  for (const name of ["a", "b", "c"]) await first.getAgentByName(Notes, name).write(`of ${name}`);
  await first.getAgentByName(Other, "x").touch();
  await first.stop();
  expect(lines).toEqual([]);

  const second = createHost({ agents: { Renamed, Other }, dir, log });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^Notes\/a: There are stored agents of the class "Notes".*agents: \{ Notes: NewName \}/);
  expect(told).toMatchObject([{ stage: "start" }]);
  await second.stop();

  const third = createHost({ agents: { Notes: Renamed, Other }, dir, log });
  onTestFinished(() => third.stop());
  expect(lines).toHaveLength(1);
  expect(await third.getAgentByName(Renamed, "b").read()).toBe("of b");
});
