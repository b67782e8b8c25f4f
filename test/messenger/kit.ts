// A real host with a Think agent that is talked to at a messenger: one in memory, or the fake Slack or Telegram. The model is a script.
import type { ToolSet } from "ai";
import { type AgentHost, Think } from "perdure";
import { defineMessengers, messenger, type Delivery, type MessengerOptions, type Messengers } from "perdure/messengers";
import { slackMessenger, type SlackMessengerOptions } from "perdure/messengers/slack";
import { telegramMessenger, type TelegramMessengerOptions } from "perdure/messengers/telegram";
import { memoryStorage, serve, type ServedHost, subscribe } from "perdure/node";
import {
  type FakeSlack,
  fakeSlack,
  type FakeSlackOptions,
  type FakeTelegram,
  fakeTelegram,
  type FakeTelegramOptions,
  manualClock,
  type ManualClock,
} from "perdure/testing";
import {
  memoryChannel,
  type MemoryNetwork,
  type MemoryNetworkOptions,
  type Script,
  scriptedModel,
} from "perdure/testing";
import { expect, onTestFinished, vi } from "vitest";

export const ADA = { id: "7", name: "Ada" };
export const BEN = { id: "8", name: "Ben" };
export const DM = "memory:7";

interface HostOptions {
  readonly script?: Script;
  readonly tools?: ToolSet;
  readonly manual?: boolean;
  /** Of the host, instead of a memory without bounds. */
  readonly host?: Partial<Parameters<typeof serve>[0]>;
  /** Besides the one that is talked to. */
  readonly agents?: Readonly<Record<string, new (host: AgentHost) => Think>>;
  readonly make?: (Base: new (host: AgentHost) => Think) => new (host: AgentHost) => Think;
}

export interface KitOptions extends MessengerOptions, HostOptions {
  readonly network?: MemoryNetworkOptions;
}

export interface HostKit {
  readonly host: ServedHost;
  readonly clock: ManualClock;
  readonly lives: Think[];
  readonly ports: AgentHost[];
  readonly errors: string[];
  readonly events: { type: string; payload: unknown }[];
  model: ReturnType<typeof scriptedModel>;
  /** The agent that holds the conversation of a thread. */
  holder(thread?: string): Think;
  until(check: () => void): Promise<void>;
  deliveries(): Delivery[];
  restart(): Promise<void>;
}

export interface Kit extends HostKit {
  readonly network: MemoryNetwork;
  texts(thread?: string): string[];
}

export interface TelegramKit extends HostKit {
  readonly telegram: FakeTelegram;
  texts(chat?: number): string[];
}

export interface SlackKit extends HostKit {
  readonly slack: FakeSlack;
  texts(channel?: string): string[];
}

/** Opens a host and wakes the agent, which listens. */
async function openHost(
  { script, tools = {}, manual, make, agents, host: own }: HostOptions,
  there: {
    readonly messengers: () => Messengers;
    readonly id: string;
    readonly dm: string;
    readonly clock: ManualClock;
  },
): Promise<HostKit> {
  const { clock } = there;
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
      return defineMessengers(there.messengers());
    }
    override onError(error: unknown): void {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  }
  const Talk = make?.(Base) ?? Base;
  const open = () =>
    serve({
      ...{ agents: { Talk, ...agents }, storage, port: 0, signals: false, idleMs: 1e9, graceMs: 0, log: false },
      ...(manual === true && { clock }),
      ...own,
    });
  const forget = subscribe("*", (event) => {
    if (/^(delivery|messenger|chat:request)/.test(event.type)) events.push(event);
  });
  let host = await open();
  await host.getAgentByName(Talk, "main").listDeliveries();
  onTestFinished(async () => {
    await host.stop();
    forget();
    expect(errors).toEqual([]);
  });
  const kit: HostKit = {
    ...{ clock, lives, ports, errors, events, model },
    get host() {
      return host;
    },
    holder(thread = there.dm) {
      const name = `messenger:${there.id}:${encodeURIComponent(thread)}`;
      const at = ports.findLastIndex(({ path }) => path.at(-1)?.name === name);
      const found = lives[at];
      if (found === undefined) throw new Error(`Nobody holds ${thread}.`);
      return found;
    },
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

/** An agent at a messenger in memory. */
export async function openKit(options: KitOptions = {}): Promise<Kit> {
  const {
    script: _1,
    network: networkOptions,
    tools: _2,
    manual: _3,
    make: _4,
    agents: _5,
    host: _6,
    ...more
  } = options;
  const network = memoryChannel(networkOptions);
  const terms = { coalesceMs: 0, allow: () => true, ...more };
  const messengers = () => ({ memory: messenger(network.channel(), terms) });
  const kit = await openHost(options, { messengers, id: "memory", dm: DM, clock: manualClock() });
  const texts = (thread = DM) => network.seen(thread, "agent").map(({ text }) => text);
  return Object.defineProperties({ network, texts }, Object.getOwnPropertyDescriptors(kit)) as Kit;
}

export const ADA_THERE = { id: 7, first_name: "Ada" };
export const BEN_THERE = { id: 8, first_name: "Ben" };
/** What tests do not wait for. */
export const AT_ONCE = { directMs: 0, groupMs: 0, perSecond: 1000 };

/** An agent at the fake Telegram. */
export async function openTelegram(
  options: Partial<TelegramMessengerOptions> & HostOptions & { readonly fake?: FakeTelegramOptions } = {},
): Promise<TelegramKit> {
  const { script: _1, fake, tools: _2, manual: _3, make: _4, agents: _5, host: _6, ...more } = options;
  const clock = manualClock();
  const telegram = await fakeTelegram({ ...(options.manual === true && { now: () => clock.now() }), ...fake });
  onTestFinished(() => telegram.close());
  const { token, url: apiUrl } = telegram;
  const messengers = () => ({
    telegram: telegramMessenger({ token, apiUrl, coalesceMs: 0, allow: () => true, pace: AT_ONCE, ...more }),
  });
  const kit = await openHost(options, { messengers, id: "telegram", dm: "telegram:7", clock });
  const texts = (chat = 7) => telegram.seen(chat, "bot").map(({ text }) => text);
  return Object.defineProperties({ telegram, texts }, Object.getOwnPropertyDescriptors(kit)) as TelegramKit;
}

export const ADA_AT_SLACK = { id: "U7", name: "Ada" };
export const BEN_AT_SLACK = { id: "U8", name: "Ben" };

/** An agent at the fake Slack, by socket mode, or with `signingSecret` by a webhook. */
export async function openSlack(
  options: Partial<SlackMessengerOptions> & HostOptions & { readonly fake?: FakeSlackOptions } = {},
): Promise<SlackKit> {
  const { script: _1, fake, tools: _2, manual: _3, make: _4, agents: _5, host: _6, ...more } = options;
  const clock = manualClock();
  const slack = await fakeSlack({ ...(options.manual === true && { now: () => clock.now() }), ...fake });
  onTestFinished(() => slack.close());
  const { botToken, appToken, url: apiUrl } = slack;
  const way = more.signingSecret === undefined ? { appToken } : {};
  const pace = { channelMs: 0, perSecond: 1000 };
  const messengers = () => ({
    slack: slackMessenger({ botToken, ...way, apiUrl, coalesceMs: 0, allow: () => true, pace, ...more }),
  });
  const kit = await openHost(options, { messengers, id: "slack", dm: "slack:D7", clock });
  if (more.signingSecret !== undefined) slack.webhook = `${kit.host.url}/agents/talk/main/messengers/slack/webhook`;
  const texts = (channel = "D7") => slack.seen(channel, "bot").map(({ text }) => text);
  return Object.defineProperties({ slack, texts }, Object.getOwnPropertyDescriptors(kit)) as SlackKit;
}
