// A real host with an agent that is talked to through a published adapter.
import { Readable } from "node:stream";
import type { ToolSet } from "ai";
import { type AgentHost, Think } from "perdure";
import { defineMessengers, MessengerStateAgent } from "perdure/messengers";
import { chatSdkMessenger, type ChatSdkMessengerOptions } from "perdure/messengers/chat-sdk";
import { memoryStorage, serve, subscribe } from "perdure/node";
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
  const events: { type: string; payload: unknown }[] = [];
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
  const forget = subscribe("*", (event) => {
    if (event.type.endsWith("file-left")) events.push(event);
  });
  let host = await open();
  onTestFinished(async () => {
    await host.stop();
    forget();
    await network.close();
    expect(errors).toEqual([]);
  });
  return {
    ...{ network, model, lives, ports, errors, events },
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

const DISCORD = "https://discord.com/api/v10";

/** As above. Addresses of files that adapters do not let anybody change lead to the fake. */
export async function openWithFiles(name: NetworkName, options: SdkKitOptions = {}) {
  const opens = (url: string, authorization?: string) => {
    const bytes = kit.network.opens?.(url, authorization);
    if (bytes === undefined) throw new Error(`Nothing can be read from ${url}`);
    return bytes;
  };
  const fileTransport = (url: URL, _signal: AbortSignal, headers: Record<string, string> = {}) =>
    Promise.resolve().then(() =>
      Object.assign(Readable.from([opens(url.href, headers.authorization)]), { statusCode: 200, headers: {} }),
    );
  const config = { slack: { fileTransport }, discord: { apiUrl: DISCORD }, telegram: {}, github: {} }[name];
  if (name === "discord") {
    const { DiscordAdapter } = await import("@chat-adapter/discord");
    const reads = DiscordAdapter.prototype as unknown as { downloadAttachment(url: string): Promise<Uint8Array> };
    const real = globalThis.fetch;
    const stubs = [
      vi.spyOn(reads, "downloadAttachment").mockImplementation((url) => Promise.resolve().then(() => opens(url))),
      vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
        const here = typeof input === "string" ? input.replace(DISCORD, String(kit.network.config.apiUrl)) : input;
        return real(here, init);
      }),
    ];
    onTestFinished(() => stubs.forEach((stub) => stub.mockRestore()));
  }
  const kit = await openSdk(name, { ...options, config });
  return kit;
}

/** What the model was sent by a call, bytes as their length. */
export function prompted({ model }: { readonly model: ReturnType<typeof scriptedModel> }, call = -1): unknown[] {
  const user = model.calls.at(call)?.prompt.findLast(({ role }) => role === "user");
  const content = (user?.content ?? []) as { type: string; text?: string; mediaType?: string; data?: unknown }[];
  return content.map((part) => (part.type === "text" ? part.text : [part.mediaType, sizeOf(part.data)]));
}

function sizeOf(data: unknown): unknown {
  const inner = (data as { data?: unknown } | undefined)?.data ?? data;
  if (inner instanceof Uint8Array) return inner.length;
  return typeof inner === "string" ? Buffer.from(inner.replace(/^data:[^,]*,/, ""), "base64").length : inner;
}
