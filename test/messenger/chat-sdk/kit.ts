// A real host with an agent that is talked to through a published adapter.
import type { ToolSet } from "ai";
import { type AgentHost, Think } from "perdure";
import { defineMessengers, MessengerStateAgent } from "perdure/messengers";
import { chatSdkMessenger, type ChatSdkMessengerOptions } from "perdure/messengers/chat-sdk";
import { memoryStorage, serve } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, vi } from "vitest";
import { type Hook, NETWORKS, type NetworkName, type SdkNetwork } from "./networks.ts";
import { makeAdapter } from "./make-adapter.ts";

/** What tests do not wait for. */
export const AT_ONCE = { directMs: 0, groupMs: 0, perSecond: 1000 };

export interface SdkKitOptions extends Partial<ChatSdkMessengerOptions> {
  readonly script?: Script;
  readonly tools?: ToolSet;
  /** Changes what the adapter is made of. */
  readonly config?: Record<string, unknown>;
}

export async function openSdk(name: NetworkName, { script, tools = {}, config, ...more }: SdkKitOptions = {}) {
  const network: SdkNetwork = await NETWORKS[name]();
  const model = scriptedModel(script ?? (() => "Hello there."));
  const storage = memoryStorage();
  const lives: Think[] = [];
  const ports: AgentHost[] = [];
  const errors: string[] = [];
  class Talk extends Think {
    override workspaceTools = false as const;
    constructor(port: AgentHost) {
      super(port);
      lives.push(this);
      ports.push(port);
    }
    override getModel() {
      return model;
    }
    override getTools() {
      return tools;
    }
    override async getMessengers() {
      const adapter = await makeAdapter(name, { ...network.config, ...config });
      const terms = { coalesceMs: 0, allow: () => true, pace: AT_ONCE, verifyWebhook: false as const };
      return defineMessengers({ there: chatSdkMessenger({ adapter, ...terms, ...more }) });
    }
    override onError(error: unknown): void {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  }
  const open = () =>
    serve({
      ...{
        agents: { Talk, MessengerStateAgent },
        storage,
        port: 0,
        signals: false,
        idleMs: 1e9,
        graceMs: 0,
        log: false,
      },
    });
  let host = await open();
  onTestFinished(async () => {
    await host.stop();
    await network.close();
    expect(errors).toEqual([]);
  });
  return {
    ...{ network, model, lives, ports, errors },
    /** Delivers it, as the network does. */
    post: ({ headers, body }: Hook) =>
      fetch(`${host.url}/agents/talk/main/messengers/there/webhook`, { method: "POST", headers, body }),
    async deliver(hooks: readonly Hook[]): Promise<number[]> {
      const statuses: number[] = [];
      for (const hook of hooks) statuses.push((await this.post(hook)).status);
      return statuses;
    },
    texts: () => network.seen().map(({ text }) => text),
    holder: () => {
      const at = ports.findLastIndex(({ path }) => path.length > 1);
      const found = lives[at];
      if (found === undefined) throw new Error("Nobody holds a conversation.");
      return found;
    },
    until: (check: () => void) => vi.waitFor(check, { timeout: 15_000, interval: 10 }),
    async restart() {
      await host.stop();
      host = await open();
      // Nobody wakes an agent that is delivered to.
      await host.getAgentByName(Talk, "main").listDeliveries();
    },
  };
}
