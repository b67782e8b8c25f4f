import { fakeTelegram } from "perdure/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { tempDir } from "../host/open-host.ts";
import { runScript, startExample } from "./run-example.ts";

interface Chat {
  readonly messages: readonly { readonly id: number; readonly text: string; readonly buttons: readonly unknown[] }[];
  readonly told: readonly { readonly text: string }[];
}

test("without a token it has a Telegram of its own and says so; the page can talk, and approve", async () => {
  const { url, output } = await startExample(tempDir(), "telegram");
  expect(output()).toContain("There is no TELEGRAM_BOT_TOKEN");
  expect(await (await fetch(url)).text()).toContain("A Telegram of our own");
  const send = (body: object) => fetch(url, { method: "POST", body: JSON.stringify(body) });
  const chat = async () => (await (await fetch(`${url}/chat`)).json()) as Chat;
  const until = (check: (now: Chat) => void) =>
    vi.waitFor(async () => check(await chat()), { timeout: 20_000, interval: 50 });
  await send({ text: "please send a mail" });
  const asks = ({ messages }: Chat) => messages.find(({ buttons }) => buttons.length > 0);
  await until((now) => expect(asks(now)?.text).toContain("ada@example.com"));
  await send({ id: asks(await chat())?.id, label: "Approve" });
  await until((now) => expect(now.messages.at(-1)?.text).toBe("The mail is on its way."));
  expect((await chat()).told.at(-1)?.text).toBe("Approved by You");
}, 40_000);

test("with a token it is a bot without a page, which asks for what comes and answers", async () => {
  const telegram = await fakeTelegram({ token: "5:none" });
  onTestFinished(() => telegram.close());
  const env = { TELEGRAM_BOT_TOKEN: telegram.token, TELEGRAM_ALLOW: "7", TELEGRAM_API_URL: telegram.url };
  const run = runScript(tempDir(), ["telegram"], env);
  telegram.says(7, { id: 7, first_name: "Ada" }, "hello");
  const answers = () => telegram.seen(7, "bot").map(({ text }) => text);
  await vi.waitFor(() => expect(answers().join()).toContain("answer to /stop."), { timeout: 20_000, interval: 50 });
  expect(run.output()).toContain("The bot is running");
  expect(run.output()).not.toContain(telegram.token);
}, 40_000);
