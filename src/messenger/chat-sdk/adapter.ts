/*
 * What is used of an adapter of the Chat SDK
 *
 * The shapes of `@chat-adapter/*` adapters, as far as they are used. Nothing of the SDK is imported: whoever has an adapter
 * brings what it needs, in its own version.
 */

/** An adapter of the Chat SDK: `createSlackAdapter()` of `@chat-adapter/slack` and its like. */
export interface ChatSdkAdapter {
  readonly name: string;
  readonly userName: string;
  readonly botUserId?: string | undefined;
  initialize(chat: object): Promise<void>;
  handleWebhook(request: Request, options?: object): Promise<Response>;
  postMessage(threadId: string, message: string | object): Promise<{ readonly id: string; readonly raw?: unknown }>;
  editMessage(threadId: string, messageId: string, message: string | object): Promise<unknown>;
  reply?(
    threadId: string,
    messageId: string,
    message: string | object,
  ): Promise<{ readonly id: string; readonly raw?: unknown }>;
  postEphemeral?(threadId: string, userId: string, message: string | object, options?: object): Promise<unknown>;
  fetchMessages?(threadId: string, options?: object): Promise<{ readonly messages: readonly SdkMessage[] }>;
  fetchMessage?(threadId: string, messageId: string): Promise<SdkMessage | null>;
  rehydrateAttachment?(attachment: SdkAttachment): SdkAttachment;
  isDM?(threadId: string): boolean;
}

/** Somebody, as the SDK tells it. */
export interface SdkAuthor {
  readonly userId: string;
  readonly userName: string;
  readonly fullName: string;
  readonly isBot: boolean | "unknown";
  readonly isMe: boolean;
}

/** A file of a message, as the SDK tells it. */
export interface SdkAttachment {
  readonly type?: string;
  readonly name?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly size?: number | undefined;
  /** What its download is made of again. */
  readonly fetchMetadata?: Readonly<Record<string, string>> | undefined;
  readonly fetchData?: (() => Promise<Uint8Array | ArrayBuffer>) | undefined;
}

/** A message, as the SDK tells it. */
export interface SdkMessage {
  readonly id: string;
  readonly text: string;
  readonly author: SdkAuthor;
  readonly isMention?: boolean | undefined;
  readonly attachments: readonly SdkAttachment[];
  readonly metadata: { readonly edited: boolean; readonly editedAt?: Date | undefined };
  readonly raw: unknown;
}

/** A press, as the SDK tells it. */
export interface SdkAction {
  readonly actionId: string;
  readonly value?: string | undefined;
  readonly user: SdkAuthor;
  readonly messageId: string;
  readonly threadId: string;
  readonly triggerId?: string | undefined;
  readonly raw: unknown;
}

/** A command, as the SDK tells it. */
export interface SdkCommand {
  readonly command: string;
  readonly text: string;
  readonly user: SdkAuthor;
  readonly channelId: string;
  readonly triggerId?: string | undefined;
  readonly raw: unknown;
}
