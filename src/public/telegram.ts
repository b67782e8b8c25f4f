/**
 * `perdure/messengers/telegram`: agents that are talked to at Telegram.
 *
 * @module
 */

import { telegramMessenger } from "../messenger/telegram/telegram.ts";

export { telegramMessenger };
export type { TelegramMessengerOptions } from "../messenger/telegram/telegram.ts";
// oxlint-disable-next-line import/no-default-export -- so that code for the public package works with another path alone
export default telegramMessenger;
