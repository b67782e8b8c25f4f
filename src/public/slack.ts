/**
 * `perdure/messengers/slack`: agents that are talked to at Slack.
 *
 * @module
 */

import { slackMessenger } from "../messenger/slack/slack.ts";

export { slackMessenger };
export type { SlackMessengerOptions } from "../messenger/slack/slack.ts";
// oxlint-disable-next-line import/no-default-export -- as of the other messengers
export default slackMessenger;
