// The networks of `perdure/testing`, as the suite of channels wants them.
import { slackMessenger } from "perdure/messengers/slack";
import { telegramMessenger } from "perdure/messengers/telegram";
import {
  type ConformanceNetwork,
  fakeSlack,
  fakeTelegram,
  memoryChannel,
  slackRateLimited,
  tooManyRequests,
} from "perdure/testing";

const ADA = { id: "7", name: "Ada" };

export function memory(finds: boolean): ConformanceNetwork {
  const network = memoryChannel({ finds });
  const thread = "memory:7";
  return {
    channel: network.channel(),
    place: { thread, dm: true },
    says: (text) => void network.says(thread, ADA, text),
    presses: (id, label) => void network.presses(thread, ADA, id, label),
    deletes: (id) => network.deletes(id),
    sendsFile: (file, text) => void network.sends(thread, ADA, [file], text),
    seen: () =>
      network.seen(thread, "agent").map(({ id, text, file }) => ({
        ...{ id, text },
        ...(file !== undefined && { file: { ...file, bytes: new Uint8Array(Buffer.from(file.base64, "base64")) } }),
      })),
    told: () => network.told.map(({ text }) => text),
    creates: () => network.calls.filter(({ op }) => op === "create").length,
    breaks: (how) => network.plan("create", how === "rate" ? { kind: how, retryAfterMs: 1000 } : { kind: how }),
    close: () => undefined,
  };
}

export async function telegram(): Promise<ConformanceNetwork> {
  const fake = await fakeTelegram();
  const ada = { id: 7, first_name: "Ada" };
  const { channel } = telegramMessenger({ token: fake.token, apiUrl: fake.url });
  return {
    channel,
    place: { thread: "telegram:7", dm: true },
    says: (text) => void fake.says(7, ada, text),
    presses: (id, label) => void fake.presses(7, ada, Number(id), label),
    deletes: (id) => fake.deletes(7, Number(id)),
    sendsFile: (file, text) => void fake.sends(7, ada, file, { caption: text }),
    seen: () =>
      fake.seen(7, "bot").map(({ id, text, file }) => ({ id: String(id), text, ...(file !== undefined && { file }) })),
    told: () => fake.told.map(({ text }) => text),
    creates: () => fake.calls.filter(({ method }) => method === "sendMessage").length,
    breaks(how) {
      if (how === "unsent") return fake.close();
      const refused = { kind: "answer", status: 403, description: "Forbidden: bot was blocked by the user" } as const;
      fake.plan("sendMessage", how === "rate" ? tooManyRequests(2) : how === "refused" ? refused : { kind: how });
    },
    close: () => fake.close(),
  };
}

/** By socket mode. */
export async function slack(): Promise<ConformanceNetwork> {
  const fake = await fakeSlack();
  const ada = { id: "U7", name: "Ada" };
  const { channel } = slackMessenger({ botToken: fake.botToken, appToken: fake.appToken, apiUrl: fake.url });
  return {
    channel,
    place: { thread: "slack:D7", dm: true },
    says: (text) => void fake.says("D7", ada, text),
    presses: (id, label) => void fake.presses("D7", ada, id, label),
    deletes: (id) => fake.deletes("D7", id),
    sendsFile: (file, text) => void fake.sends("D7", ada, [file], text),
    // A file that is sent is known by its own name.
    seen: () =>
      fake.seen("D7", "bot").map(({ ts, text, file }) => ({
        ...{ id: file?.id ?? ts, text },
        ...(file !== undefined && { file }),
      })),
    told: () => fake.told.map(({ text }) => text),
    creates: () => fake.calls.filter(({ method }) => method === "chat.postMessage").length,
    breaks(how) {
      if (how === "unsent") return fake.close();
      const refused = { kind: "answer", status: 200, error: "channel_not_found" } as const;
      fake.plan("chat.postMessage", how === "rate" ? slackRateLimited(2) : how === "refused" ? refused : { kind: how });
    },
    close: () => fake.close(),
  };
}
