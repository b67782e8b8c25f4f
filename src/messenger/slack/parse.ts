import { isRecord } from "../../base/json.ts";
import { type Author, type FileRef, type MessengerEvent, messageKey, type Self } from "../channel.ts";

type Json = Record<string, unknown>;

/** What came, and what is known of whom it names. */
export interface SlackInput {
  /** The body of an event or an interaction; of a command, with `type: "command"`. */
  readonly payload: Json;
  readonly names: Readonly<Record<string, string>>;
}

/** What people say; joins, topics and the like are none of it. */
const SAID = new Set([undefined, "file_share", "thread_broadcast", "me_message", "bot_message"]);

/** What Slack tells of what people say. A mention comes as two events of one message, so it is named by the message. */
export function parseSlack({ payload, names }: SlackInput, self: Self): readonly MessengerEvent[] {
  if (!isOfTeam(payload, self)) return [];
  const event =
    payload.type === "event_callback" && isRecord(payload.event)
      ? told(payload.event, names, self)
      : payload.type === "block_actions"
        ? pressed(payload, names)
        : payload.type === "command"
          ? commanded(payload)
          : undefined;
  return event === undefined ? [] : [event];
}

/** One app may be in several workspaces, which share its secrets; the bot is in one, where its token counts. */
function isOfTeam({ team_id: outer, context_team_id: context, team, authorizations }: Json, self: Self): boolean {
  if (self.team === undefined) return true;
  const granted: readonly unknown[] = Array.isArray(authorizations) ? authorizations : [];
  const inner = [...granted, team].filter(isRecord).map(({ team_id: id, id: own }) => id ?? own);
  const teams = [outer, context, ...inner].filter((one) => typeof one === "string");
  return teams.length === 0 || teams.includes(self.team);
}

function told(event: Json, names: SlackInput["names"], self: Self): MessengerEvent | undefined {
  if (event.type !== "message" && event.type !== "app_mention") return undefined;
  if (event.subtype !== "message_changed") return said(event, names, self);
  const message = isRecord(event.message) ? event.message : {};
  // Slack changes messages too, to show what links lead to.
  if (!isRecord(message.edited)) return undefined;
  const { channel, channel_type: type } = event;
  const changed = said({ ...message, type: "message", channel, channel_type: type }, names, self);
  if (changed === undefined) return undefined;
  const { thread, messageId } = changed;
  return { ...changed, kind: "edit", keys: [`edit:${thread}:${messageId}:${String(message.edited.ts)}`] };
}

function said(event: Json, names: SlackInput["names"], self: Self): MessengerEvent | undefined {
  const { channel, ts, subtype, thread_ts: root } = event;
  const author = authorOf(event, names);
  if (typeof channel !== "string" || typeof ts !== "string" || author === undefined) return undefined;
  // What we say ourselves comes as well.
  if (author.id === self.id || !SAID.has(subtype as string | undefined)) return undefined;
  const words = typeof event.text === "string" ? event.text : "";
  const text = readText(words, names, self);
  const files = filesOf(event);
  if (text === "" && files.length === 0) return undefined;
  const dm = event.channel_type === "im" || channel.startsWith("D");
  const below = typeof root === "string" && root !== ts ? root : undefined;
  // Where many talk, each answer stands below what it answers.
  const thread = threadOf(channel, below ?? (dm ? undefined : ts));
  const mention = `@${self.userName}`;
  const isStop = text.startsWith(mention) && text.slice(mention.length).trim() === "/stop";
  return {
    ...{ kind: "message", keys: [messageKey({ thread, messageId: ts })], thread, dm, author, messageId: ts, files },
    text: isStop ? "/stop" : text,
    mentioned: event.type === "app_mention" || words.includes(`<@${self.id}>`) || words.includes(`<@${self.id}|`),
  };
}

function pressed(payload: Json, names: SlackInput["names"]): MessengerEvent | undefined {
  const { user, container, actions } = payload;
  const list: readonly unknown[] = Array.isArray(actions) ? actions : [];
  const action = list.find((one) => isRecord(one) && typeof one.value === "string");
  if (!isRecord(user) || !isRecord(container) || !isRecord(action)) return undefined;
  const { channel_id: channel, message_ts: messageId, thread_ts: root } = container;
  if (typeof channel !== "string" || typeof messageId !== "string" || typeof user.id !== "string") return undefined;
  const below = typeof root === "string" && root !== messageId ? root : undefined;
  const dm = channel.startsWith("D");
  const name = [nameIn(names, user.id), user.name, user.username].find((one) => typeof one === "string") ?? user.id;
  const at = String(action.action_ts);
  return {
    ...{
      kind: "press",
      keys: [`press:${channel}:${messageId}:${user.id}:${at}`],
      thread: threadOf(channel, below),
      dm,
    },
    ...{ author: { id: user.id, name: String(name), isBot: false }, messageId, text: "", mentioned: false, files: [] },
    press: { id: [channel, user.id, below ?? "", at].join(":"), data: String(action.value), messageId },
  };
}

function commanded(payload: Json): MessengerEvent | undefined {
  const { channel_id: channel, user_id: id, user_name: name, trigger_id: trigger } = payload;
  if (typeof channel !== "string" || typeof id !== "string") return undefined;
  const key = `command:${String(trigger)}`;
  const author = { id, name: typeof name === "string" ? name : id, isBot: false };
  return {
    ...{ kind: "message", keys: [key], thread: threadOf(channel), dm: channel.startsWith("D"), author, messageId: key },
    ...{ text: "/stop", mentioned: true, files: [] },
  };
}

function authorOf(event: Json, names: SlackInput["names"]): Author | undefined {
  const { user, bot_id: bot, username } = event;
  const id = typeof user === "string" ? user : bot;
  if (typeof id !== "string") return undefined;
  const name = nameIn(names, id) ?? (typeof username === "string" ? username : id);
  return { id, name, isBot: typeof bot === "string" || event.subtype === "bot_message" };
}

/** Ids come from outside: what every object has is nobody's name. */
function nameIn(names: SlackInput["names"], id: string): string | undefined {
  return Object.hasOwn(names, id) ? names[id] : undefined;
}

/** Who is named in a payload, and whose names are worth to know. */
export function peopleIn(payload: Json): string[] {
  if (isRecord(payload.user) && typeof payload.user.id === "string") return [payload.user.id];
  if (!isRecord(payload.event)) return [];
  // Of a change, what the message says now.
  const { user, text } = isRecord(payload.event.message) ? payload.event.message : payload.event;
  const named = typeof text === "string" ? [...text.matchAll(/<@([A-Z0-9]+)(?:\|[^>]*)?>/g)] : [];
  return [...new Set([...(typeof user === "string" ? [user] : []), ...named.map(([, id = ""]) => id)])];
}

/** What a channel, or a thread in it, is called. */
function threadOf(channel: string, root?: string): string {
  return `slack:${channel}${root === undefined ? "" : `:${root}`}`;
}

/** What was said, as people read it. */
function readText(text: string, names: SlackInput["names"], self: Self): string {
  const read = text.replaceAll(/<([^<>\n]+)>/g, (_, inner: string) => {
    const at = inner.indexOf("|");
    const target = at === -1 ? inner : inner.slice(0, at);
    const label = at === -1 ? "" : inner.slice(at + 1);
    const id = target.slice(1);
    if (target.startsWith("@")) return `@${id === self.id ? self.userName : (nameIn(names, id) ?? (label || id))}`;
    if (target.startsWith("#")) return `#${label || id}`;
    if (target.startsWith("!")) return label || `@${id}`;
    return label === "" || target.endsWith(label) ? target.replace(/^(mailto|tel):/, "") : `[${label}](${target})`;
  });
  return read.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&").trim();
}

function filesOf({ files }: Json): FileRef[] {
  const list: readonly unknown[] = Array.isArray(files) ? files : [];
  return list.filter(isRecord).map(({ name, mimetype, id, size }) => ({
    name: typeof name === "string" ? name : "file",
    mediaType: typeof mimetype === "string" ? mimetype : "application/octet-stream",
    ...(typeof id === "string" && { id }),
    ...(typeof size === "number" && { size }),
  }));
}
