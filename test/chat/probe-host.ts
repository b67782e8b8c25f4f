// For tests of the parts of a chat: the AgentHost that a real host gives to an agent, without an agent around it.
import { createHost, memoryStorage } from "perdure/node";
import { manualClock } from "perdure/testing";
import type { ManualClock } from "perdure/testing";
import { onTestFinished } from "vitest";
import { hostable, hosted } from "../../src/port.ts";
import type { AgentHost, HostedAgent } from "../../src/port.ts";

/** A real port with real SQLite, and time in the hands of the test. */
export interface ProbeHost {
  readonly host: AgentHost;
  readonly clock: ManualClock;
  /** How many transactions were committed so far. */
  commits(): number;
}

/** Opens a host with one agent that does nothing, and hands out what that agent was given. */
export async function probeHost(): Promise<ProbeHost> {
  const clock = manualClock();
  let given: AgentHost | undefined;
  let commits = 0;
  class Probe {
    static readonly [hostable] = true;
    readonly [hosted]: HostedAgent;
    constructor(host: AgentHost) {
      given = host;
      const nothing = async () => {};
      this[hosted] = {
        start: nothing,
        request: async () => new Response(),
        connect: nothing,
        message: nothing,
        close: nothing,
        alarm: nothing,
        invoke: async () => "pong",
        admitChild: async () => ({}),
        drain: () => {},
        halt: () => {},
      };
    }
    ping(): string {
      return "pong";
    }
  }
  const storage = memoryStorage({ onCommit: () => commits++ });
  const host = createHost({ agents: { Probe }, storage, clock, idleMs: 1e9 });
  onTestFinished(() => host.stop());
  await host.getAgentByName(Probe, "one").ping();
  if (given === undefined) throw new Error("The agent was not made.");
  return { host: given, clock, commits: () => commits };
}
