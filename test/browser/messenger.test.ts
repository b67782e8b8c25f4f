import { type FakeTelegram, fakeTelegram } from "perdure/testing";
import { afterAll, beforeAll, test } from "vitest";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";

let telegram: FakeTelegram;
beforeAll(async () => {
  telegram = await fakeTelegram();
});
afterAll(() => telegram.close());
const env = () => ({ TELEGRAM_BOT_TOKEN: telegram.token, TELEGRAM_API_URL: telegram.url, TELEGRAM_ALLOW: "7" });
const stage = useStage({ env });
const ADA = { id: 7, first_name: "Ada" };

test("a conversation of Telegram stands in the list as such, with what was delivered, what failed, and what can be done", async () => {
  telegram.says(7, ADA, "What can you do?");
  await soon(() => telegram.seen(7, "bot").length).toBeGreaterThan(0);
  const tab = await stage.openTab();
  const row = tab.page.getByTestId("conversation-item").filter({ hasText: "What can you do?" });
  await soon(() => row.getByTestId("row-from").textContent()).toBe("Telegram");
  await row.getByRole("link").click();
  await soon(() => tab.at("from").textContent()).toContain("From Telegram");
  await soon(() => tab.at("deliveries").textContent()).toBe("Delivered to Telegram");
  const blocked = { kind: "answer", status: 403, description: "Forbidden: bot was blocked by the user" } as const;
  telegram.plan("sendMessage", blocked);
  telegram.says(7, ADA, "And what else?");
  await soon(() => tab.at("deliveries").textContent()).toBe("Telegram: 1 failed");
  await tab.at("deliveries").click();
  const failed = tab.page.locator('[data-testid="delivery"][data-state="failed"]');
  await soon(() => failed.textContent()).toContain("bot was blocked");
  if (process.env.PERDURE_SHOT !== undefined) await tab.page.screenshot({ path: process.env.PERDURE_SHOT });
  const before = telegram.seen(7, "bot").length;
  await failed.getByTestId("retry").click();
  await soon(() => telegram.seen(7, "bot").length).toBeGreaterThan(before);
  await soon(() => failed.count()).toBe(0);
  telegram.plan("sendMessage", blocked);
  telegram.says(7, ADA, "Once more");
  await soon(() => failed.count()).toBe(1);
  await failed.getByTestId("forget").click();
  await soon(() => failed.count()).toBe(0);
});
