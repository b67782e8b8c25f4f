/**
 * `perdure/messengers`: agents that are talked to at Telegram, Slack and the like, and channels of your own.
 *
 * @module
 */

export { defineMessengers, messenger } from "../messenger/define.ts";
export type {
  AttachmentOptions,
  ConversationTarget,
  DeliveryOptions,
  MessengerDefinition,
  MessengerOptions,
  Messengers,
  QuestionInfo,
  RespondTo,
} from "../messenger/define.ts";
export type { Delivery, NoticeOptions } from "../messenger/messengers.ts";
export type { ChannelContext, ChannelPolicy, Channels, RenderedAttachment } from "../turn/step/channels.ts";
export type { MessengerContext } from "../messenger/arrival.ts";
export type { DeliveryKind, DeliveryState, DeliverTo } from "../store/delivery.ts";

// What clients of networks keep, in a child of its own
export {
  MessengerStateAgent,
  MessengerStateAgent as ThinkMessengerStateAgent,
} from "../agent/messenger-state-agent.ts";
export type { StateCall, StateOp } from "../messenger/kept-state.ts";

// The port to a network
export { ChannelError } from "../messenger/channel.ts";
export type {
  Author,
  Button,
  Channel,
  ChannelErrorKind,
  ChannelRoom,
  Content,
  Cursor,
  FileRef,
  MessengerEvent,
  Place,
  Press,
  Self,
  Sent,
  SentFile,
} from "../messenger/channel.ts";
