import { expect, test } from "vitest";
import { eventually, startHost } from "../clients/harness.ts";
import { readyTab } from "./harness.tsx";
import { talk } from "./talk.ts";

test("a message above the frame limit is not waited for; nothing of it is stored, and other tabs go on", async () => {
  const { Talk } = talk({ script: () => "fine" });
  const host = await startHost({ agents: { Talk }, limits: { frameBytes: 20_000 } });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("x".repeat(30_000));
  await eventually(() => expect(tab.view().lines).toHaveLength(1));
  // Our own hook says that it failed; the public one does not know.
  await eventually(() => expect(["ready", "error"]).toContain(tab.view().status));
  expect(await host.getAgentByName(Talk, "x").stored()).toEqual([]);
  other.send("short");
  await other.settles(["user: short", "assistant: fine"]);
});
