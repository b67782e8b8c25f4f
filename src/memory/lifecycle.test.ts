import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { listCells } from "../store/cell.ts";
import { ContextBlocks } from "./context-blocks.ts";
import { copyContext, deleteContext } from "./lifecycle.ts";
import { loadedKeys, noteLoaded } from "./loaded.ts";

async function open() {
  const { host } = await probeHost();
  const make = (session: string) =>
    new ContextBlocks(host, { session })
      .withContext("memory")
      .withContext("team", { shared: true })
      .withContext("rules", { provider: { get: () => session } })
      .withCachedPrompt();
  return { host, make };
}

test("a fork has what the session held, and goes its own way", async () => {
  const { host, make } = await open();
  const main = make("main");
  await main.replaceContextBlock("memory", "Ada");
  await main.replaceContextBlock("team", "All");
  await main.addContext("notes", { initial: "n" });
  noteLoaded(host, "main", { label: "docs", key: "k", call: "c" });
  const prompt = await main.systemPrompt();
  copyContext(host, "main", "fork");
  const fork = make("fork");
  expect(await fork.systemPrompt()).toBe(prompt);
  expect(fork.getContextBlocks().map(({ label, content }) => [label, content])).toEqual([
    ["memory", "Ada"],
    ["team", "All"],
    ["rules", "main"],
    ["notes", "n"],
  ]);
  expect(loadedKeys(host, "fork")).toHaveLength(1);
  await fork.appendContextBlock("memory", "Bob");
  expect(main.getContextBlock("memory")?.content).toBe("Ada");
});

test("a session that is deleted leaves the others and what they share", async () => {
  const { host, make } = await open();
  const names = ["a", "a:b", "ab"];
  for (const name of names) {
    await make(name).replaceContextBlock("memory", name);
    await make(name).addContext("notes");
    await make(name).systemPrompt();
    noteLoaded(host, name, { label: "docs", key: "k", call: "c" });
  }
  await make("a").replaceContextBlock("team", "All");
  const cells = listCells(host, "").length;
  deleteContext(host, "a");
  expect(listCells(host, "")).toHaveLength(cells - 5);
  expect(make("a").getContextBlock("memory")?.content).toBe("");
  for (const name of names.slice(1)) expect(make(name).getContextBlock("memory")?.content).toBe(name);
  expect(make("ab").getContextBlock("team")?.content).toBe("All");
});
