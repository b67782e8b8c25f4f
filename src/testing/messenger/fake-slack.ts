import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PerdureError } from "../../base/error.ts";
import type { SentFile } from "../../messenger/channel.ts";
import {
  buttonsOf,
  callsIn,
  contentError,
  contentOf,
  parsed,
  shownText,
  type SlackButton,
  type SlackContent,
} from "./slack-content.ts";
import { SlackDeliveries, type SlackDelivery, type SlackReceipt } from "./slack-deliveries.ts";

/** Somebody at Slack. */
export interface SlackPerson {
  readonly id: string;
  readonly name: string;
  readonly isBot?: boolean;
}

/** A file, in a message or on its way to one. */
export interface SlackFile extends SentFile {
  readonly id: string;
}

/** A message as people see it, with all that it ever showed. */
export interface SlackMessage {
  readonly ts: string;
  readonly channel: string;
  /** The message that the thread began with. */
  readonly thread?: string;
  readonly from: "bot" | "person";
  readonly user: string;
  text: string;
  readonly versions: string[];
  blocks: readonly Json[];
  buttons: readonly SlackButton[];
  readonly metadata?: unknown;
  readonly file?: SlackFile;
  deleted: boolean;
}

/** What somebody said, and how the app is told: a mention is two events. */
export interface SlackSaid {
  readonly ts: string;
  readonly events: readonly Json[];
}

/** What goes wrong with a call, on purpose. */
export type SlackFault =
  /** It is answered with this, and not done. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly error: string;
      readonly headers?: Record<string, string>;
    }
  /** It is done, and the connection breaks before the answer; or it breaks before it is done. */
  | { readonly kind: "lost-answer" | "lost-request" }
  /** It is done when the promise resolves, and answered then. */
  | { readonly kind: "held"; readonly until: Promise<unknown> };

/** How the server is. */
export interface FakeSlackOptions {
  /** Default `xoxb-fake`. */
  readonly botToken?: string;
  /** Default `xapp-fake`. */
  readonly appToken?: string;
  /** Default `signing-secret`. */
  readonly signingSecret?: string;
  /** Default `UBOT`. */
  readonly botUser?: string;
  /** Default `fake_bot`. */
  readonly userName?: string;
  /** Answers with 429 what comes sooner than this after the last message or change in the same channel. Default: never. */
  readonly perChannelMs?: number;
  /** Whose time counts for the pace. Default: the machine's. */
  readonly now?: () => number;
}

type Json = Record<string, unknown>;

interface Answer {
  readonly status: number;
  readonly body: Json;
  readonly headers?: Record<string, string>;
}

const TEAM = "T1";

/**
 * Slack on loopback, with people who talk, press and look at what stands there: {@link FakeSlack.seen}. It delivers to a webhook,
 * signed, or over sockets, events again until they are taken, and keeps the rules that bite: lengths, blocks that are none, a
 * change that leaves blocks as they are, who may call what. What it says is from the public documentation.
 */
export class FakeSlack {
  readonly botToken: string;
  readonly appToken: string;
  readonly signingSecret: string;
  readonly botUser: string;
  readonly userName: string;
  /** The calls that reached it, in order. */
  readonly calls: { readonly method: string; readonly params: Json; readonly at: number }[] = [];
  /** What was shown to one person alone. */
  readonly told: { readonly channel: string; readonly user: string; readonly text: string }[] = [];
  /** Who was called by what the bot said: `<!channel>`. */
  readonly called: string[] = [];
  readonly #options: FakeSlackOptions;
  readonly #messages: SlackMessage[] = [];
  readonly #people = new Map<string, string>();
  readonly #faults: { method: string; fault: SlackFault; skip: number; times: number }[] = [];
  readonly #lastAt = new Map<string, number>();
  readonly #files = new Map<string, SlackFile>();
  readonly #deliveries: SlackDeliveries;
  #server: Server | undefined;
  #port = 0;
  #next = 1;
  #lastTs = 0;

  constructor(options: FakeSlackOptions = {}) {
    this.#options = options;
    this.botToken = options.botToken ?? "xoxb-fake";
    this.appToken = options.appToken ?? "xapp-fake";
    this.signingSecret = options.signingSecret ?? "signing-secret";
    this.botUser = options.botUser ?? "UBOT";
    this.userName = options.userName ?? "fake_bot";
    this.#deliveries = new SlackDeliveries(this.signingSecret);
  }

  /** What `apiUrl` is to be. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}/api`;
  }

  /** Where events, presses and commands are delivered to. Without one they go over the app's sockets. */
  get webhook(): string | undefined {
    return this.#deliveries.url;
  }

  set webhook(url: string | undefined) {
    this.#deliveries.url = url;
  }

  /** How each delivery was answered. */
  get deliveries(): readonly SlackReceipt[] {
    return this.#deliveries.receipts;
  }

  /** How many sockets the app has open. */
  get connections(): number {
    return this.#deliveries.sockets.size;
  }

  /** Begins to answer; again, after {@link FakeSlack.close}, at the same address. */
  async listen(): Promise<this> {
    const server = createServer((request, response) => {
      void this.#serve(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    this.#deliveries.open(server);
    return this;
  }

  /** Nobody can reach it any more. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#deliveries.close();
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  /** What goes wrong with the next `times` calls of a method, after `skip` others. `*`: of any. */
  plan(method: string, fault: SlackFault, { skip = 0, times = 1 } = {}): void {
    this.#faults.push({ method, fault, skip, times });
  }

  /** What stands in a channel now with all its threads, oldest first. */
  seen(channel: string, from?: SlackMessage["from"]): SlackMessage[] {
    return this.#messages.filter(
      (one) => one.channel === channel && !one.deleted && (from === undefined || one.from === from),
    );
  }

  // What people do. A channel whose name begins with D is the one where somebody talks with the bot alone.

  says(
    channel: string,
    person: SlackPerson,
    text: string,
    { thread, ...more }: { readonly thread?: string } & Json = {},
  ): SlackSaid {
    this.#people.set(person.id, person.name);
    const { ts } = this.#store(channel, person.id, text, thread === undefined ? {} : { thread });
    const event = {
      ...{ type: "message", user: person.id, text, ts, team: TEAM, ...placeOf(channel) },
      ...(thread !== undefined && { thread_ts: thread }),
      ...(person.isBot === true && { bot_id: `B${person.id}` }),
      ...more,
    };
    const events = [this.offers(event)];
    if (!channel.startsWith("D") && text.includes(`<@${this.botUser}>`))
      events.push(this.offers({ ...event, type: "app_mention" }));
    return { ts, events };
  }

  /** Somebody sends files, with these words. */
  sends(channel: string, person: SlackPerson, sent: readonly SentFile[], text = ""): SlackSaid {
    const files = sent.map((file) => {
      const id = `F${this.#next++}`;
      this.#files.set(id, { ...file, id });
      const { name, mediaType: mimetype, bytes } = file;
      return { id, name, mimetype, size: bytes.length, url_private: this.#addressOf(id) };
    });
    return this.says(channel, person, text, { subtype: "file_share", files });
  }

  /** Somebody changes what was said. */
  edits(channel: string, person: SlackPerson, ts: string, text: string): void {
    const message = this.#find(channel, ts);
    if (message !== undefined) change(message, text);
    const thread = message?.thread === undefined ? {} : { thread_ts: message.thread };
    const edited = { user: person.id, ts: this.#stamp() };
    this.offers({
      ...{ type: "message", subtype: "message_changed", ts: this.#stamp(), ...placeOf(channel) },
      message: { type: "message", user: person.id, text, ts, edited, ...thread },
    });
  }

  /** Presses the button that says `label`. Slack delivers that once. @throws when there is none. @returns what became of it */
  presses(channel: string, person: SlackPerson, ts: string, label: string): Promise<SlackReceipt> {
    const message = this.#find(channel, ts);
    const button = message?.buttons.find((one) => one.label === label);
    if (message === undefined || button === undefined)
      throw new PerdureError("not_found", `There is no button "${label}" under ${ts}.`);
    this.#people.set(person.id, person.name);
    const thread = message.thread === undefined ? {} : { thread_ts: message.thread };
    const { actionId: action_id, value } = button;
    const payload = {
      ...{ type: "block_actions", trigger_id: `trigger${this.#next++}`, channel: { id: channel }, team: { id: TEAM } },
      user: { id: person.id, username: person.name.toLowerCase(), name: person.name.toLowerCase(), team_id: TEAM },
      container: { type: "message", message_ts: ts, channel_id: channel, ...thread },
      message: { ts, user: this.botUser, text: message.text, ...thread },
      actions: [{ type: "button", action_id, block_id: "b", value, action_ts: this.#stamp() }],
    };
    return this.#tell("interactive", payload).then(({ receipt }) => receipt);
  }

  /** Gives a slash command. Slack delivers it once, and shows what it is answered with. */
  async commands(channel: string, person: SlackPerson, command: string): Promise<void> {
    const who = { user_id: person.id, user_name: person.name.toLowerCase(), team_id: TEAM };
    const trigger = { trigger_id: `trigger${this.#next++}` };
    const { answer } = await this.#tell("slash_commands", {
      command,
      text: "",
      channel_id: channel,
      ...who,
      ...trigger,
    });
    const { text } = (answer ?? {}) as { readonly text?: string };
    if (text !== undefined) this.told.push({ channel, user: person.id, text });
  }

  /** Tells of something once more, as Slack does when it is not sure. */
  repeats({ events }: SlackSaid): void {
    for (const event of events) void this.#tell("events_api", event);
  }

  /** An event of your own. @returns what is delivered */
  offers(event: Json): Json {
    const authorizations = [{ user_id: this.botUser, is_bot: true, team_id: TEAM }];
    const body = { type: "event_callback", team_id: TEAM, event_id: `Ev${this.#next++}`, event, authorizations };
    void this.#tell("events_api", body);
    return body;
  }

  /** Somebody deletes a message. */
  deletes(channel: string, ts: string): void {
    const message = this.#find(channel, ts);
    if (message !== undefined) message.deleted = true;
  }

  // What Slack does by itself

  /** Tells the app on its sockets to come anew; `link_disabled`: that it may not. */
  disconnects(reason = "refresh_requested"): void {
    for (const socket of this.#deliveries.sockets) socket.send(JSON.stringify({ type: "disconnect", reason }));
  }

  /** Breaks all sockets without a word. */
  drops(): void {
    for (const socket of this.#deliveries.sockets) socket.terminate();
  }

  /** A request to the webhook, signed; `bad`: by somebody else; `old`: an hour ago. */
  request(body: string, signature: "good" | "bad" | "old" = "good", type = "application/json"): Promise<Response> {
    return this.#deliveries.request(this.webhook ?? "", body, { signature, type });
  }

  #tell(kind: SlackDelivery["kind"], payload: Json) {
    return this.#deliveries.bring({ kind, payload });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? "", "http://fake");
    const method = url.pathname.replace("/api/", "");
    const body = Buffer.concat(chunks);
    const [, way, id = ""] = /^\/(upload|files-pri)\/(\w+)/.exec(url.pathname) ?? [];
    if (way !== undefined) return this.#pass(way, id, request, response, body);
    const text = body.toString();
    const isJson = request.headers["content-type"]?.startsWith("application/json") === true;
    const sent = isJson ? (JSON.parse(text || "{}") as Json) : Object.fromEntries(new URLSearchParams(text));
    const params = { ...Object.fromEntries(url.searchParams), ...sent };
    this.calls.push({ method, params, at: this.#now() });
    const fault = this.#takeFault(method);
    if (fault?.kind === "lost-request") return void response.destroy();
    if (fault?.kind === "held") await fault.until;
    const token = request.headers.authorization?.replace("Bearer ", "") ?? params.token;
    const isOpen = method === "apps.connections.open";
    const answer =
      token !== (isOpen ? this.appToken : this.botToken)
        ? error(token === this.appToken || token === this.botToken ? "not_allowed_token_type" : "invalid_auth")
        : fault?.kind === "answer"
          ? { status: fault.status, body: { ok: false, error: fault.error }, headers: fault.headers ?? {} }
          : this.#act(method, params);
    if (fault?.kind === "lost-answer") return void response.destroy();
    response
      .writeHead(answer.status, { "content-type": "application/json", ...answer.headers })
      .end(JSON.stringify(answer.body));
  }

  /** Bytes go in where Slack has said, and come out for who has the token. */
  #pass(way: string, id: string, request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const file = this.#files.get(id);
    this.calls.push({ method: way, params: { id }, at: this.#now() });
    const fault = this.#takeFault(way);
    if (fault?.kind === "lost-answer" || fault?.kind === "lost-request") return void response.destroy();
    const isSecret = way === "files-pri" && request.headers.authorization !== `Bearer ${this.botToken}`;
    // Who may not have it is sent to a page where people sign in.
    if (isSecret) return void response.writeHead(302, { location: "/signin" }).end();
    if (file === undefined || fault?.kind === "answer") return void response.writeHead(404).end();
    if (way === "upload") this.#files.set(id, { ...file, bytes: new Uint8Array(body) });
    response.writeHead(200).end(way === "upload" ? "OK" : file.bytes);
  }

  #addressOf(id: string): string {
    return `http://127.0.0.1:${this.#port}/files-pri/${id}`;
  }

  #share(params: Json): Answer {
    const shared = parsed(params.files) as readonly { readonly id: string }[];
    const { channel_id: channel, thread_ts: thread } = params;
    for (const { id } of shared) {
      const file = this.#files.get(id);
      if (file === undefined) return error("file_not_found");
      if (typeof channel === "string")
        this.#store(channel, this.botUser, "", { file, ...(typeof thread === "string" && { thread }) });
    }
    return ok({ files: shared });
  }

  #takeFault(method: string): SlackFault | undefined {
    const planned = this.#faults.find((one) => (one.method === "*" || one.method === method) && one.times > 0);
    if (planned === undefined || planned.skip-- > 0) return undefined;
    planned.skip = 0;
    planned.times--;
    return planned.fault;
  }

  #act(method: string, params: Json): Answer {
    const channel = String(params.channel);
    switch (method) {
      case "apps.connections.open":
        return ok({ url: `ws://127.0.0.1:${this.#port}/link/?ticket=${this.#next++}` });
      case "auth.test":
        return ok({ user_id: this.botUser, user: this.userName, bot_id: "B1", team_id: TEAM, team: "Fake" });
      case "users.info": {
        const name = this.#people.get(String(params.user));
        if (name === undefined) return error("user_not_found");
        const profile = { display_name: name, real_name: name };
        return ok({ user: { id: params.user, name: name.toLowerCase(), real_name: name, profile } });
      }
      case "conversations.info":
        return ok({ channel: { id: channel, name: channel.toLowerCase(), is_im: channel.startsWith("D") } });
      case "conversations.history":
      case "conversations.replies":
        return this.#read(method === "conversations.replies" ? String(params.ts) : undefined, channel, params);
      case "chat.postMessage":
        return this.#post(channel, params);
      case "chat.update":
        return this.#update(channel, params);
      case "chat.delete":
        this.deletes(channel, String(params.ts));
        return ok({ channel, ts: params.ts });
      case "chat.postEphemeral":
        this.told.push({ channel, user: String(params.user), text: shownText(contentOf(params)) });
        return ok({ message_ts: this.#stamp() });
      case "files.getUploadURLExternal": {
        const file = { id: `F${this.#next++}`, name: String(params.filename), bytes: new Uint8Array() };
        this.#files.set(file.id, { ...file, mediaType: "application/octet-stream" });
        return ok({ upload_url: `http://127.0.0.1:${this.#port}/upload/${file.id}`, file_id: file.id });
      }
      case "files.completeUploadExternal":
        return this.#share(params);
      case "files.info": {
        const { id } = this.#files.get(String(params.file)) ?? {};
        return id === undefined ? error("file_not_found") : ok({ file: { id, url_private: this.#addressOf(id) } });
      }
      case "reactions.add":
      case "reactions.remove":
      case "assistant.threads.setStatus":
        return ok({});
      default:
        return error("unknown_method");
    }
  }

  #post(channel: string, params: Json): Answer {
    const content = contentOf(params);
    const refused = this.#refusal(channel, content, false);
    if (refused !== undefined) return refused;
    const { thread_ts: thread, metadata } = params;
    const message = this.#store(channel, this.botUser, shownText(content), {
      ...(typeof thread === "string" && { thread }),
      ...(metadata !== undefined && { metadata: parsed(metadata) }),
    });
    message.blocks = content.blocks ?? [];
    message.buttons = buttonsOf(content);
    return ok({ channel, ts: message.ts, message: this.#wire(message, true) });
  }

  #update(channel: string, params: Json): Answer {
    // What is not said stays as it is, as Slack has it.
    const given = contentOf(params);
    const message = this.#find(channel, String(params.ts));
    if (message === undefined) return error("message_not_found");
    if (message.from !== "bot") return error("cant_update_message");
    const content = { ...given, blocks: given.blocks ?? message.blocks };
    const refused = this.#refusal(channel, content, true);
    if (refused !== undefined) return refused;
    change(message, shownText(content));
    message.blocks = content.blocks;
    message.buttons = buttonsOf(content);
    return ok({ channel, ts: message.ts, text: message.text });
  }

  #refusal(channel: string, content: SlackContent, isUpdate: boolean): Answer | undefined {
    const { perChannelMs = 0 } = this.#options;
    const now = this.#now();
    const soon = (this.#lastAt.get(channel) ?? Number.NEGATIVE_INFINITY) + perChannelMs;
    if (now < soon) {
      const { status, error: code, headers = {} } = slackRateLimited(Math.ceil((soon - now) / 1000));
      return { status, body: { ok: false, error: code }, headers };
    }
    this.#lastAt.set(channel, now);
    const code = contentError(content, isUpdate);
    if (code !== undefined) return error(code);
    this.called.push(...callsIn(content));
    return undefined;
  }

  #read(thread: string | undefined, channel: string, { limit = 100, cursor, oldest = 0, ...params }: Json): Answer {
    const all = this.seen(channel).filter(
      (one) =>
        Number(one.ts) >= Number(oldest) &&
        (thread === undefined ? one.thread === undefined : one.thread === thread || one.ts === thread),
    );
    // Channels are read from their end, threads from their beginning.
    const list = thread === undefined ? all.toReversed() : all;
    const from = Number(cursor ?? 0);
    const to = from + Number(limit);
    const withMetadata = String(params.include_all_metadata) === "true";
    return ok({
      messages: list.slice(from, to).map((one) => this.#wire(one, withMetadata)),
      has_more: to < list.length,
      response_metadata: { next_cursor: to < list.length ? String(to) : "" },
    });
  }

  #wire({ ts, user, text, blocks, thread, metadata, from }: SlackMessage, withMetadata: boolean): Json {
    return {
      ...{ type: "message", ts, user, text, blocks },
      ...(from === "bot" && { bot_id: "B1" }),
      ...(thread !== undefined && { thread_ts: thread }),
      ...(withMetadata && metadata !== undefined && { metadata }),
    };
  }

  #find(channel: string, ts: string): SlackMessage | undefined {
    return this.#messages.find((one) => one.channel === channel && one.ts === ts && !one.deleted);
  }

  #store(
    channel: string,
    user: string,
    text: string,
    more: Pick<SlackMessage, "metadata" | "thread" | "file">,
  ): SlackMessage {
    const from = user === this.botUser ? "bot" : "person";
    const shown = { text, versions: [text], blocks: [], buttons: [], deleted: false };
    const message: SlackMessage = { ts: this.#stamp(), channel, user, from, ...shown, ...more };
    this.#messages.push(message);
    return message;
  }

  /** A time that is nobody else's. */
  #stamp(): string {
    this.#lastTs = Math.max(this.#lastTs + 1, Math.floor(this.#now() * 1000));
    const digits = String(this.#lastTs).padStart(16, "0");
    return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}

/** A Slack on loopback that answers: see {@link FakeSlack}. */
export function fakeSlack(options: FakeSlackOptions = {}): Promise<FakeSlack> {
  return new FakeSlack(options).listen();
}

/** What Slack answers to who is too fast; also for {@link FakeSlack.plan}. */
export function slackRateLimited(seconds: number): Extract<SlackFault, { kind: "answer" }> {
  return { kind: "answer", status: 429, error: "ratelimited", headers: { "retry-after": String(seconds) } };
}

function ok(body: Json): Answer {
  return { status: 200, body: { ok: true, ...body } };
}

function error(code: string): Answer {
  return { status: 200, body: { ok: false, error: code } };
}

function placeOf(channel: string) {
  return { channel, channel_type: channel.startsWith("D") ? "im" : "channel" };
}

function change(message: SlackMessage, text: string): void {
  message.text = text;
  message.versions.push(text);
}
