import { PerdureError } from "../../base/error.ts";
import { sha256 } from "../../base/hash.ts";
import { isRecord } from "../../base/json.ts";
import { checkNumbers, type OptionNames, refuseUnknown } from "../../base/known-options.ts";
import { backgroundClock, sleep, within } from "../../base/time.ts";
import { yesOrNo } from "../../base/yes-or-no.ts";
import { type Channel, ChannelError, type Content, type Place, type Sent, type SentFile } from "../channel.ts";
import { type MessengerDefinition, type MessengerOptions, messenger, messengerOptionNames } from "../define.ts";
import { telegramApi, type TelegramApi } from "./api.ts";
import { ALLOWED_UPDATES, parseUpdate, threadOf } from "./parse.ts";
import { render } from "./render.ts";

/** What a Telegram bot is. */
export interface TelegramMessengerOptions extends MessengerOptions {
  /** From @BotFather. */
  readonly token: string;
  /** The bot's name, without @. Default: Telegram is asked. */
  readonly userName?: string;
  /**
   * `polling`: asks Telegram, so no public address is needed; set explicitly, it also removes a leftover webhook. `webhook`:
   * Telegram delivers to the agent's `path`. Default: `webhook` where `secretToken` or `verifyWebhook` is given, else `polling`.
   */
  readonly mode?: "polling" | "webhook";
  /** What Telegram sends with each delivery to the webhook. */
  readonly secretToken?: string;
  /** Judges deliveries to the webhook in another way. `false`: whoever knows the address is believed. */
  readonly verifyWebhook?: false | ((request: Request, body: Uint8Array) => boolean | Promise<boolean>);
  /** Tells Telegram where the webhook is, whenever the agent starts: its whole public address. */
  readonly register?: { readonly url: string };
  /** A Bot API server of your own. Default `https://api.telegram.org`. */
  readonly apiUrl?: string;
  /** Whether a reply to the agent counts as naming it. Default true. */
  readonly mentionOnReply?: boolean;
  /** How fast Telegram is called. Default: every 1.1 s where two talk, every 3.1 s in a group, 25 times a second in all. */
  readonly pace?: { readonly directMs?: number; readonly groupMs?: number; readonly perSecond?: number };
}

const optionNames: OptionNames<TelegramMessengerOptions> = {
  ...messengerOptionNames,
  ...{ token: true, userName: true, mode: true, secretToken: true, verifyWebhook: true, register: true, apiUrl: true },
  ...{ mentionOnReply: true, pace: true },
};

const TEXT_LIMIT = 4096;
const BUTTON_BYTES = 64;
const DIRECT_MS = 1_100;
const GROUP_MS = 3_100;
const PER_SECOND = 25;
const POLL_SECONDS = 30;
/** Until what is not stored is asked for again, with what others have said since. */
const FIRST_AGAIN_MS = 500;
const LONGEST_AGAIN_MS = 2_000;
const MAX_TOLD = 200;
/** What bots may send. */
const FILE_BYTES = 50 * 1024 * 1024;
/** Larger pictures, and those of other kinds, are documents. */
const PHOTO_BYTES = 10 * 1024 * 1024;

/** A bot at Telegram. @throws PerdureError `bad_config` for options that cannot work */
export function telegramMessenger(options: TelegramMessengerOptions): MessengerDefinition {
  refuseUnknown(options, optionNames, "telegramMessenger()");
  const { token, userName: _1, mode: _2, secretToken: _3, verifyWebhook: _4, register: _5, ...rest } = options;
  const { apiUrl, mentionOnReply: _6, pace, ...common } = rest;
  const fail = (why: string) => new PerdureError("bad_config", `telegramMessenger(): ${why}`);
  if (typeof token !== "string" || !/^\d+:[\w-]+$/.test(token))
    throw fail("`token` must be what @BotFather gave you, as in 123456:ABC-def.");
  const { secretToken, verifyWebhook, register, mode } = options;
  if (secretToken !== undefined && !/^[\w-]{1,256}$/.test(secretToken))
    throw fail("`secretToken` must be 1 to 256 letters, digits, - and _.");
  if (mode === "webhook" && secretToken === undefined && verifyWebhook === undefined)
    throw fail("a webhook needs `secretToken`, or `verifyWebhook`; `verifyWebhook: false` believes everybody.");
  if (mode !== undefined && mode !== "polling" && mode !== "webhook")
    throw fail('`mode` must be "polling" or "webhook".');
  if (register !== undefined && modeOf(options) === "polling")
    throw fail("`register` is for a webhook: give a `secretToken` too.");
  if (register !== undefined && !URL.canParse(register.url))
    throw fail("`register` must be { url }: the address at which Telegram reaches the webhook, in full.");
  refuseUnknown(pace, { directMs: true, groupMs: true, perSecond: true }, "pace of telegramMessenger()");
  checkNumbers("telegramMessenger()", pace ?? {}, ["directMs", "groupMs"], { least: 0 });
  checkNumbers("telegramMessenger()", pace ?? {}, ["perSecond"]);
  return messenger(telegramChannel(options, telegramApi(token, apiUrl)), common);
}

function modeOf({ mode, secretToken, verifyWebhook }: TelegramMessengerOptions): "polling" | "webhook" {
  return mode ?? (secretToken === undefined && verifyWebhook === undefined ? "polling" : "webhook");
}

function telegramChannel(options: TelegramMessengerOptions, api: TelegramApi): Channel {
  const { call } = api;
  const { token, userName, mentionOnReply = true, pace = {}, register } = options;
  /** Groups that have another number now. */
  const moved = new Map<number, number>();
  const say = async (
    method: string,
    place: Place,
    params: object,
    signal: AbortSignal,
    wrap: (params: object) => object = (plain) => plain,
  ): Promise<unknown> => {
    const { chat, topic } = chatOf(place);
    const where = (id: number) => ({ chat_id: id, ...(topic !== undefined && { message_thread_id: topic }) });
    try {
      return await call(method, wrap({ ...where(moved.get(chat) ?? chat), ...params }), signal);
    } catch (thrown) {
      const to = thrown instanceof ChannelError && isRecord(thrown.cause) ? thrown.cause.movedTo : undefined;
      if (typeof to !== "number" || moved.get(chat) === to) throw thrown;
      moved.set(chat, to);
      return call(method, wrap({ ...where(to), ...params }), signal);
    }
  };
  return {
    provider: "telegram",
    limits: { text: TEXT_LIMIT, buttonData: BUTTON_BYTES, editable: true, file: FILE_BYTES },
    pace: {
      perPlaceMs: ({ dm }) => (dm ? (pace.directMs ?? DIRECT_MS) : (pace.groupMs ?? GROUP_MS)),
      perSecond: pace.perSecond ?? PER_SECOND,
    },
    async self(signal) {
      // The number before the colon is the bot's own.
      if (userName !== undefined) return { id: token.split(":")[0] ?? "", userName: userName.replace(/^@/, "") };
      const me = await call("getMe", {}, signal);
      if (!isRecord(me)) throw new ChannelError("unknown", "Telegram (getMe): it did not say who we are.");
      return { id: String(me.id), userName: String(me.username) };
    },
    parse: (input, self) => parseUpdate(input, self, mentionOnReply),
    async create(place, content, _key, signal): Promise<Sent> {
      const params = { ...contentOf(content), ...replyOf(place) };
      return sentOf("sendMessage", await say("sendMessage", place, params, signal));
    },
    async sendFile(place, file, _key, signal): Promise<Sent> {
      const send = async ({ method, field }: SendAs): Promise<Sent> =>
        sentOf(method, await say(method, place, replyOf(place), signal, (params) => formOf(params, field, file)));
      const as = sendAs(file);
      try {
        return await send(as);
      } catch (thrown) {
        // It was surely not sent: as it is, it is taken whatever it holds.
        const isOdd = thrown instanceof ChannelError && thrown.kind === "refused" && ODD.test(thrown.message);
        if (as === DOCUMENT || !isOdd) throw thrown;
        return send(DOCUMENT);
      }
    },
    async fetchFile({ id }, signal) {
      const file = await call("getFile", { file_id: id }, signal);
      if (!isRecord(file) || typeof file.file_path !== "string")
        throw new ChannelError("refused", "Telegram (getFile): it does not say where the file is.");
      return api.read(file.file_path, signal);
    },
    async edit(place, id, content, signal) {
      const { thread, dm } = place;
      const chat = { thread: threadOf(chatOf({ thread, dm }).chat), dm };
      await say("editMessageText", chat, { message_id: Number(id), ...contentOf(content) }, signal);
    },
    async acknowledge({ id }, text, signal) {
      await call("answerCallbackQuery", { callback_query_id: id, text: text.slice(0, MAX_TOLD) }, signal);
    },
    ...(modeOf(options) === "polling" && {
      account: `${options.apiUrl ?? ""} ${token}`,
      listen: (accept: (input: unknown) => Promise<void>, _cursor: unknown, signal: AbortSignal) =>
        poll(api, accept, signal, options.mode === "polling"),
    }),
    ...(modeOf(options) === "webhook" && {
      verify: (request: Request, body: Uint8Array) => verify(options, request, body),
      read: (_request: Request, body: Uint8Array) =>
        Promise.resolve({ input: JSON.parse(new TextDecoder().decode(body)) as unknown }),
    }),
    ...(register !== undefined && {
      async listen(_accept: unknown, _cursor: unknown, signal: AbortSignal) {
        const secret = options.secretToken === undefined ? {} : { secret_token: options.secretToken };
        await call("setWebhook", { url: register.url, allowed_updates: ALLOWED_UPDATES, ...secret }, signal);
      },
    }),
  };
}

/** An update that was given to whoever stores it. */
interface Taken {
  readonly id: number;
  state: "under way" | "stored" | "failed";
  readonly end: Promise<void>;
}

/**
 * Reads what comes. Telegram forgets what lies before the next number asked for, so that is what was stored. Whoever is slow to be
 * stored, or fails, comes with each answer until then, and holds up nobody else. Nothing is kept: a new life asks for all that is
 * left, and recognises what it knows.
 */
async function poll(
  { call }: TelegramApi,
  accept: (input: unknown) => Promise<void>,
  signal: AbortSignal,
  takesOver: boolean,
): Promise<void> {
  if (takesOver) await call("deleteWebhook", {}, signal);
  const take = (update: Record<string, unknown>): Taken => {
    const set = (state: Taken["state"]) => () => void (taken.state = state);
    const end = accept(update).then(set("stored"), set("failed"));
    const taken: Taken = { id: Number(update.update_id), state: "under way", end };
    return taken;
  };
  let offset: number | undefined;
  let left: Taken[] = [];
  let again = FIRST_AGAIN_MS;
  while (!signal.aborted) {
    const params = { timeout: POLL_SECONDS, allowed_updates: ALLOWED_UPDATES, ...(offset !== undefined && { offset }) };
    const updates = await call("getUpdates", params, signal);
    const list = (Array.isArray(updates) ? (updates as unknown[]) : []).filter(isRecord);
    const before = new Map(left.map((one) => [one.id, one]));
    const taken = list.map((update) => before.get(Number(update.update_id)) ?? take(update));
    const ended = await within(backgroundClock, again, Promise.all(taken.map(({ end }) => end)));
    const first = taken.find(({ state }) => state !== "stored");
    const last = taken.at(-1);
    // After a silence the next number may be any.
    offset = first?.id ?? (last && last.id + 1);
    left = first === undefined ? [] : taken.filter(({ state }) => state !== "failed");
    // Telegram answers at once while anything is left.
    if (first !== undefined && ended !== undefined) await sleep(backgroundClock, again, signal).catch(() => undefined);
    again = first === undefined ? FIRST_AGAIN_MS : Math.min(again * 2, LONGEST_AGAIN_MS);
  }
}

async function verify(
  { secretToken, verifyWebhook }: TelegramMessengerOptions,
  request: Request,
  body: Uint8Array,
): Promise<Response | undefined> {
  const given = request.headers.get("x-telegram-bot-api-secret-token") ?? "";
  // Hashes are compared, so that time tells nothing.
  const knows = secretToken === undefined || (await sha256(given)) === (await sha256(secretToken));
  const may =
    knows && (typeof verifyWebhook !== "function" || yesOrNo(await verifyWebhook(request, body), "verifyWebhook()"));
  return may ? undefined : new Response("Unauthorized", { status: 401 });
}

function chatOf({ thread }: Place): { readonly chat: number; readonly topic: number | undefined } {
  const [, chat, topic] = /^telegram:(-?\d+)(?::(\d+))?$/.exec(thread) ?? [];
  if (chat === undefined)
    throw new ChannelError(
      "refused",
      `"${thread}" is no place at Telegram. They are called telegram:7, or telegram:7:2.`,
    );
  return { chat: Number(chat), topic: topic === undefined ? undefined : Number(topic) };
}

function replyOf({ replyTo }: Place) {
  const reply = { message_id: Number(replyTo), allow_sending_without_reply: true };
  return replyTo === undefined ? {} : { reply_parameters: reply };
}

function sentOf(method: string, sent: unknown): Sent {
  if (!isRecord(sent)) throw new ChannelError("unknown", `Telegram (${method}): it gave no number.`);
  return { id: String(sent.message_id) };
}

interface SendAs {
  readonly method: string;
  readonly field: string;
}
const DOCUMENT: SendAs = { method: "sendDocument", field: "document" };
/** Telegram looks into what it shows by itself, and says so when it cannot. */
const ODD = /PHOTO_|IMAGE_|VIDEO_|AUDIO_|wrong type|can't be|failed to process/i;

function sendAs({ mediaType, bytes }: SentFile): SendAs {
  if (/^image\/(jpeg|png|webp)$/i.test(mediaType) && bytes.length <= PHOTO_BYTES)
    return { method: "sendPhoto", field: "photo" };
  if (/^video\/mp4$/i.test(mediaType)) return { method: "sendVideo", field: "video" };
  if (/^audio\/(mpeg|mp4)$/i.test(mediaType)) return { method: "sendAudio", field: "audio" };
  return DOCUMENT;
}

function formOf(params: object, field: string, { name, mediaType, bytes }: SentFile): FormData {
  const form = new FormData();
  for (const [key, value] of Object.entries(params))
    form.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
  form.set(field, new Blob([new Uint8Array(bytes)], { type: mediaType }), name);
  return form;
}

function contentOf({ text, plain, buttons = [] }: Content) {
  const rendered = plain === true ? { text, entities: [] } : render(text);
  const keyboard = [buttons.map(({ label, data }) => ({ text: label, callback_data: data }))];
  return {
    text: rendered.text,
    ...(rendered.entities.length > 0 && { entities: rendered.entities }),
    // It would fetch what the model wrote.
    link_preview_options: { is_disabled: true },
    ...(buttons.length > 0 && { reply_markup: { inline_keyboard: keyboard } }),
  };
}
