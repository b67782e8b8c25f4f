import { PerdureError } from "../../base/error.ts";
import { tryParseJson } from "../../base/json.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import { yesOrNo } from "../../base/yes-or-no.ts";
import type { HostedAgentClass } from "../../port.ts";
import {
  type Channel,
  ChannelError,
  type ChannelRoom,
  type Content,
  FILE_KEY,
  type FileRef,
  type MessengerEvent,
  type Place,
  type SentFile,
} from "../channel.ts";
import { type MessengerDefinition, type MessengerOptions, messenger, messengerOptionNames } from "../define.ts";
import type { ChatSdkAdapter } from "./adapter.ts";
import { Bridge } from "./bridge.ts";
import { postable } from "./content.ts";
import { channelErrorOf, type Op } from "./errors.ts";
import { fetchAttachment, postableFile, postedFileId } from "./files.ts";
import { type Network, networkOf } from "./networks.ts";
import { chatSdkState } from "./state.ts";

/** What a network can do, where that is not known of its adapter. */
export interface ChatSdkCapabilities {
  /** Whether a message can be changed. If not, an answer is sent when it is whole. */
  readonly canEditMessages?: boolean;
  /** The longest text of a message, in UTF-16 units of the Markdown. What is longer is several messages. */
  readonly maxMessageLength?: number;
  /** Whether it has buttons. If not, questions are answered in words. */
  readonly supportsActions?: boolean;
  /** The largest file that can be sent, in bytes; 0: none can, and people read that there is one. */
  readonly maxFileBytes?: number;
}

/** An adapter of the Chat SDK, and what the app wants of it. */
export interface ChatSdkMessengerOptions extends MessengerOptions {
  /** Made for webhooks: it must not read by itself. */
  readonly adapter: ChatSdkAdapter;
  /** Judges webhook deliveries before the adapter does, and may answer. `false`: the adapter alone judges, by its own secret. */
  readonly verifyWebhook:
    | false
    | ((request: Request, body: Uint8Array) => boolean | Response | Promise<boolean | Response>);
  /** What identities begin with. Default: the adapter's name. */
  readonly provider?: string;
  /** What the agent is called there. Default: what the adapter says. */
  readonly userName?: string;
  /** What the network can do, where it is not known here, or is known better. */
  readonly capabilities?: ChatSdkCapabilities;
  /** Whether the adapter retries failed calls, so that a message may appear twice. Default: as known, else true. */
  readonly retries?: boolean;
  /** How fast the network is called. Default: as it is known of the network. */
  readonly pace?: { readonly directMs?: number; readonly groupMs?: number; readonly perSecond?: number };
  /** Holds what the adapter keeps, in children: `MessengerStateAgent`. Default: the agent itself does. */
  readonly stateAgent?: HostedAgentClass;
  /** Which child holds what is kept under a name. Default: one for all. */
  readonly shard?: (key: string) => string;
}

const ownNames = namesOf<Omit<ChatSdkMessengerOptions, keyof MessengerOptions>>()(
  "adapter verifyWebhook provider userName capabilities retries pace stateAgent shard",
);
const optionNames = { ...messengerOptionNames, ...ownNames };

const SHARD = "messenger-state";
const ACTION_BYTES = 40;
/** How far back is looked for a message that may have been made. */
const LOOKED_AT = 100;

/**
 * A messenger over an adapter of the Chat SDK (`@chat-adapter/*`): a network that this package has no channel of its own for.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function chatSdkMessenger(options: ChatSdkMessengerOptions): MessengerDefinition {
  refuseUnknown(options, optionNames, "chatSdkMessenger()");
  const fail = (why: string) => new PerdureError("bad_config", `chatSdkMessenger(): ${why}`);
  const { adapter, verifyWebhook, capabilities, retries, pace, stateAgent, shard, delivery } = options;
  if (!isAdapter(adapter))
    throw fail("`adapter` must be an adapter of the Chat SDK, as createSlackAdapter() makes one.");
  if (verifyWebhook !== false && typeof verifyWebhook !== "function")
    throw fail("`verifyWebhook` must be a function, or false: the adapter alone judges what is delivered.");
  const mode = "mode" in adapter ? adapter.mode : undefined;
  if (mode === "polling" || mode === "auto" || mode === "socket")
    throw fail(`the adapter would read by itself. Make it with \`mode: "webhook"\`, not "${mode}".`);
  if (shard !== undefined && stateAgent === undefined)
    throw fail("`shard` is for `stateAgent`: give the class of the children too.");
  const abilities = { canEditMessages: true, maxMessageLength: true, supportsActions: true, maxFileBytes: true };
  refuseUnknown(capabilities, abilities, "capabilities");
  refuseUnknown(pace, { directMs: true, groupMs: true, perSecond: true }, "pace");
  const known = networkOf(adapter);
  const network: Network = {
    ...known,
    ...pace,
    text: capabilities?.maxMessageLength ?? known.text,
    editable: capabilities?.canEditMessages ?? known.editable,
    buttonData:
      capabilities?.supportsActions === undefined
        ? known.buttonData
        : capabilities.supportsActions
          ? known.buttonData || ACTION_BYTES
          : 0,
    file: capabilities?.maxFileBytes ?? known.file,
    retries: retries ?? known.retries,
  };
  const common = Object.fromEntries(Object.entries(options).filter(([name]) => name in messengerOptionNames));
  return {
    ...messenger(chatSdkChannel(options, network), {
      ...common,
      ...(network.whole === true && { delivery: { first: "whole", ...delivery } }),
    }),
    ...(network.retries && { maybeTwice: "always" }),
  };
}

function isAdapter(value: unknown): value is ChatSdkAdapter {
  const has = (name: string) => typeof (value as Record<string, unknown>)[name] === "function";
  return typeof value === "object" && value !== null && ["initialize", "handleWebhook", "postMessage"].every(has);
}

function chatSdkChannel(options: ChatSdkMessengerOptions, network: Network): Channel {
  const { adapter, verifyWebhook, stateAgent, shard = () => SHARD } = options;
  const provider = options.provider ?? adapter.name;
  const userName = () => (options.userName ?? adapter.userName).replace(/^@/, "");
  let opened: Bridge | undefined;
  const bridge = (): Bridge => {
    if (opened === undefined) throw new PerdureError("bad_state", "The messenger of this adapter is not open.");
    return opened;
  };
  /** One call of the adapter. It takes no signal: who gave up before is not called for. */
  const call = async <T>(op: Op, signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    try {
      await bridge().ready();
    } catch (thrown) {
      throw new ChannelError(
        "unsent",
        `${provider}: the adapter is not ready: ${channelErrorOf(provider, op, thrown).message}`,
      );
    }
    try {
      return await work();
    } catch (thrown) {
      throw channelErrorOf(provider, op, thrown);
    }
  };
  const post = ({ thread, replyTo }: Place, message: object) => {
    const reply =
      network.replies === true && replyTo !== undefined ? adapter.reply?.(thread, replyTo, message) : undefined;
    return reply ?? adapter.postMessage(thread, message);
  };
  const canFetch =
    adapter.rehydrateAttachment !== undefined || adapter.fetchMessage !== undefined || network.readAgain !== undefined;
  return {
    provider,
    limits: {
      ...{ text: network.text, buttonData: network.buttonData, editable: network.editable },
      ...(network.file > 0 && { file: network.file }),
    },
    pace: { perPlaceMs: ({ dm }) => (dm ? network.directMs : network.groupMs), perSecond: network.perSecond },
    open(room: ChannelRoom) {
      const ask = stateAgent === undefined ? () => room.state : shards(room, stateAgent, shard);
      opened = new Bridge({ adapter, network, userName }, chatSdkState(ask));
    },
    async self() {
      await bridge().ready();
      return { id: adapter.botUserId ?? "", userName: userName() };
    },
    parse: (input) => [input as MessengerEvent],
    async verify(request, body) {
      if (verifyWebhook === false) return undefined;
      const said = await verifyWebhook(request, body);
      if (said instanceof Response) return said;
      return yesOrNo(said, "verifyWebhook()") ? undefined : new Response("Unauthorized", { status: 401 });
    },
    read: async (request, body, accept) => ({ answer: await bridge().receive(request, body, accept) }),
    create: (place, content, key, signal) =>
      call("create", signal, async () => {
        const message = postable(
          network,
          content,
          place.thread,
          network.marks === true ? `\n\n<!-- ${markOf(key)} -->` : "",
        );
        const { id } = await post(place, message);
        return { id };
      }),
    ...(network.file > 0 && {
      sendFile: (place: Place, file: SentFile, key: string, signal: AbortSignal) =>
        call("create", signal, async () => ({ id: postedFileId(await post(place, postableFile(file)), key) })),
    }),
    ...(canFetch && {
      fetchFile: (file: FileRef, signal: AbortSignal) =>
        call("fetch", signal, () => fetchAttachment({ adapter, network }, file, signal)),
    }),
    edit: (place, id, content, signal) =>
      call("edit", signal, async () => {
        const change = (shown: Content) =>
          adapter.editMessage(place.thread, id, postable(network, shown, place.thread));
        try {
          await change(content);
        } catch (thrown) {
          // A change may be made again, unlike a message.
          if (content.plain === true || channelErrorOf(provider, "edit", thrown).kind !== "format") throw thrown;
          await change({ ...content, plain: true });
        }
      }),
    ...(network.marks === true &&
      adapter.fetchMessages !== undefined && {
        find: (place: Place, key: string, _since: number, signal: AbortSignal) =>
          call("create", signal, async () => {
            // The mark is in texts alone.
            if (key.startsWith(FILE_KEY)) return "unknown" as const;
            const found = await adapter.fetchMessages?.(place.thread, { limit: LOOKED_AT, direction: "backward" });
            const mark = markOf(key);
            const one = found?.messages.find(({ raw }) => JSON.stringify(raw).includes(mark));
            return one === undefined ? ("none" as const) : { id: one.id };
          }),
      }),
    ...(adapter.postEphemeral !== undefined && {
      acknowledge: ({ id }: { readonly id: string }, text: string, signal: AbortSignal) =>
        call("create", signal, async () => {
          const who = tryParseJson(id);
          if (text === "" || !Array.isArray(who)) return;
          await adapter.postEphemeral?.(String(who[0]), String(who[1]), { raw: text }, { fallbackToDM: false });
        }),
    }),
  };
}

/** Each key is asked of the child that its shard names. */
function shards(room: ChannelRoom, stateAgent: HostedAgentClass, shard: (key: string) => string) {
  const calls = new Map<string, ReturnType<ChannelRoom["stateIn"]>>();
  const named = (name: string) => {
    const known = calls.get(name) ?? room.stateIn(stateAgent, name);
    calls.set(name, known);
    return known;
  };
  // A class that the host does not know is said at the start.
  room.stateIn(stateAgent, SHARD);
  return (key: string) => named(shard(key));
}

const markOf = (key: string) => `perdure:${key}`;
