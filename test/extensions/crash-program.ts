// An agent that keeps extensions, for the crash matrix. The driver calls its methods.
import type { AgentHost } from "perdure";
import type { HostedAgentClass } from "perdure/host";
import { ExtensionManager } from "../../src/toolbox/extension/manager.ts";
import { createHost } from "../../src/host/node/create-host.ts";
import { report } from "../../src/testing/crash/child.ts";
import { obey, reportEvents, Watched, watchedOptions } from "../crash/watched-host.ts";

const source = (version: string) =>
  `({ tools: { version: { description: "Says its version.", execute: () => ${JSON.stringify(version)} } } })`;

class Keeper extends Watched {
  readonly #manager: ExtensionManager;

  constructor(port: AgentHost) {
    super(port);
    const failed = (error: unknown) => report({ type: "failed", error: String(error) });
    this.#manager = new ExtensionManager({ loader: true, host: port, failed });
  }

  async load(name: string, version: string): Promise<string> {
    const permissions = version === "1" ? {} : { messages: "read" as const };
    return (await this.#manager.load({ name, version, permissions }, source(version))).hash;
  }

  unload(name: string): Promise<boolean> {
    return this.#manager.unload(name);
  }

  /** What is loaded, and what the code of each says of itself. */
  async result(): Promise<{ name: string; version: string; says: unknown; mayMore: boolean }[]> {
    const tools = this.#manager.getTools();
    return Promise.all(
      this.#manager.list().map(async ({ name, version }) => ({
        ...{ name, version },
        says: await tools[`${name}_version`]?.execute?.({}, { toolCallId: "c", messages: [], context: {} } as never),
        mayMore: this.#manager.newWishes({ name, version, permissions: { messages: "read" } }).length === 0,
      })),
    );
  }
}

const agents: Record<string, HostedAgentClass> = { Keeper };
reportEvents();
obey(createHost({ agents, ...watchedOptions() }), agents);
