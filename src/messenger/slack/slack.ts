import { PerdureError } from "../../base/error.ts";
import { isRecord, tryParseJson } from "../../base/json.ts";
import { checkNumbers, type OptionNames, refuseUnknown } from "../../base/known-options.ts";
import { type Channel, ChannelError, type Content, FILE_KEY, type Place, type Sent } from "../channel.ts";
import { type MessengerDefinition, type MessengerOptions, messenger, messengerOptionNames } from "../define.ts";
import { errorCodeOf, type SlackCall, slackCall, slackServers } from "./api.ts";
import { fetchFile, sendFile } from "./files.ts";
import { slackNames } from "./names.ts";
import { parseSlack, peopleIn, type SlackInput } from "./parse.ts";
import { fallbackText, plainSections, render } from "./render.ts";
import { isSigned } from "./signature.ts";
import { type Envelope, readSockets } from "./socket.ts";

/** What a Slack app is. */
export interface SlackMessengerOptions extends MessengerOptions {
  /** `xoxb-…`, from "OAuth & Permissions". */
  readonly botToken: string;
  /** `xapp-…`, with the scope `connections:write`: socket mode, which works without an address that others can reach. */
  readonly appToken?: string;
  /** From "Basic Information": Slack delivers to the agent's `path`, signed with it. Instead of `appToken`. */
  readonly signingSecret?: string;
  /** The slash command that stops what runs where it is given. Default `/stop`. */
  readonly stopCommand?: string;
  /** A Web API of your own, as in a test. Default `https://slack.com/api`. */
  readonly apiUrl?: string;
  /** How fast Slack is called. Default: every 1.2 s in a channel, with all threads in it, and 5 times a second in all. */
  readonly pace?: { readonly channelMs?: number; readonly perSecond?: number };
}

const optionNames: OptionNames<SlackMessengerOptions> = {
  ...messengerOptionNames,
  ...{ botToken: true, appToken: true, signingSecret: true, stopCommand: true, apiUrl: true, pace: true },
};

/** What a message may be changed to. A longer one could be made, and not be changed. */
const TEXT_LIMIT = 4_000;
const BUTTON_CHARS = 2_000;
const LABEL_CHARS = 75;
const FILE_BYTES = 1024 ** 3;
const CHANNEL_MS = 1_200;
const PER_SECOND = 5;
/** A connection that is dead without a word is used no longer. */
const RENEW_MS = 5 * 60_000;
/** What our key is called in a message. */
const METADATA = "perdure_message";
const PAGE = 200;
const MAX_PAGES = 10;
/** Clocks may be wrong by so much, and not by more. */
const CLOCKS_APART_S = 24 * 60 * 60;

/** A bot at Slack. @throws PerdureError `bad_config` for options that cannot work */
export function slackMessenger(options: SlackMessengerOptions): MessengerDefinition {
  refuseUnknown(options, optionNames, "slackMessenger()");
  const { botToken, appToken, signingSecret, stopCommand, apiUrl: _, pace, ...common } = options;
  const fail = (why: string) => new PerdureError("bad_config", `slackMessenger(): ${why}`);
  if (typeof botToken !== "string" || !/^xoxb-[\w-]+$/.test(botToken))
    throw fail("`botToken` must be the bot's own token, as in xoxb-123-abc.");
  if ((appToken === undefined) === (signingSecret === undefined))
    throw fail("give an `appToken` for socket mode, or a `signingSecret` for a webhook: one of the two.");
  if (appToken !== undefined && !/^xapp-[\w-]+$/.test(appToken))
    throw fail("`appToken` must be a token of the app, as in xapp-1-abc.");
  if (signingSecret === "") throw fail("`signingSecret` is empty: everybody would know it.");
  if (stopCommand !== undefined && !/^\/\S+$/.test(stopCommand)) throw fail("`stopCommand` must begin with /.");
  refuseUnknown(pace, { channelMs: true, perSecond: true }, "pace of slackMessenger()");
  checkNumbers("slackMessenger()", pace ?? {}, ["channelMs"], { least: 0 });
  checkNumbers("slackMessenger()", pace ?? {}, ["perSecond"]);
  return messenger(slackChannel(options), common);
}

function slackChannel(options: SlackMessengerOptions): Channel {
  const { botToken, appToken, signingSecret, apiUrl, pace = {}, stopCommand = "/stop" } = options;
  const servers = slackServers(botToken, apiUrl);
  const call = slackCall(servers, botToken);
  const names = slackNames(call);
  return {
    provider: "slack",
    limits: { text: TEXT_LIMIT, buttonData: BUTTON_CHARS, editable: true, file: FILE_BYTES },
    pace: {
      perPlaceMs: () => pace.channelMs ?? CHANNEL_MS,
      perSecond: pace.perSecond ?? PER_SECOND,
      // Slack counts by channel, whatever threads are in it.
      lane: ({ thread }) => thread.split(":", 2).join(":"),
    },
    async self(signal) {
      const me = await call("auth.test", {}, signal);
      if (typeof me.user_id !== "string") throw new ChannelError("unknown", "Slack (auth.test): it gave no id.");
      // A token of a whole organization is for all of its workspaces.
      const isOne = typeof me.team_id === "string" && me.is_enterprise_install !== true;
      return { id: me.user_id, userName: String(me.user), ...(isOne && { team: String(me.team_id) }) };
    },
    parse: (input, self) => (isInput(input) ? parseSlack(input, self) : []),
    complete: async (input, signal) =>
      isInput(input) ? { ...input, names: await names(peopleIn(input.payload), signal) } : input,
    async create(place, content, key, signal): Promise<Sent> {
      const metadata = { event_type: METADATA, event_payload: { key } };
      // Previews would fetch what the model wrote.
      const quiet = { unfurl_links: false, unfurl_media: false };
      const sent = await call(
        "chat.postMessage",
        { ...whereOf(place), ...contentOf(content), ...quiet, metadata },
        signal,
      );
      if (typeof sent.ts !== "string") throw new ChannelError("unknown", "Slack (chat.postMessage): it gave no name.");
      return { id: sent.ts };
    },
    async edit(place, ts, content, signal) {
      await call("chat.update", { channel: whereOf(place).channel, ts, ...contentOf(content) }, signal);
    },
    sendFile: (place, file, _key, signal) => sendFile(servers, call, whereOf(place), file, signal),
    fetchFile: (file, signal) => fetchFile(servers, call, botToken, file, signal),
    find: (place, key, since, signal) => find(call, place, key, since, signal),
    async acknowledge({ id }, text, signal) {
      // Slack shows by itself that a press was taken.
      if (text === "") return;
      const [channel, user, thread_ts] = id.split(":");
      const below = thread_ts === "" ? {} : { thread_ts };
      await call("chat.postEphemeral", { channel, user, ...below, text: fallbackText(text, TEXT_LIMIT) }, signal);
    },
    ...(appToken !== undefined && {
      account: `${servers.root} ${appToken}`,
      listen: (accept: (input: unknown) => Promise<void>, _cursor: unknown, signal: AbortSignal) =>
        readSockets(
          {
            call: slackCall(slackServers(appToken, apiUrl), appToken),
            take: (envelope) => take(envelope, accept, stopCommand),
            isOurs: (url) => isOurs(url, apiUrl),
            renewMs: RENEW_MS,
          },
          signal,
        ),
    }),
    ...(signingSecret !== undefined && {
      verify: async (request: Request, body: Uint8Array) =>
        (await isSigned(signingSecret, request, body)) ? undefined : new Response("Unauthorized", { status: 401 }),
      read: (request: Request, body: Uint8Array) => Promise.resolve().then(() => read(request, body, stopCommand)),
    }),
  };
}

function isInput(input: unknown): input is SlackInput {
  return isRecord(input) && isRecord(input.payload) && isRecord(input.names);
}

/** Over a socket: what came is taken, and Slack is told what it may show for it. */
async function take(
  { type, payload }: Envelope,
  accept: (input: unknown) => Promise<void>,
  stopCommand: string,
): Promise<object | undefined> {
  const body = type === "slash_commands" ? { ...payload, type: "command" } : payload;
  const answer = body.type === "command" ? commandAnswer(payload, stopCommand) : undefined;
  if (answer !== undefined) return answer;
  await accept(inputOf(body));
  return undefined;
}

/** Over HTTP: events are JSON; interactions and commands are forms. */
function read(
  request: Request,
  body: Uint8Array,
  stopCommand: string,
): { readonly input: SlackInput } | { readonly answer: Response } {
  const text = new TextDecoder().decode(body);
  if (request.headers.get("content-type")?.startsWith("application/x-www-form-urlencoded") === true) {
    const form = Object.fromEntries(new URLSearchParams(text));
    if (form.payload !== undefined) return { input: inputOf(recordOf(JSON.parse(form.payload))) };
    const answer = commandAnswer(form, stopCommand);
    return answer === undefined ? { input: inputOf({ ...form, type: "command" }) } : { answer: Response.json(answer) };
  }
  const payload = recordOf(JSON.parse(text));
  const isAsked = payload.type === "url_verification";
  return isAsked ? { answer: new Response(String(payload.challenge)) } : { input: inputOf(payload) };
}

function inputOf(payload: Record<string, unknown>): SlackInput {
  return { payload, names: {} };
}

function recordOf(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) throw new PerdureError("bad_input", "What Slack delivers must be an object.");
  return value;
}

/** Commands cannot be given in threads, so where many talk nobody knows what is meant. */
function commandAnswer({ command, channel_id: channel }: Record<string, unknown>, stop: string): object | undefined {
  const tell = (text: string) => ({ response_type: "ephemeral", text });
  if (command !== stop) return tell("I do not know this command.");
  if (String(channel).startsWith("D")) return undefined;
  return tell("Say `/stop` in the thread that is to stop, behind my name: commands cannot be given there.");
}

/** Slack says where its socket is. Who names a server of their own has it on the same machine. */
function isOurs({ protocol, hostname }: URL, apiUrl: string | undefined): boolean {
  if (apiUrl !== undefined) return /^wss?:$/.test(protocol) && hostname === new URL(apiUrl).hostname;
  return protocol === "wss:" && (hostname === "slack.com" || hostname.endsWith(".slack.com"));
}

/** Slack keeps our key with each message, and none with files. "unknown": what is there may not be read, or is too much. */
async function find(
  call: SlackCall,
  place: Place,
  key: string,
  since: number,
  signal: AbortSignal,
): Promise<Sent | "none" | "unknown"> {
  if (key.startsWith(FILE_KEY)) return "unknown";
  const { channel, thread_ts: root } = whereOf(place);
  const where =
    root === undefined ? { channel } : { channel, ts: root, oldest: place.replyTo ?? root, inclusive: true };
  const method = root === undefined ? "conversations.history" : "conversations.replies";
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = { ...where, include_all_metadata: true, limit: PAGE, cursor };
    const answer = await call(method, params, signal).catch((thrown: unknown) => {
      const isClosed = thrown instanceof ChannelError && thrown.kind === "refused";
      if (isClosed || errorCodeOf(thrown) === "missing_scope") return undefined;
      throw thrown;
    });
    if (answer === undefined) return "unknown";
    const messages = (Array.isArray(answer.messages) ? (answer.messages as unknown[]) : []).filter(isRecord);
    const found = messages.find(({ metadata }) => keyOf(metadata) === key);
    if (found !== undefined) return { id: String(found.ts) };
    cursor = isRecord(answer.response_metadata) ? answer.response_metadata.next_cursor : undefined;
    if (cursor === undefined || cursor === "") return "none";
    // The newest come first: what lies before is older than the call.
    const isOlder = Number(messages.at(-1)?.ts) < since / 1000 - CLOCKS_APART_S;
    if (root === undefined && isOlder) return "none";
  }
  return "unknown";
}

function keyOf(metadata: unknown): unknown {
  const { event_type: type, event_payload: given } = isRecord(metadata) ? metadata : {};
  const payload = typeof given === "string" ? tryParseJson(given) : given;
  return type === METADATA && isRecord(payload) ? payload.key : undefined;
}

function whereOf({ thread }: Place): { readonly channel: string; readonly thread_ts?: string } {
  const [, channel, root] = /^slack:([A-Z0-9]+)(?::(\d+\.\d+))?$/.exec(thread) ?? [];
  if (channel === undefined)
    throw new ChannelError(
      "refused",
      `"${thread}" is no place at Slack. They are called slack:C1, or slack:C1:1700000000.000100.`,
    );
  return { channel, ...(root !== undefined && { thread_ts: root }) };
}

function contentOf({ text, plain, buttons = [] }: Content) {
  if (text.length > TEXT_LIMIT)
    throw new ChannelError("refused", `Slack: a text of ${text.length} characters is too long for a message.`);
  const elements = plain === true ? [] : render(text);
  const shown = elements.length > 0 ? [{ type: "rich_text", elements }] : plainSections(text);
  const list = buttons.map(({ label, data }, i) => ({
    ...{ type: "button", action_id: `perdure_${i}`, value: data },
    text: { type: "plain_text", text: label.slice(0, LABEL_CHARS), emoji: false },
  }));
  return {
    blocks: [...shown, ...(list.length > 0 ? [{ type: "actions", elements: list }] : [])],
    // For notifications alone, and nothing in it calls anybody.
    ...{ text: fallbackText(text, TEXT_LIMIT), parse: "none", link_names: false },
  };
}
