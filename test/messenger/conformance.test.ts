import type { Channel } from "perdure/messengers";
import { channelConformance } from "perdure/testing";
import { describe, expect, test } from "vitest";
import { memory, slack, telegram } from "./networks.ts";

describe.for([
  ["memory, which can be asked", () => memory(true)],
  ["memory, which cannot", () => memory(false)],
  ["the fake Telegram", telegram],
  ["the fake Slack", slack],
] as const)("%s", ([, open]) => {
  test.for(channelConformance(open))("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});

const tells = (channel: Channel, change: Partial<Channel>) => ({ ...channel, ...change });

test.each<[string, string, (channel: Channel) => Channel]>([
  [
    "cuts what is too long",
    "a text of the longest length",
    (channel) =>
      tells(channel, {
        create: (place, content, ...more) =>
          channel.create(place, { ...content, text: content.text.slice(0, channel.limits.text) }, ...more),
      }),
  ],
  [
    "tries again by itself",
    "a lost answer",
    (channel) => tells(channel, { create: (...call) => channel.create(...call).catch(() => channel.create(...call)) }),
  ],
  ["does not mind what is gone", "a change to what somebody", (channel) => tells(channel, { edit: async () => {} })],
  [
    "has another name for it each time",
    "what was not stored",
    (channel) => {
      let times = 0;
      const parse: Channel["parse"] = (...args) =>
        channel.parse(...args).map((event) => ({ ...event, keys: [`${times++}`] }));
      return tells(channel, { parse });
    },
  ],
])("a channel that %s does not pass", async (_what, name, change) => {
  const cases = channelConformance(() => {
    const network = memory(false);
    return { ...network, channel: change(network.channel) };
  });
  const found = cases.filter((one) => one.name.startsWith(name));
  expect(found).toHaveLength(1);
  for (const { run } of found) await expect(run()).rejects.toThrow();
});
