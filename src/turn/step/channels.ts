import type { ToolSet } from "ai";
import { PerdureError } from "../../base/error.ts";
import type { AgentHost } from "../../port.ts";
import { deliveryOfTurn, WEB } from "../../store/delivery.ts";
import { readTurn } from "../../store/turn.ts";
import type { ReplyAttachment } from "../../tool/action-attachment.ts";

/** Where the turn that runs was asked for. */
export interface ChannelContext {
  /** The name of a messenger, or `web`: a client of the agent. */
  readonly channelId: string;
  readonly kind: "web" | "messenger";
  readonly thread?: string;
}

/** What a messenger shows for something attached to an answer: a text, a workspace file, or the app's own bytes. */
export type RenderedAttachment =
  | string
  | { readonly path: string; readonly name?: string; readonly mediaType?: string }
  | { readonly bytes: Uint8Array; readonly name: string; readonly mediaType: string };

/** What holds for turns of one channel. What `beforeTurn` says has the last word. */
export interface ChannelPolicy {
  /** Stands before the system prompt. Asked in each turn. */
  readonly instructions?: string | ((context: ChannelContext) => string | Promise<string>);
  /** Those of the tools that are offered there. It can leave some out, and add none. */
  readonly tools?: (all: ToolSet) => ToolSet;
  /** The most model calls of a turn. Default: that of the agent. */
  readonly maxTurns?: number;
  /**
   * How an action's attachment looks there, as its own message below the answer; undefined: not shown. May be slow and be asked
   * again; if it throws, the place says that it could not be sent.
   */
  readonly renderAttachment?: (
    attachment: ReplyAttachment,
  ) => RenderedAttachment | undefined | Promise<RenderedAttachment | undefined>;
}

/** By channels: `web`, and the names of `getMessengers()`. */
export type Channels = Readonly<Record<string, ChannelPolicy>>;

/** Whoever says what holds for its channels. */
export interface ChannelHooks {
  configureChannels(): Channels;
}

/** Of a turn that code asks for, and that is delivered nowhere: none. */
export function channelOfTurn(host: AgentHost, turnId: string | undefined): ChannelContext | undefined {
  if (turnId === undefined || host.blank) return undefined;
  const row = deliveryOfTurn(host, turnId);
  if (row !== undefined) return { channelId: row.messenger, kind: "messenger", thread: row.thread };
  const trigger = readTurn(host, turnId)?.trigger;
  if (trigger === undefined || trigger === "server" || trigger === "submission") return undefined;
  return { channelId: WEB, kind: "web" };
}

/** What a turn is made of, as its channel wants it. */
interface TurnChannel {
  readonly maxTurns: number | undefined;
  prompt(prompt: string): string;
  tools(all: ToolSet): ToolSet;
}

/** What holds for a turn. A class that says nothing of channels is not asked. */
export async function policyOfTurn(
  { policy, silent, host }: { readonly policy: ChannelHooks; readonly silent: ChannelHooks; readonly host: AgentHost },
  turnId: string,
): Promise<TurnChannel> {
  const channel = policy.configureChannels === silent.configureChannels ? undefined : channelOfTurn(host, turnId);
  const own = channel && policy.configureChannels()[channel.channelId];
  const { instructions, tools, maxTurns } = own ?? {};
  const words =
    typeof instructions === "function" && channel !== undefined ? await instructions(channel) : (instructions ?? "");
  return {
    maxTurns,
    prompt: (prompt) => (words === "" ? prompt : `${String(words)}\n\n${prompt}`),
    tools(all) {
      if (tools === undefined) return all;
      const wanted = tools(all);
      return Object.fromEntries(Object.entries(all).filter(([name]) => Object.hasOwn(wanted, name)));
    },
  };
}

/** @throws PerdureError `bad_config` for a channel that there is not */
export function checkChannels(agent: ChannelHooks, messengers: readonly string[]): void {
  for (const id of Object.keys(agent.configureChannels())) {
    if (id === WEB || messengers.includes(id)) continue;
    const known = [WEB, ...messengers].map((one) => `"${one}"`).join(", ");
    throw new PerdureError("bad_config", `configureChannels() names "${id}", which is no channel. There are ${known}.`);
  }
}
