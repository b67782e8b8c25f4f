// For tests of what is on the disk: the AgentHost that a real host gives to an agent, with its files in a directory.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createHost } from "perdure/node";
import { onTestFinished } from "vitest";
import { hostable, hosted } from "../../src/port.ts";
import type { AgentHost, HostedAgent } from "../../src/port.ts";

export interface DiskProbe {
  readonly host: AgentHost;
  readonly directory: string;
  /** Files below the directory in which these bytes stand, log files included. */
  filesWith(text: string): string[];
  /** Files of the agent that hold large bytes. */
  blobs(): string[];
}

export async function diskProbe(): Promise<DiskProbe> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "perdure-disk-"));
  let given: AgentHost | undefined;
  class Probe {
    static readonly [hostable] = true;
    readonly [hosted]: HostedAgent;
    constructor(host: AgentHost) {
      given = host;
      const nothing = async () => {};
      this[hosted] = {
        ...{ start: nothing, connect: nothing, message: nothing, close: nothing, alarm: nothing },
        request: async () => new Response(),
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
  const host = createHost({ agents: { Probe }, dir: directory, idleMs: 1e9 });
  onTestFinished(async () => {
    await host.stop();
    fs.rmSync(directory, { recursive: true, force: true });
  });
  await host.getAgentByName(Probe, "one").ping();
  if (given === undefined) throw new Error("The agent was not made.");
  const all = () =>
    fs
      .readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name));
  return {
    host: given,
    directory,
    filesWith: (text) => all().filter((file) => fs.readFileSync(file).includes(text)),
    blobs: () => all().filter((file) => /^[0-9a-f]{64}$/.test(path.basename(file))),
  };
}
