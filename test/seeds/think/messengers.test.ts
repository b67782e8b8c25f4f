// The samples of messengers: see basics.test.ts. With another path of import they run as they are written.
import { type AgentHost, Think } from "perdure";
import { defineMessengers, ThinkMessengerStateAgent } from "perdure/messengers";
import telegramMessenger from "perdure/messengers/telegram";
import { memoryStorage, serve } from "perdure/node";
import { fakeTelegram, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test, vi } from "vitest";

const ADA = { id: 7, first_name: "Ada" };
const SECRET = "s3cret";
const AT_ONCE = { directMs: 0, groupMs: 0, perSecond: 1000 };

/** A host with this agent, whose webhook the fake Telegram delivers to. */
async function openBot(
  make: (options: Parameters<typeof telegramMessenger>[0]) => new (host: AgentHost) => Think,
): Promise<{ readonly telegram: Awaited<ReturnType<typeof fakeTelegram>>; readonly url: string }> {
  const telegram = await fakeTelegram();
  onTestFinished(() => telegram.close());
  const token = { token: telegram.token, userName: "fake_bot", secretToken: SECRET };
  const SupportAgent = make({ ...token, apiUrl: telegram.url, pace: AT_ONCE, allow: () => true });
  // The child class for state is registered with the host, where it is exported from a Worker in the texts.
  const agents = { SupportAgent, ThinkMessengerStateAgent };
  const host = await serve({ agents, storage: memoryStorage(), port: 0, signals: false, log: false });
  onTestFinished(() => host.stop());
  const url = `${host.url}/agents/support-agent/main`;
  telegram.webhook = { url: `${url}/messengers/telegram/webhook`, secret: SECRET };
  return { telegram, url };
}

test("a bot: getMessengers, the webhook before onRequest, direct messages and mentions, a sub-agent for each thread", async () => {
  const contexts: unknown[] = [];
  const { telegram, url } = await openBot(
    (options) =>
      class extends Think {
        override workspaceTools = false as const;
        override getModel() {
          return scriptedModel(() => "How can I help?");
        }
        override getMessengers() {
          return defineMessengers({ telegram: telegramMessenger(options) });
        }
        override onRequest() {
          return new Response("the app's own");
        }
        override beforeTurn() {
          contexts.push(this.getMessengerContext());
        }
      },
  );
  telegram.says(7, ADA, "hi");
  telegram.says(-100, ADA, "nobody is meant");
  telegram.says(-100, ADA, "@fake_bot hello");
  const seen = (chat: number) => telegram.seen(chat, "bot").map(({ text }) => text);
  await vi.waitFor(() => expect([seen(7), seen(-100)]).toEqual([["How can I help?"], ["How can I help?"]]), 10_000);
  expect(telegram.deliveries.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(contexts).toHaveLength(2);
  expect(contexts).toContainEqual(
    expect.objectContaining({ messenger: "telegram", thread: "telegram:-100", dm: false }),
  );
  // What is no delivery is the app's own; a wrong secret is refused.
  expect(await (await fetch(`${url}/anything`)).text()).toBe("the app's own");
  const forged = { method: "POST", body: "{}", headers: { "x-telegram-bot-api-secret-token": "other" } };
  expect((await fetch(`${url}/messengers/telegram/webhook`, forged)).status).toBe(401);
});

test("the common options: path, respondTo, conversation, verifyWebhook, delivery", async () => {
  const verified: string[] = [];
  const { telegram, url } = await openBot(
    ({ secretToken: _, ...options }) =>
      class extends Think {
        override workspaceTools = false as const;
        override getModel() {
          return scriptedModel(({ userText }) => {
            if (userText.endsWith("fail")) throw new Error("secret detail");
            return `You said: ${userText}`;
          });
        }
        override getMessengers() {
          return defineMessengers({
            telegram: telegramMessenger({
              ...options,
              path: "/hooks/telegram",
              respondTo: ["direct-message", "mention", "subscribed-thread"],
              conversation: "self",
              verifyWebhook: (request) => {
                verified.push(new URL(request.url).pathname);
                return true;
              },
              delivery: { errorResponseText: "Sorry." },
            }),
          });
        }
      },
  );
  telegram.webhook = { url: `${url}/hooks/telegram` };
  telegram.says(-100, ADA, "@fake_bot one");
  const seen = () => telegram.seen(-100, "bot").map(({ text }) => text);
  await vi.waitFor(() => expect(seen()).toEqual(["You said: Ada: @fake_bot one"]), 10_000);
  telegram.says(-100, ADA, "two");
  await vi.waitFor(() => expect(seen()[1]).toBe("You said: Ada: two"), 10_000);
  telegram.says(-100, ADA, "fail");
  await vi.waitFor(() => expect(seen()[2]).toBe("Sorry."), 10_000);
  expect(verified).toHaveLength(3);
});
