import { fingerprint } from "../../base/hash.ts";
import { isRecord } from "../../base/json.ts";
import { type Author, type FileRef, type MessengerEvent, messageKey, type Self } from "../channel.ts";

type Json = Record<string, unknown>;

/** What of a replied message the agent reads. */
const MAX_QUOTED = 500;
const UNNAMED: Self = { id: "", userName: "" };

/** The updates that are read; the others are not sent to us. */
export const ALLOWED_UPDATES: readonly string[] = ["message", "edited_message", "callback_query"];

/**
 * What an update tells of what people say. Named by messages and presses: update numbers restart after a silent week.
 * @param mentionOnReply whether a reply to the agent names it
 */
export function parseUpdate(update: unknown, self: Self, mentionOnReply: boolean): readonly MessengerEvent[] {
  if (!isRecord(update)) return [];
  const { message, edited_message: edited, callback_query: query } = update;
  const event = isRecord(message)
    ? said(message, self, mentionOnReply)
    : isRecord(edited)
      ? changed(edited, self, mentionOnReply)
      : isRecord(query)
        ? pressed(query)
        : undefined;
  return event === undefined ? [] : [event];
}

function said(message: Json, self: Self, mentionOnReply: boolean): MessengerEvent | undefined {
  const place = placeOf(message);
  const author = authorOf(message.from);
  if (place === undefined) return undefined;
  const { thread } = place;
  if (typeof message.migrate_to_chat_id === "number")
    return {
      ...{ kind: "message", keys: [], ...place, author: author ?? NOBODY, messageId: "", text: "" },
      ...{ mentioned: false, files: [], movedTo: threadOf(message.migrate_to_chat_id) },
    };
  if (author === undefined) return undefined;
  const words = textOf(message, self);
  const files = filesOf(message);
  if (words === undefined || (words.text === "" && files.length === 0)) return undefined;
  const messageId = String(message.message_id);
  const reply = isRecord(message.reply_to_message) ? message.reply_to_message : {};
  // In a topic all that answers nothing answers what the topic began with.
  const answers = isRecord(reply.forum_topic_created) ? undefined : authorOf(reply.from);
  const isToUs = answers !== undefined && answers.id === self.id;
  const quoted = answers === undefined || isToUs ? "" : (textOf(reply, UNNAMED)?.text ?? "");
  const quote = quoted === "" ? "" : `> ${quoted.slice(0, MAX_QUOTED).replaceAll("\n", "\n> ")}\n\n`;
  return {
    ...{ kind: "message", keys: [messageKey({ thread, messageId })], ...place, author, messageId, files },
    text: `${quote}${words.text}`,
    mentioned: words.mentioned || (mentionOnReply && isToUs),
    ...(typeof message.media_group_id === "string" && { group: message.media_group_id }),
  };
}

function changed(message: Json, self: Self, mentionOnReply: boolean): MessengerEvent | undefined {
  const event = said(message, self, mentionOnReply);
  if (event === undefined) return undefined;
  const { thread, messageId, text } = event;
  const key = `edit:${thread}:${messageId}:${String(message.edit_date)}:${fingerprint(text)}`;
  return { ...event, kind: "edit", keys: [key] };
}

function pressed(query: Json): MessengerEvent | undefined {
  const message = isRecord(query.message) ? query.message : {};
  const place = placeOf(message);
  const author = authorOf(query.from);
  if (place === undefined || author === undefined || typeof query.data !== "string") return undefined;
  const id = String(query.id);
  const messageId = String(message.message_id);
  return {
    ...{ kind: "press", keys: [`press:${id}`], ...place, author, messageId, text: "", mentioned: false, files: [] },
    press: { id, data: query.data, messageId },
  };
}

const NOBODY: Author = { id: "", name: "", isBot: false };

function authorOf(from: unknown): Author | undefined {
  if (!isRecord(from) || typeof from.id !== "number") return undefined;
  const name = [from.first_name, from.last_name].filter((one) => typeof one === "string").join(" ");
  const { username } = from;
  const known = typeof username === "string" ? username : undefined;
  return {
    ...{ id: String(from.id), name: name || (known ?? String(from.id)), isBot: from.is_bot === true },
    ...(known !== undefined && { userName: known }),
  };
}

/** What a chat, or a topic in it, is called. */
export function threadOf(chat: number, topic?: number): string {
  return `telegram:${chat}${topic === undefined ? "" : `:${topic}`}`;
}

function placeOf({ chat, is_topic_message: isTopic, message_thread_id: topic }: Json) {
  if (!isRecord(chat) || typeof chat.id !== "number") return undefined;
  const title = typeof chat.title === "string" ? { title: chat.title } : {};
  const inTopic = isTopic === true && typeof topic === "number" ? topic : undefined;
  return { thread: threadOf(chat.id, inTopic), dm: chat.type === "private", ...title };
}

/** What was said, and whether we were named. Undefined: it is a command for another bot. */
function textOf(message: Json, self: Self): { readonly text: string; readonly mentioned: boolean } | undefined {
  const text = typeof message.text === "string" ? message.text : message.caption;
  if (typeof text !== "string") return { text: "", mentioned: false };
  const entities = message.entities ?? message.caption_entities;
  const name = `@${self.userName}`.toLowerCase();
  let mentioned = false;
  for (const entity of Array.isArray(entities) ? (entities as unknown[]) : []) {
    if (!isRecord(entity)) continue;
    const { type, user } = entity;
    const offset = Number(entity.offset);
    const words = text.slice(offset, offset + Number(entity.length));
    if (type === "mention") mentioned ||= words.toLowerCase() === name;
    if (type === "text_mention") mentioned ||= isRecord(user) && String(user.id) === self.id;
    if (type === "bot_command" && offset === 0 && words.includes("@") && self.id !== "") {
      const [command = "", to = ""] = words.split("@");
      if (`@${to.toLowerCase()}` !== name) return undefined;
      return { text: command + text.slice(words.length), mentioned: true };
    }
  }
  return { text, mentioned };
}

const FILES: Readonly<Record<string, string>> = {
  ...{ document: "application/octet-stream", photo: "image/jpeg", video: "video/mp4", animation: "video/mp4" },
  ...{ audio: "audio/mpeg", voice: "audio/ogg", video_note: "video/mp4", sticker: "image/webp" },
};

function filesOf(message: Json): FileRef[] {
  // What moves is told as a document too.
  const kinds = Object.keys(FILES).filter(
    (kind) => kind in message && !(kind === "document" && "animation" in message),
  );
  return kinds.map((kind) => {
    const told = message[kind];
    // Of a picture there are several sizes, the largest last.
    const last: unknown = Array.isArray(told) ? told.at(-1) : told;
    const file = isRecord(last) ? last : {};
    const mediaType = typeof file.mime_type === "string" ? file.mime_type : (FILES[kind] ?? "");
    return {
      name: typeof file.file_name === "string" ? file.file_name : kind,
      mediaType,
      ...(typeof file.file_id === "string" && { id: file.file_id }),
      ...(typeof file.file_size === "number" && { size: file.file_size }),
    };
  });
}
