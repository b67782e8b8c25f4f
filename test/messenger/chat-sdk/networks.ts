// Networks on loopback, where Ada talks with an agent through a published adapter.
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { fakeTelegram, tooManyRequests } from "perdure/testing";
import { FakeApi, type FakeFile, type FakeMessage, type Json } from "./fake-api.ts";

/** A request to the webhook, as the network sends it. */
export interface Hook {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A network, and an adapter of the Chat SDK for it. */
export interface SdkNetwork {
  readonly name: string;
  /** Where Ada and the agent are. */
  readonly thread: string;
  /** The longest message that people can be shown there. */
  readonly longest: number;
  /** What the adapter is made of. Plain data: another process makes the same one. */
  readonly config: Json;
  /** What Ada says, in words that name the agent where it has to be named. */
  says(text: string): Hook[];
  /** Presses the button that says `label`. Undefined: there are no buttons. */
  presses?: (label: string) => Hook;
  /** Without the secret. */
  forged(): Hook;
  /** What Ada alone was told. */
  told(): readonly string[];
  seen(): readonly Pick<FakeMessage, "id" | "text" | "versions" | "buttons" | "file">[];
  creates(): number;
  breaks(how: "rate" | "refused" | "lost-answer" | "unsent"): void | Promise<void>;
  /** Ada sends a file. Undefined: its adapter tells of none. */
  sends?: (file: FakeFile, text: string) => Hook[];
  /** What goes wrong with the next file: that is sent, or that is read. */
  breaksFile?: (how: "lost-answer" | "read") => void;
  /** How often a file was asked for. */
  asked?: () => number;
  /** What stands at a public address. */
  opens?: (url: string, authorization: string | undefined) => Uint8Array | undefined;
  deletes(id: string): void;
  close(): Promise<void>;
}

export const NETWORKS = { telegram, slack, discord, github };
export type NetworkName = keyof typeof NETWORKS;

/** Text as Telegram shows it that was written with a backslash before all that means something. */
const unescaped = (text: string) => text.replaceAll(/\\([_*[\]()~`>#+\-=|{}.!\\])/g, "$1");

const ADA = { id: 7, first_name: "Ada" };

async function telegram(): Promise<SdkNetwork> {
  const fake = await fakeTelegram();
  const headers = { "content-type": "application/json", "x-telegram-bot-api-secret-token": "s3cret" };
  const hook = (update: unknown): Hook => ({ headers, body: JSON.stringify(update) });
  const bot = () => fake.seen(7, "bot");
  return {
    name: "telegram",
    thread: "telegram:7",
    longest: 4_096,
    config: { botToken: fake.token, apiUrl: fake.url, secretToken: "s3cret", mode: "webhook" },
    says: (text) => [hook(fake.says(7, ADA, text))],
    presses(label) {
      const asks = bot().findLast(({ buttons }) => buttons.length > 0);
      return hook(fake.presses(7, ADA, asks?.id ?? 0, label));
    },
    forged: () => ({ headers: { ...headers, "x-telegram-bot-api-secret-token": "wrong" }, body: "{}" }),
    seen: () =>
      bot().map(({ id, text, versions, buttons, file }) => ({
        ...{ id: `7:${id}`, text: unescaped(text), versions, ...(file !== undefined && { file }) },
        buttons: buttons.map((one) => ({ id: one.callback_data, label: one.text })),
      })),
    told: () => [],
    creates: () => fake.calls.filter(({ method }) => method === "sendMessage").length,
    breaks(how) {
      if (how === "unsent") return fake.close();
      const refused = { kind: "answer", status: 403, description: "Forbidden: bot was blocked by the user" } as const;
      fake.plan("sendMessage", how === "rate" ? tooManyRequests(2) : how === "refused" ? refused : { kind: how });
    },
    sends: (file, caption) => [hook(fake.sends(7, ADA, file, { caption }))],
    breaksFile: (how) =>
      how === "read" ? fake.plan("getFile", tooManyRequests(1)) : fake.plan("sendDocument", { kind: how }),
    asked: () => fake.calls.filter(({ method }) => method === "getFile").length,
    deletes: (id) => fake.deletes(7, Number(id.split(":")[1])),
    close: () => fake.close(),
  };
}

async function slack(): Promise<SdkNetwork> {
  const ok = (body: Json) => ({ body: { ok: true, ...body } });
  const error = (code: string) => ({ body: { ok: false, error: code } });
  const told: string[] = [];
  const nameOf = (user: unknown) => (user === "UBOT" ? "helper" : "Ada");
  let clock = 1_700_000_000;
  const stamp = () => `${clock++}.000100`;
  const parsed = (value: unknown) => (typeof value === "string" ? (JSON.parse(value) as unknown) : value);
  const blocksOf = ({ blocks }: Json) => (parsed(blocks) ?? []) as { type: string; text?: Json; elements?: Json[] }[];
  const textOf = (body: Json) =>
    body.markdown_text === undefined && body.blocks !== undefined
      ? blocksOf(body)
          .flatMap(({ text }) => (text === undefined ? [] : [String(text.text)]))
          .join("\n\n")
      : String(body.markdown_text ?? body.text);
  const buttonsOf = (body: Json) =>
    blocksOf(body)
      .flatMap(({ elements = [] }) => elements)
      .map(({ action_id: id, text, value }) => ({
        ...{ id: String(id), label: String((text as Json).text), value: String(value) },
      }));
  const api: FakeApi = await new FakeApi(({ path, body }) => {
    const bad =
      String(body.markdown_text ?? "").length > 12_000 ||
      blocksOf(body).some(({ text }) => String(text?.text ?? "").length > 3_000);
    switch (path.split("/").at(-1)) {
      case "auth.test":
        return ok({ user_id: "UBOT", bot_id: "B1", team_id: "T1", user: "helper" });
      case "users.info":
        return ok({ user: { id: body.user, name: nameOf(body.user), real_name: nameOf(body.user), profile: {} } });
      case "chat.postMessage":
        if (bad) return error("msg_too_long");
        return ok({
          ts: api.post(stamp(), String(body.channel), textOf(body), buttonsOf(body)).id,
          channel: body.channel,
        });
      case "chat.update": {
        const found = api.find(body.ts);
        if (found === undefined) return error("message_not_found");
        if (bad) return error("msg_too_long");
        // A change without blocks leaves those that are there.
        api.change(found, textOf(body), body.blocks === undefined ? found.buttons : buttonsOf(body));
        return ok({ ts: found.id, channel: body.channel });
      }
      case "files.getUploadURLExternal": {
        const id = `F${api.id()}`;
        uploads.set(id, { name: String(body.filename), mediaType: "", bytes: new Uint8Array() });
        return ok({ file_id: id, upload_url: `${api.url}/upload/${id}` });
      }
      case "files.completeUploadExternal": {
        const files = parsed(body.files) as { id: string }[];
        for (const { id } of files) api.post(id, String(body.channel_id), "", [], uploads.get(id));
        return ok({ files });
      }
      case "chat.postEphemeral":
        told.push(textOf(body));
        return ok({ message_ts: stamp() });
      default: {
        const [, id] = /^\/upload\/(\w+)$/.exec(path) ?? [];
        const [file] = Object.values(body) as FakeFile[];
        const known = uploads.get(id ?? "");
        if (id !== undefined && known !== undefined && file !== undefined)
          uploads.set(id, { ...known, bytes: file.bytes });
        return ok({});
      }
    }
  }).listen();
  const uploads = new Map<string, FakeFile>();
  const shared = new Map<string, Uint8Array>();
  let [asked, broken] = [0, 0];
  const signed = (body: string, type: string, secret = "signing"): Hook => {
    const at = String(Math.floor(Date.now() / 1000));
    const hash = createHmac("sha256", secret).update(`v0:${at}:${body}`).digest("hex");
    const headers = { "content-type": type, "x-slack-request-timestamp": at, "x-slack-signature": `v0=${hash}` };
    return { headers, body };
  };
  const said = (more: Json): Hook[] => {
    const event = { type: "message", channel: "D1", channel_type: "im", user: "U7", ts: stamp(), team: "T1", ...more };
    const envelope = { type: "event_callback", team_id: "T1", event_id: `Ev${api.id()}`, event };
    return [signed(JSON.stringify(envelope), "application/json")];
  };
  return {
    name: "slack",
    thread: "slack:D1:",
    longest: 12_000,
    config: {
      ...{ botToken: "xoxb-fake", signingSecret: "signing", apiUrl: `${api.url}/api/` },
      webClientOptions: { retryConfig: { retries: 0 }, rejectRateLimitedCalls: true },
    },
    says: (text) => said({ text }),
    sends({ name, mediaType, bytes }, text) {
      const url_private = `https://files.slack.com/files-pri/T1-F${api.id()}/${name}`;
      shared.set(url_private, bytes);
      const file = { id: "F1", name, mimetype: mediaType, size: bytes.length, url_private };
      return said({ text, subtype: "file_share", files: [file] });
    },
    breaksFile(how) {
      if (how === "read") broken++;
      else api.plan({ kind: how });
    },
    asked: () => asked,
    opens(url, authorization) {
      asked++;
      if (broken > 0) return void broken--;
      return authorization === "Bearer xoxb-fake" ? shared.get(url) : undefined;
    },
    presses(label) {
      const message = api.messages.findLast(({ buttons }) => buttons.length > 0);
      const button = message?.buttons.find((one) => one.label === label);
      if (message === undefined || button === undefined) throw new Error(`There is no button ${label}.`);
      const payload = {
        ...{ type: "block_actions", trigger_id: `t${api.id()}`, team: { id: "T1" }, channel: { id: "D1" } },
        ...{ user: { id: "U7", username: "ada", name: "Ada" }, message: { ts: message.id } },
        container: { type: "message", message_ts: message.id, channel_id: "D1" },
        actions: [{ type: "button", action_id: button.id, value: button.value, action_ts: stamp() }],
      };
      const form = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
      return signed(form, "application/x-www-form-urlencoded");
    },
    forged: () => signed("{}", "application/json", "wrong"),
    seen: () => api.messages,
    told: () => told,
    creates: () => api.creates(),
    breaks(how) {
      if (how === "unsent") return api.close();
      const rated = { kind: "answer", status: 429, headers: { "retry-after": "2" } } as const;
      const refused = { kind: "answer", ...error("channel_not_found") } as const;
      api.plan(how === "rate" ? rated : how === "refused" ? refused : { kind: how });
    },
    deletes: (id) =>
      void api.messages.splice(
        api.messages.findIndex((one) => one.id === id),
        1,
      ),
    close: () => api.close(),
  };
}

async function discord(): Promise<SdkNetwork> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const textOf = ({ content, embeds }: Json) =>
    [content, ...((embeds as Json[] | undefined) ?? []).map(({ description }) => description)]
      .filter((one) => typeof one === "string" && one !== "")
      .join("\n\n");
  const buttonsOf = ({ components }: Json) =>
    ((components as { components: Json[] }[] | undefined) ?? [])
      .flatMap((row) => row.components)
      .map(({ custom_id: id, label, disabled }) => ({
        ...{ id: String(id), label: String(label), disabled: disabled === true },
      }));
  const unknown = { status: 404, body: { code: 10_008, message: "Unknown Message" } };
  const told: Json[] = [];
  let [asked, broken] = [0, 0];
  const shared = new Map<string, Uint8Array>();
  const api: FakeApi = await new FakeApi(({ method, path, query, body: given }) => {
    const { "files[0]": file, payload_json: json } = given as { "files[0]"?: FakeFile; payload_json?: string };
    const body = json === undefined ? given : (JSON.parse(json) as Json);
    const [, channel = "", id] = /^\/channels\/(\d+)\/messages(?:\/(\d+))?$/.exec(path) ?? [];
    const text = textOf(body);
    if (String(body.content ?? "").length > 2_000)
      return { status: 400, body: { code: 50_035, message: "Invalid Form Body" } };
    if (method === "POST" && id === undefined && channel !== "")
      return { body: { id: api.post(api.id(), channel, text, buttonsOf(body), file).id, channel_id: channel } };
    if (method === "GET" && id === undefined && channel !== "") {
      const before = told.filter((one) => BigInt(String(one.id)) < BigInt(query.get("before") ?? 0));
      const fresh = (files: Json[]) =>
        files.map((one) => ({ ...one, url: `${String(one.url).split("?")[0]}?hm=fresh` }));
      return {
        body: before
          .slice(-Number(query.get("limit")))
          .reverse()
          .map((one) => ({ ...one, attachments: fresh(one.attachments as Json[]) })),
      };
    }
    const found = api.find(id);
    if (method === "PATCH") {
      if (found === undefined) return unknown;
      // What a change does not name stays.
      api.change(found, text, body.components === undefined ? found.buttons : buttonsOf(body));
      return { body: { id: found.id, channel_id: channel } };
    }
    return { status: 404, body: { code: 0, message: "Not Found" } };
  }).listen();
  const person = { id: "7", username: "ada", global_name: "Ada", bot: false };
  const signed = (value: unknown): Hook => {
    const body = JSON.stringify(value);
    const at = String(Math.floor(Date.now() / 1000));
    const signature = sign(null, Buffer.from(at + body), privateKey).toString("hex");
    const headers = {
      "content-type": "application/json",
      "x-signature-ed25519": signature,
      "x-signature-timestamp": at,
    };
    return { headers, body };
  };
  const said = (content: string, attachments: Json[] = []): Hook[] => {
    const data = {
      ...{ id: api.id(), channel_id: "55", channel_type: 1, author: person, content, mentions: [], attachments },
      ...{ timestamp: new Date().toISOString(), edited_timestamp: null },
    };
    told.push(data);
    const body = JSON.stringify({ type: "GATEWAY_MESSAGE_CREATE", timestamp: Date.now(), data });
    return [{ headers: { "content-type": "application/json", "x-discord-gateway-token": "discord-token" }, body }];
  };
  return {
    name: "discord",
    thread: "discord:@me:55",
    longest: 2_000,
    config: {
      ...{ botToken: "discord-token", applicationId: "99", apiUrl: api.url, userName: "helper" },
      publicKey: publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex"),
    },
    says: (content) => said(content),
    sends({ name, mediaType, bytes }, text) {
      const url = `https://cdn.discordapp.com/attachments/55/${api.id()}/${name}`;
      shared.set(`${url}?hm=fresh`, bytes);
      const file = { id: "1", filename: name, content_type: mediaType, size: bytes.length, url: `${url}?hm=first` };
      return said(text, [file]);
    },
    breaksFile(how) {
      if (how === "read") broken++;
      else api.plan({ kind: how });
    },
    asked: () => asked,
    // What it was first opened by is not good for long.
    opens(url) {
      asked++;
      return broken > 0 ? void broken-- : shared.get(url);
    },
    presses(label) {
      const message = api.messages.findLast(({ buttons }) => buttons.length > 0);
      const button = message?.buttons.find((one) => one.label === label && one.disabled !== true);
      if (message === undefined || button === undefined) throw new Error(`There is no button ${label}.`);
      return signed({
        ...{ type: 3, id: api.id(), token: "t", channel_id: "55", user: person, message: { id: message.id } },
        data: { custom_id: button.id, component_type: 2 },
      });
    },
    forged: () => ({ ...signed({}), body: '{"type":1}' }),
    seen: () => api.messages,
    told: () => [],
    creates: () => api.creates(),
    breaks(how) {
      if (how === "unsent") return api.close();
      const rated = {
        kind: "answer",
        status: 429,
        body: { message: "You are being rate limited.", retry_after: 1.5 },
      } as const;
      const refused = {
        kind: "answer",
        status: 403,
        body: { code: 50_007, message: "Cannot send messages to this user" },
      } as const;
      api.plan(how === "rate" ? rated : how === "refused" ? refused : { kind: how });
    },
    deletes: (id) =>
      void api.messages.splice(
        api.messages.findIndex((one) => one.id === id),
        1,
      ),
    close: () => api.close(),
  };
}

async function github(): Promise<SdkNetwork> {
  const bot = { id: 99, login: "helper", type: "User" };
  const ada = { id: 7, login: "ada", type: "User" };
  const repository = { id: 1, name: "trees", full_name: "acme/trees", owner: { id: 2, login: "acme", type: "User" } };
  const at = new Date(0).toISOString();
  const comment = (id: string, body: string, user: object) => ({
    id: Number(id),
    body,
    user,
    created_at: at,
    updated_at: at,
  });
  const api: FakeApi = await new FakeApi(({ method, path, body }) => {
    if (path === "/user") return { body: bot };
    const text = String(body.body);
    if (method === "POST" && path === "/repos/acme/trees/issues/4/comments") {
      if (text.length > 65_536) return { status: 422, body: { message: "Validation Failed" } };
      return { status: 201, body: comment(api.post(api.id(), "4", text).id, text, bot) };
    }
    if (method === "GET" && path === "/repos/acme/trees/issues/4/comments")
      return { body: api.messages.map((one) => comment(one.id, one.text, bot)) };
    const found = api.find(/comments\/(\d+)$/.exec(path)?.[1]);
    if (found === undefined) return { status: 404, body: { message: "Not Found" } };
    api.change(found, text);
    return { body: comment(found.id, text, bot) };
  }).listen();
  const signed = (value: unknown, secret = "hook"): Hook => {
    const body = JSON.stringify(value);
    const hash = createHmac("sha256", secret).update(body).digest("hex");
    const headers = {
      "content-type": "application/json",
      "x-github-event": "issue_comment",
      "x-hub-signature-256": `sha256=${hash}`,
    };
    return { headers, body };
  };
  return {
    name: "github",
    thread: "github:acme/trees:issue:4",
    longest: 65_536,
    config: { token: "gh-token", webhookSecret: "hook", userName: "helper", apiUrl: api.url },
    says: (text) => [
      signed({
        ...{ action: "created", repository, sender: ada, issue: { number: 4, title: "Trees" } },
        comment: comment(api.id(), `@helper ${text}`, ada),
      }),
    ],
    forged: () => signed({}, "wrong"),
    // What stands in a comment of HTML is not shown.
    seen: () => api.messages.map((one) => ({ ...one, text: one.text.replace(/\s*<!--.*?-->/gs, "") })),
    told: () => [],
    creates: () => api.creates(),
    breaks(how) {
      if (how === "unsent") return api.close();
      const rated = {
        kind: "answer",
        status: 403,
        headers: { "x-ratelimit-remaining": "0", "retry-after": "2" },
        body: { message: "API limit" },
      } as const;
      const refused = {
        kind: "answer",
        status: 403,
        body: { message: "Resource not accessible by integration" },
      } as const;
      api.plan(how === "rate" ? rated : how === "refused" ? refused : { kind: how });
    },
    deletes: (id) =>
      void api.messages.splice(
        api.messages.findIndex((one) => one.id === id),
        1,
      ),
    close: () => api.close(),
  };
}
