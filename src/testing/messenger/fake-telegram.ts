import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PerdureError } from "../../base/error.ts";

/** Somebody at Telegram. */
export interface TelegramUser {
  readonly id: number;
  readonly first_name: string;
  readonly username?: string;
  readonly is_bot?: boolean;
}

/** Where people talk. A number above 0 is the chat with that person, another one a group. */
export type TelegramChat =
  | number
  | {
      readonly id: number;
      readonly type: "private" | "group" | "supergroup";
      readonly title?: string;
    };

/** A message as people see it, with all that it ever showed. */
export interface TelegramMessage {
  readonly id: number;
  readonly chat: number;
  readonly from: "bot" | "person";
  text: string;
  readonly versions: string[];
  entities: readonly Json[];
  buttons: readonly { readonly text: string; readonly callback_data: string }[];
  readonly topic?: number;
  readonly replyTo?: number;
  /** What it is a message of, if it is one. */
  readonly file?: TelegramFile & { readonly kind: TelegramFileKind };
  deleted: boolean;
}

/** What a file is sent as. */
export type TelegramFileKind = "document" | "photo" | "video" | "audio";

/** A file, as somebody sends it. */
export interface TelegramFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** What is delivered to the bot. */
export type TelegramUpdate = Json & { readonly update_id: number };

/** What goes wrong with a call, on purpose. */
export type TelegramFault =
  /** It is answered with this, and not done. */
  | { readonly kind: "answer"; readonly status: number; readonly description: string; readonly parameters?: Json }
  /** It is done, and the connection breaks before the answer; or it breaks before it is done. */
  | { readonly kind: "lost-answer" | "lost-request" }
  /** It is done when the promise resolves, and answered then. */
  | { readonly kind: "held"; readonly until: Promise<unknown> };

/** How the server is. */
export interface FakeTelegramOptions {
  /** Default `1:fake`. */
  readonly token?: string;
  /** Default `fake_bot`. */
  readonly userName?: string;
  /** Answers with 429 what comes sooner than this after the last message or edit in the same chat. Default: never. */
  readonly perChatMs?: number;
  /** The longest that a poll is kept waiting. Default: as it asks for. */
  readonly pollMs?: number;
  /** Whose time counts for the pace. Default: the machine's. */
  readonly now?: () => number;
}

type Json = Record<string, unknown>;

interface Answer {
  readonly status: number;
  readonly body: Json;
}

const TEXT_LIMIT = 4096;
const BUTTON_BYTES = 64;
const REDELIVERY_MS = 50;
/** What bots may fetch. */
const FETCHED_BYTES = 20 * 1024 * 1024;

/**
 * A Bot API server on loopback, with people who talk, press and look at what stands there: {@link FakeTelegram.seen}. It keeps the
 * rules that bite: lengths, 64 bytes for a button, "message is not modified", one poller at a time and none beside a webhook,
 * deliveries that come again until they are answered with 200, files of at most 20 MB for the bot. What it says is from the
 * public documentation.
 */
export class FakeTelegram {
  readonly token: string;
  readonly userName: string;
  /** The calls that reached it, in order. */
  readonly calls: { readonly method: string; readonly params: Json; readonly at: number }[] = [];
  /** What people were told who pressed a button. */
  readonly told: { readonly press: string; readonly text: string }[] = [];
  /** How each delivery to the webhook was answered; 0: not at all. */
  readonly deliveries: { readonly update: number; readonly status: number }[] = [];
  webhook: { readonly url: string; readonly secret?: string } | undefined;
  readonly #options: FakeTelegramOptions;
  readonly #messages: TelegramMessage[] = [];
  readonly #faults: { method: string; fault: TelegramFault; skip: number; times: number }[] = [];
  readonly #queue: TelegramUpdate[] = [];
  readonly #lastAt = new Map<number, number>();
  readonly #moved = new Map<number, number>();
  readonly #files = new Map<string, TelegramFile>();
  #server: Server | undefined;
  #port = 0;
  #poller: ((isOver: boolean) => void) | undefined;
  #pumping = false;
  #next = 1;
  #nextUpdate = 1000;

  constructor(options: FakeTelegramOptions = {}) {
    this.#options = options;
    this.token = options.token ?? "1:fake";
    this.userName = options.userName ?? "fake_bot";
  }

  /** What `apiUrl` is to be. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Begins to answer; again, after {@link FakeTelegram.close}, at the same address. */
  async listen(): Promise<this> {
    const server = createServer((request, response) => {
      void this.#serve(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  /** Nobody can reach it any more. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#poller?.(false);
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  /** What goes wrong with the next `times` calls of a method, after `skip` others. `*`: of any. */
  plan(method: string, fault: TelegramFault, { skip = 0, times = 1 } = {}): void {
    this.#faults.push({ method, fault, skip, times });
  }

  /** What stands in a chat now, oldest first. */
  seen(chat: number, from?: TelegramMessage["from"]): TelegramMessage[] {
    return this.#messages.filter(
      (one) => one.chat === chat && !one.deleted && (from === undefined || one.from === from),
    );
  }

  // What people do

  says(
    chat: TelegramChat,
    from: TelegramUser,
    text: string,
    { topic, replyTo, ...more }: { readonly topic?: number; readonly replyTo?: number } & Json = {},
  ): TelegramUpdate {
    const where = chatOf(chat);
    const placed = { ...(topic !== undefined && { topic }), ...(replyTo !== undefined && { replyTo }) };
    const { id } = this.#store(where.id, "person", text, placed);
    const reply = this.#find(where.id, replyTo);
    return this.offers({
      message: {
        ...{ message_id: id, date: 1, chat: where, from, text, entities: entitiesOf(text) },
        ...(topic !== undefined && { message_thread_id: topic, is_topic_message: true }),
        ...(reply !== undefined && {
          reply_to_message: { message_id: reply.id, chat: where, text: reply.text, from: this.#authorOf(reply, from) },
        }),
        ...more,
      },
    });
  }

  /** Somebody sends a file. More `group`s of the same name are one gallery. */
  sends(
    chat: TelegramChat,
    from: TelegramUser,
    file: TelegramFile & { readonly kind?: TelegramFileKind },
    { caption, group }: { readonly caption?: string; readonly group?: string } = {},
  ): TelegramUpdate {
    const { kind = file.mediaType.startsWith("image/") ? "photo" : "document", name, mediaType, bytes } = file;
    const where = chatOf(chat);
    const { id } = this.#store(where.id, "person", caption ?? "", { file: { kind, name, mediaType, bytes } });
    const fileId = `file${this.#next++}`;
    this.#files.set(fileId, { name, mediaType, bytes });
    const sized = { file_id: fileId, file_size: bytes.length };
    // Pictures have neither a name nor a type, and come in several sizes.
    const told = kind === "photo" ? [{ file_id: "small" }, sized] : { ...sized, file_name: name, mime_type: mediaType };
    return this.offers({
      message: {
        ...{ message_id: id, date: 1, chat: where, from, [kind]: told },
        ...(caption !== undefined && { caption, caption_entities: entitiesOf(caption) }),
        ...(group !== undefined && { media_group_id: group }),
      },
    });
  }

  /** Somebody changes what was said. */
  edits(chat: TelegramChat, from: TelegramUser, id: number, text: string): TelegramUpdate {
    const where = chatOf(chat);
    const message = this.#find(where.id, id);
    if (message !== undefined) change(message, text);
    return this.offers({
      edited_message: { message_id: id, date: 1, edit_date: 2, chat: where, from, text, entities: entitiesOf(text) },
    });
  }

  /** Presses the button that says `label`. @throws when there is none */
  presses(chat: TelegramChat, from: TelegramUser, id: number, label: string): TelegramUpdate {
    const where = chatOf(chat);
    const message = this.#find(where.id, id);
    const button = message?.buttons.find(({ text }) => text === label);
    if (message === undefined || button === undefined)
      throw new PerdureError("not_found", `There is no button "${label}" under ${id}.`);
    const { topic } = message;
    return this.offers({
      callback_query: {
        ...{ id: `press${this.#next++}`, from, chat_instance: "1", data: button.callback_data },
        message: {
          ...{ message_id: id, date: 1, chat: where, from: this.#me(), text: message.text },
          ...(topic !== undefined && { message_thread_id: topic, is_topic_message: true }),
        },
      },
    });
  }

  /** Tells of something once more, as Telegram does when it is not sure. */
  repeats(update: TelegramUpdate): void {
    this.#queue.push(update);
    this.#wake();
  }

  /** An update of your own. */
  offers(content: Json): TelegramUpdate {
    const update = { update_id: this.#nextUpdate++, ...content };
    this.#queue.push(update);
    this.#wake();
    return update;
  }

  /** Somebody deletes a message. */
  deletes(chat: number, id: number): void {
    const message = this.#find(chat, id);
    if (message !== undefined) message.deleted = true;
  }

  /** A group becomes a supergroup, which has another number. */
  migrates(from: number, to: number): void {
    this.#moved.set(from, to);
    const chat = { id: from, type: "group" };
    this.offers({ message: { message_id: this.#next++, date: 1, chat, migrate_to_chat_id: to } });
  }

  // What the server does

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [, path, fileId = ""] = /^\/file\/bot([^/]+)\/files\/(\w+)$/.exec(request.url ?? "") ?? [];
    if (path !== undefined) return this.#serveFile(path, fileId, response);
    const [, token, method = ""] = /^\/bot([^/]+)\/(\w+)$/.exec(request.url ?? "") ?? [];
    const params = await paramsOf(request, Buffer.concat(chunks));
    this.calls.push({ method, params, at: this.#now() });
    const fault = this.#takeFault(method);
    if (fault?.kind === "lost-request") return void response.destroy();
    if (fault?.kind === "held") await fault.until;
    const answer =
      token !== this.token
        ? error(401, "Unauthorized")
        : fault?.kind === "answer"
          ? error(fault.status, fault.description, fault.parameters)
          : await this.#act(method, params);
    if (fault?.kind === "lost-answer") return void response.destroy();
    response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body));
  }

  /** Faults of `file` are faults of this. */
  async #serveFile(token: string, fileId: string, response: ServerResponse): Promise<void> {
    this.calls.push({ method: "file", params: { file_id: fileId }, at: this.#now() });
    const fault = this.#takeFault("file");
    if (fault?.kind === "held") await fault.until;
    const file = token === this.token ? this.#files.get(fileId) : undefined;
    const isLost = fault?.kind === "lost-answer" || fault?.kind === "lost-request";
    if (fault?.kind === "answer" || file === undefined)
      return void response.writeHead(fault?.kind === "answer" ? fault.status : 404).end();
    response.writeHead(200, { "content-type": "application/octet-stream" });
    // In pieces, as over a real line; a lost one breaks in the middle.
    const half = Math.ceil(file.bytes.length / 2);
    response.write(file.bytes.subarray(0, half));
    if (isLost) return void setTimeout(() => response.destroy(), REDELIVERY_MS);
    response.end(file.bytes.subarray(half));
  }

  #takeFault(method: string): TelegramFault | undefined {
    const planned = this.#faults.find((one) => (one.method === "*" || one.method === method) && one.times > 0);
    if (planned === undefined || planned.skip-- > 0) return undefined;
    planned.skip = 0;
    planned.times--;
    return planned.fault;
  }

  async #act(method: string, params: Json): Promise<Answer> {
    switch (method) {
      case "getMe":
        return ok(this.#me());
      case "getUpdates":
        return this.#poll(Number(params.offset ?? 0), Number(params.timeout ?? 0));
      case "setWebhook": {
        const secret = params.secret_token;
        this.webhook = { url: String(params.url), ...(typeof secret === "string" && { secret }) };
        this.#wake();
        return ok(true);
      }
      case "deleteWebhook":
        this.webhook = undefined;
        return ok(true);
      case "sendMessage":
        return this.#send(params);
      case "editMessageText":
        return this.#edit(params);
      case "sendDocument":
      case "sendPhoto":
      case "sendVideo":
      case "sendAudio":
        return this.#sendFile(method.slice(4).toLowerCase() as TelegramFileKind, params);
      case "getFile":
        return this.#getFile(String(params.file_id));
      case "answerCallbackQuery":
        this.told.push({ press: String(params.callback_query_id), text: String(params.text) });
        return ok(true);
      default:
        return error(404, "Not Found");
    }
  }

  #send(params: Json): Answer {
    const chat = Number(params.chat_id);
    const refused = this.#refusal(chat, params);
    if (refused !== undefined) return refused;
    const reply = params.reply_parameters as { message_id?: number } | undefined;
    const message = this.#store(chat, "bot", String(params.text), {
      ...(params.message_thread_id !== undefined && { topic: Number(params.message_thread_id) }),
      ...(reply?.message_id !== undefined && { replyTo: reply.message_id }),
    });
    message.entities = (params.entities as Json[] | undefined) ?? [];
    message.buttons = buttonsOf(params);
    return ok({ message_id: message.id, date: 1, chat: chatOf(chat), text: message.text });
  }

  #sendFile(kind: TelegramFileKind, params: Json): Answer {
    const chat = Number(params.chat_id);
    const file = params[kind] as TelegramFile | undefined;
    const refused = this.#refusal(chat, { ...params, text: file === undefined ? "" : "file" });
    if (refused !== undefined) return refused;
    if (file === undefined) return error(400, "Bad Request: there is no file in the request");
    const reply = params.reply_parameters as { message_id?: number } | undefined;
    const message = this.#store(chat, "bot", "", {
      ...{ file: { ...file, kind } },
      ...(params.message_thread_id !== undefined && { topic: Number(params.message_thread_id) }),
      ...(reply?.message_id !== undefined && { replyTo: reply.message_id }),
    });
    return ok({ message_id: message.id, date: 1, chat: chatOf(chat) });
  }

  #getFile(id: string): Answer {
    const file = this.#files.get(id);
    if (file === undefined) return error(400, "Bad Request: wrong file_id or the file is temporarily unavailable");
    if (file.bytes.length > FETCHED_BYTES) return error(400, "Bad Request: file is too big");
    return ok({ file_id: id, file_size: file.bytes.length, file_path: `files/${id}` });
  }

  #edit(params: Json): Answer {
    const chat = Number(params.chat_id);
    const refused = this.#refusal(chat, params);
    if (refused !== undefined) return refused;
    const message = this.#find(chat, Number(params.message_id));
    if (message?.from !== "bot") return error(400, "Bad Request: message to edit not found");
    const shows = JSON.stringify([params.text, params.entities ?? [], buttonsOf(params)]);
    if (JSON.stringify([message.text, message.entities, message.buttons]) === shows)
      return error(400, "Bad Request: message is not modified: specified new message content is exactly the same");
    change(message, String(params.text));
    message.entities = (params.entities as Json[] | undefined) ?? [];
    message.buttons = buttonsOf(params);
    return ok({ message_id: message.id, date: 1, chat: chatOf(chat), text: message.text });
  }

  #refusal(chat: number, params: Json): Answer | undefined {
    const { perChatMs = 0 } = this.#options;
    const to = this.#moved.get(chat);
    if (to !== undefined)
      return error(400, "Bad Request: group chat was upgraded to a supergroup chat", { migrate_to_chat_id: to });
    const now = this.#now();
    const soon = (this.#lastAt.get(chat) ?? Number.NEGATIVE_INFINITY) + perChatMs;
    if (now < soon) return tooMany(Math.ceil((soon - now) / 1000));
    this.#lastAt.set(chat, now);
    const text = typeof params.text === "string" ? params.text : "";
    if (text.trim() === "") return error(400, "Bad Request: message text is empty");
    if (text.length > TEXT_LIMIT) return error(400, "Bad Request: message is too long");
    if (!areEntities(text, (params.entities as Json[] | undefined) ?? []))
      return error(400, "Bad Request: can't parse entities: they do not fit the text");
    const isLong = buttonsOf(params).some(({ callback_data: data }) => Buffer.byteLength(data) > BUTTON_BYTES);
    return isLong ? error(400, "Bad Request: BUTTON_DATA_INVALID") : undefined;
  }

  async #poll(offset: number, seconds: number): Promise<Answer> {
    if (this.webhook !== undefined)
      return error(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook first");
    this.#poller?.(true);
    if (offset > 0) while ((this.#queue[0]?.update_id ?? Number.POSITIVE_INFINITY) < offset) this.#queue.shift();
    if (this.#queue.length === 0 && seconds > 0) {
      const isOver = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(false), Math.min(seconds * 1000, this.#options.pollMs ?? Infinity));
        this.#poller = (over) => {
          clearTimeout(timer);
          resolve(over);
        };
      });
      if (isOver) return error(409, "Conflict: terminated by other getUpdates request");
      this.#poller = undefined;
    }
    return ok([...this.#queue]);
  }

  #wake(): void {
    this.#poller?.(false);
    if (!this.#pumping) void this.#pump();
  }

  async #pump(): Promise<void> {
    this.#pumping = true;
    for (let update = this.#queue[0]; update !== undefined && this.webhook !== undefined; update = this.#queue[0]) {
      if (this.#server === undefined) break;
      const { url, secret } = this.webhook;
      const headers = {
        "content-type": "application/json",
        ...(secret !== undefined && { "x-telegram-bot-api-secret-token": secret }),
      };
      const status = await fetch(url, { method: "POST", headers, body: JSON.stringify(update) }).then(
        async (response) => (await response.text(), response.status),
        () => 0,
      );
      this.deliveries.push({ update: update.update_id, status });
      if (status >= 200 && status < 300) this.#queue.shift();
      else await new Promise((resolve) => setTimeout(resolve, REDELIVERY_MS));
    }
    this.#pumping = false;
  }

  #me(): TelegramUser {
    const id = Number(this.token.split(":")[0]);
    return { id, is_bot: true, first_name: "Bot", username: this.userName };
  }

  #authorOf({ from }: TelegramMessage, person: TelegramUser): TelegramUser {
    return from === "bot" ? this.#me() : person;
  }

  #find(chat: number, id: number | undefined): TelegramMessage | undefined {
    return this.#messages.find((one) => one.chat === chat && one.id === id && !one.deleted);
  }

  #store(
    chat: number,
    from: TelegramMessage["from"],
    text: string,
    more: Pick<TelegramMessage, "topic" | "replyTo" | "file">,
  ): TelegramMessage {
    const id = this.#next++;
    const message = { id, chat, from, text, versions: [text], entities: [], buttons: [], deleted: false, ...more };
    this.#messages.push(message);
    return message;
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}

/** A Bot API server on loopback that answers: see {@link FakeTelegram}. */
export function fakeTelegram(options: FakeTelegramOptions = {}): Promise<FakeTelegram> {
  return new FakeTelegram(options).listen();
}

/** What Telegram answers to who is too fast; also for {@link FakeTelegram.plan}. */
export function tooManyRequests(seconds: number): Extract<TelegramFault, { kind: "answer" }> {
  const description = `Too Many Requests: retry after ${seconds}`;
  return { kind: "answer", status: 429, description, parameters: { retry_after: seconds } };
}

function tooMany(seconds: number): Answer {
  const { status, description, parameters } = tooManyRequests(seconds);
  return error(status, description, parameters);
}

function ok(result: unknown): Answer {
  return { status: 200, body: { ok: true, result } };
}

function error(status: number, description: string, parameters?: Json): Answer {
  return { status, body: { ok: false, error_code: status, description, ...(parameters && { parameters }) } };
}

/** What a call says: JSON, or a form with a file. */
async function paramsOf(request: IncomingMessage, body: Buffer): Promise<Json> {
  const type = request.headers["content-type"] ?? "";
  if (!type.startsWith("multipart/form-data")) return JSON.parse(body.toString() || "{}") as Json;
  const params: Json = {};
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  for (const [key, value] of form) {
    if (typeof value === "string") params[key] = /^[[{]/.test(value) ? (JSON.parse(value) as unknown) : value;
    else
      params[key] = {
        ...{ name: value.name, mediaType: value.type, bytes: new Uint8Array(await value.arrayBuffer()) },
      } satisfies TelegramFile;
  }
  return params;
}

function chatOf(chat: TelegramChat) {
  if (typeof chat !== "number") return chat;
  return chat > 0 ? { id: chat, type: "private" } : { id: chat, type: "supergroup", title: "Group" };
}

function change(message: TelegramMessage, text: string): void {
  message.text = text;
  message.versions.push(text);
}

function buttonsOf(params: Json): TelegramMessage["buttons"] {
  const markup = params.reply_markup as { inline_keyboard?: TelegramMessage["buttons"][] } | undefined;
  return markup?.inline_keyboard?.flat() ?? [];
}

/** What Telegram finds by itself in what people say. */
function entitiesOf(text: string): Json[] {
  return [...text.matchAll(/(^\/\w+(?:@\w+)?)|@\w+/g)].map(({ 0: words, 1: command, index }) => ({
    type: command === undefined ? "mention" : "bot_command",
    offset: index,
    length: words.length,
  }));
}

/** Whether each lies within the text, cuts no character, and lies within another one or beside it. */
function areEntities(text: string, entities: readonly Json[]): boolean {
  const spans = entities.map(({ offset, length }) => [Number(offset), Number(offset) + Number(length)] as const);
  const isLow = (at: number) => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
  return spans.every(
    ([from, to]) =>
      from >= 0 &&
      from < to &&
      to <= text.length &&
      !isLow(from) &&
      !isLow(to) &&
      spans.every(([a, b]) => b <= from || a >= to || (a <= from && b >= to) || (a >= from && b <= to)),
  );
}
