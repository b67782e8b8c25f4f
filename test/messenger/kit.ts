// A real host with a Think agent that is talked to at a messenger in memory. The model is a script.
import type { ToolSet } from "ai";
import { type AgentHost, Think } from "perdure";
import { defineMessengers, messenger, type Delivery, type MessengerOptions } from "perdure/messengers";
import { memoryStorage, serve, type ServedHost, subscribe } from "perdure/node";
import { manualClock, type ManualClock, MemoryNetwork, type MemoryNetworkOptions } from "perdure/testing";
import type { Script } from "perdure/testing";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, vi } from "vitest";

export const ADA = { id: "7", name: "Ada" };
export const BEN = { id: "8", name: "Ben" };
export const DM = "memory:7";

export interface KitOptions extends MessengerOptions {
  readonly script?: Script;
  readonly network?: MemoryNetworkOptions;
  readonly tools?: ToolSet;
  readonly manual?: boolean;
  readonly make?: (Base: new (host: AgentHost) => Think) => new (host: AgentHost) => Think;
}

export interface Kit {
  readonly network: MemoryNetwork;
  readonly host: ServedHost;
  readonly clock: ManualClock;
  readonly lives: Think[];
  readonly ports: AgentHost[];
  readonly errors: string[];
  readonly events: { type: string; payload: unknown }[];
  model: ReturnType<typeof scriptedModel>;
  /** The agent that holds the conversation of a thread. */
  holder(thread?: string): Think;
  texts(thread?: string): string[];
  until(check: () => void): Promise<void>;
  deliveries(): Delivery[];
  restart(): Promise<void>;
}

/** Opens a host and wakes the agent, which listens. */
export async function openKit(options: KitOptions = {}): Promise<Kit> {
  const { script, network: networkOptions, tools = {}, manual, make, ...more } = options;
  const network = new MemoryNetwork(networkOptions);
  const clock = manualClock();
  const storage = memoryStorage();
  const lives: Think[] = [];
  const ports: AgentHost[] = [];
  const errors: string[] = [];
  const events: { type: string; payload: unknown }[] = [];
  const model = scriptedModel(script ?? (() => "Hello there."));
  class Base extends Think {
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
    override getMessengers() {
      return defineMessengers({ memory: messenger(network.channel(), { coalesceMs: 0, allow: () => true, ...more }) });
    }
    override onError(error: unknown): void {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  }
  const Talk = make?.(Base) ?? Base;
  const open = () =>
    serve({
      agents: { Talk },
      storage,
      port: 0,
      signals: false,
      idleMs: 1e9,
      graceMs: 0,
      log: false,
      ...(manual === true && { clock }),
    });
  const forget = subscribe("*", (event) => {
    if (/^(delivery|messenger|chat:request)/.test(event.type)) events.push(event);
  });
  let host = await open();
  const wake = async () => void (await host.getAgentByName(Talk, "main").listDeliveries());
  await wake();
  onTestFinished(async () => {
    await host.stop();
    forget();
    expect(errors).toEqual([]);
  });
  const kit: Kit = {
    ...{ network, clock, lives, ports, errors, events, model },
    get host() {
      return host;
    },
    holder(thread = DM) {
      const name = `messenger:memory:${encodeURIComponent(thread)}`;
      const at = ports.findLastIndex(({ path }) => path.at(-1)?.name === name);
      const found = lives[at];
      if (found === undefined) throw new Error(`Nobody holds ${thread}.`);
      return found;
    },
    texts: (thread = DM) => network.seen(thread, "agent").map(({ text }) => text),
    until: async (check) => {
      await vi.waitFor(
        async () => {
          if (manual === true) await clock.advance(50);
          check();
        },
        { timeout: 10_000, interval: 10 },
      );
    },
    deliveries: () => kit.holder().listDeliveries(),
    async restart() {
      await host.stop();
      host = await open();
    },
  };
  return kit;
}
