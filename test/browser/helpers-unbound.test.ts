import { test, vi } from "vitest";
import { seedConversation } from "./seed.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";

const ID = "seeded";

const stage = useStage(async () => {
  vi.stubEnv("PERDURE_GUIDE_DELAY", "0");
  const said = { id: "m1", role: "user" as const, parts: [{ type: "text" as const, text: "Hello" }] };
  const dir = await seedConversation(ID, [said], "tea");
  vi.unstubAllEnvs();
  return { dir };
});

test("a helper that no message asked for stands behind the messages, and can be opened", async () => {
  const tab = await stage.openTab({ path: `/c/${ID}` });
  const group = tab.page.getByRole("region", { name: "In the background" });
  await group.getByTestId("run").waitFor();
  await soon(() => group.getByRole("status").textContent()).toBe("Researcher: Done");
  await soon(() => group.getByTestId("run-words").textContent()).toContain("What is known about tea");
  await soon(() => tab.at("message").count()).toBe(1);
  await group.getByTestId("run-open").click();
  await soon(() => tab.lastText()).toContain("What is known about tea");
  await tab.at("back").click();
  await group.getByTestId("run").waitFor();
});
