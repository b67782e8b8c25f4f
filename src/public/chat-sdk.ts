/**
 * `perdure/messengers/chat-sdk`: agents that are talked to at networks for which there is an adapter of the Chat SDK.
 *
 * @module
 */

export { chatSdkMessenger } from "../messenger/chat-sdk/chat-sdk.ts";
export type { ChatSdkCapabilities, ChatSdkMessengerOptions } from "../messenger/chat-sdk/chat-sdk.ts";
export type { ChatSdkAdapter } from "../messenger/chat-sdk/adapter.ts";
