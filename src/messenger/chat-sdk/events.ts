import { fingerprint } from "../../base/hash.ts";
import { isRecord } from "../../base/json.ts";
import { type Author, type MessengerEvent, messageKey } from "../channel.ts";
import { isOwnButton } from "../reception.ts";
import type { ChatSdkAdapter, SdkAction, SdkAuthor, SdkCommand, SdkMessage } from "./adapter.ts";
import { fileRefs } from "./files.ts";
import type { Network } from "./networks.ts";

/** Whose words and presses are read, and by which name it is called. */
export interface Reader {
  readonly adapter: ChatSdkAdapter;
  readonly network: Network;
  /** Adapters that ask their network know it only then. */
  userName(): string;
}

/** What a message tells; nothing, of what we said ourselves. @param isEdit it was said before, and says this now */
export function messageEvent(
  reader: Reader,
  thread: string,
  message: SdkMessage,
  isEdit: boolean,
): MessengerEvent | undefined {
  const { adapter, network } = reader;
  const { author, metadata, id: messageId } = message;
  if (author.isMe) return undefined;
  const names = namesUs(reader);
  const text = names.reduce((words, pattern) => words.replace(pattern, `@${reader.userName()}`), message.text);
  const group = isRecord(message.raw) ? message.raw[GROUP] : undefined;
  const files = fileRefs(reader, thread, message);
  const event: MessengerEvent = {
    ...{ kind: "message", keys: [messageKey({ thread, messageId })], thread, messageId, text, files },
    ...{ dm: adapter.isDM?.(thread) === true, author: authorOf(author) },
    mentioned: message.isMention ?? names.some((pattern) => pattern.test(message.text)),
    ...(typeof group === "string" && { group }),
  };
  if (!isEdit && !(network.tellsEdits === true && metadata.edited)) return event;
  const at = metadata.editedAt?.getTime() ?? 0;
  return { ...event, kind: "edit", keys: [`edit:${thread}:${messageId}:${at}:${fingerprint(text)}`] };
}

/** What a press tells. */
export function pressEvent({ adapter, network }: Reader, action: SdkAction): MessengerEvent {
  const { actionId, value, user, messageId, raw, triggerId } = action;
  // A button of ours says where it stands.
  const place =
    network.buttonsNameThread === true && value?.startsWith(`${adapter.name}:`) === true ? value : undefined;
  const thread = place ?? action.threadId;
  const isAlone = place !== undefined || value === undefined || value === actionId || isOwnButton(actionId);
  const data = isAlone ? actionId : `${actionId} ${value}`;
  const id = idOf(raw) ?? triggerId ?? fingerprint(JSON.stringify([thread, messageId, data, user.userId]));
  return {
    ...{ kind: "press", keys: [`press:${id}:${actionId}`], thread, dm: adapter.isDM?.(thread) === true, messageId },
    ...{ author: authorOf(user), text: "", mentioned: false, files: [] },
    press: { id: JSON.stringify([action.threadId, user.userId]), data, messageId },
  };
}

/** What a command tells: the same as if it had been written to us. */
export function commandEvent({ adapter }: Reader, said: SdkCommand): MessengerEvent | undefined {
  const { command, text, user, channelId: thread, raw, triggerId } = said;
  if (user.isMe) return undefined;
  const messageId = idOf(raw) ?? triggerId ?? fingerprint(JSON.stringify(raw));
  return {
    ...{ kind: "message", keys: [messageKey({ thread, messageId })], thread, messageId },
    ...{ dm: adapter.isDM?.(thread) === true, author: authorOf(user), text: `${command} ${text}`.trim() },
    ...{ mentioned: true, files: [] },
  };
}

/** What the network itself calls a message, a press or a command. */
function idOf(raw: unknown): string | undefined {
  if (!isRecord(raw)) return undefined;
  if (isRecord(raw.chat) && typeof raw.message_id === "number") return `${String(raw.chat.id)}:${raw.message_id}`;
  return typeof raw.id === "string" || typeof raw.id === "number" ? String(raw.id) : undefined;
}

function authorOf({ userId, userName, fullName, isBot }: SdkAuthor): Author {
  return { id: userId, name: fullName || userName || userId, userName, isBot: isBot === true };
}

/** How we are named in what people write: by our name, or by what the network calls us. */
function namesUs(reader: Reader): RegExp[] {
  const { adapter } = reader;
  const { botUserId } = adapter;
  const quoted = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return [
    ...(botUserId === undefined
      ? []
      : [new RegExp(`<@!?${quoted(botUserId)}>|(?<!\\w)@${quoted(botUserId)}(?![\\w-])`, "gi")]),
    new RegExp(`(?<!\\w)@${quoted(adapter.userName || reader.userName())}(?![\\w-])`, "gi"),
  ];
}

const GROUP = "perdure_group";

/**
 * A webhook's body as the adapter gets it. Telegram's galleries span deliveries, which its adapter would gather in memory and
 * acknowledge before they are stored: so each comes alone, and rows gather them.
 */
export function bodyFor({ name }: ChatSdkAdapter, body: Uint8Array): Uint8Array {
  if (name !== "telegram") return body;
  const text = new TextDecoder().decode(body);
  return new TextEncoder().encode(text.replaceAll('"media_group_id":', `"${GROUP}":`));
}
