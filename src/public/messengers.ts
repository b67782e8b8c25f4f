/**
 * `perdure/messengers`: agents that are talked to at Telegram, Slack and the like, and channels of your own.
 *
 * @module
 */

export { defineMessengers, messenger } from "../messenger/define.ts";
export type {
  ConversationTarget,
  DeliveryOptions,
  MessengerDefinition,
  MessengerOptions,
  Messengers,
  QuestionInfo,
  RespondTo,
} from "../messenger/define.ts";
export type { Delivery, NoticeOptions } from "../messenger/messengers.ts";
export type { ChannelContext, ChannelPolicy, Channels } from "../turn/step/channels.ts";
export type { MessengerContext } from "../messenger/reception.ts";
export type { DeliveryKind, DeliveryState, DeliverTo } from "../store/delivery.ts";

// The port to a network
export { ChannelError } from "../messenger/channel.ts";
export type {
  Author,
  Button,
  Channel,
  ChannelErrorKind,
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
