import { expect, onTestFinished, test } from "vitest";
import { AgentChat, AgentClient } from "../../src/client/index.ts";
import { ROOM, fill, openSmall } from "../context/compacting.ts";
import { eventually } from "../host/open-host.ts";

/** A client of ours, without a page. */
async function openClient(url: string) {
  const { host } = new URL(url);
  const client = new AgentClient({ agent: "Talk", name: "one", host });
  onTestFinished(() => client.close());
  const chat = new AgentChat(client);
  chat.subscribe(() => {});
  await client.ready;
  return { client, chat };
}

test("a client sees how full the window is, has it summarised, and takes that back", async () => {
  const kit = await openSmall();
  const { chat } = await openClient(kit.url);
  await fill(kit, 2);
  const state = await eventually(() => chat.getSnapshot().contextState ?? undefined, "a state");
  expect(state).toMatchObject({ window: 100_000, model: expect.stringContaining("scripted") as string });
  expect(state.tokens).toBeGreaterThan(0);
  expect(state.usable).toBeLessThanOrEqual(ROOM);

  const report = await chat.report();
  expect(report.items.length).toBeGreaterThan(0);
  const draft = await chat.compact({ preview: true, focus: "the boat" });
  expect(draft.summary).toBe("## Goal\nBe short.");
  expect(chat.getSnapshot().compactions).toEqual([]);

  const made = await chat.applyCompaction({ ...draft, summary: "What I want it to know." });
  const [mark] = await eventually(
    () => (chat.getSnapshot().compactions.length === 1 ? chat.getSnapshot().compactions : undefined),
    "a compaction",
  );
  expect(mark).toMatchObject({
    ...{ id: made.id, at: draft.messageId, kind: "summary", trigger: "manual", active: true },
    summary: "What I want it to know.",
  });
  await chat.undoCompaction(made.id);
  await eventually(() => chat.getSnapshot().compactions.length === 0, "no compaction");
  await expect(chat.undoCompaction(made.id)).rejects.toMatchObject({ code: "bad_state" });
  await expect(chat.undoCompaction("none")).rejects.toMatchObject({ code: "not_found" });
});

test("the newest of many summaries is the one that counts, and no more than twenty are told", async () => {
  const kit = await openSmall();
  await kit.ask("The code word is HERON-7.");
  (await kit.agent()).session.pin("ask-1");
  const { chat } = await openClient(kit.url);
  await eventually(() => chat.getSnapshot().pins.length === 1, "a pin");
  await fill(kit, 30, 2);
  const done = (await kit.compactions()).filter(({ status }) => status === "done");
  expect(done.length).toBeGreaterThan(2);
  await kit.stable();
  await eventually(() => chat.getSnapshot().compactions.at(-1)?.id === done.at(-1)?.id, "the newest one");
  const told = chat.getSnapshot().compactions;
  expect(told.map(({ id }) => id)).toEqual(done.slice(-20).map(({ id }) => id));
  expect(told.map(({ active }) => active)).toEqual(told.map((_, i) => i === told.length - 1));
  // Far up, and covered many times over.
  expect(chat.getSnapshot().pins).toEqual(["ask-1"]);
  const late = await openClient(kit.url);
  await eventually(() => late.chat.getSnapshot().compactions.length === told.length, "a state");
  expect(late.chat.getSnapshot().compactions).toEqual(told);
});

test("what was asked is answered once, or fails with the connection", async () => {
  const kit = await openSmall();
  await kit.ask("hello");
  const { client, chat } = await openClient(kit.url);
  expect(await chat.search("hello", { session: "all", limit: 1 })).toHaveLength(1);
  await expect(chat.search("")).rejects.toMatchObject({ code: "bad_input" });
  await expect(chat.switchTo("nope")).rejects.toMatchObject({ code: "not_found" });
  expect(chat.messages).toHaveLength(2);
  const lost = chat.report();
  client.close();
  await expect(lost).rejects.toMatchObject({ code: "disconnected" });
});

test("a chat that names a session is there from its first word on", async () => {
  const kit = await openSmall();
  await kit.ask("hello");
  const { id } = (await kit.agent()).createSession("Other");
  const { host } = new URL(kit.url);
  const client = new AgentClient({ agent: "Talk", name: "one", host });
  onTestFinished(() => client.close());
  // The connection is on its way without it.
  const chat = new AgentChat(client, { session: id });
  chat.subscribe(() => {});
  await chat.sendMessage({ text: "there" });
  expect(chat.messages).toHaveLength(2);
  expect(chat.getSnapshot().session?.id).toBe(id);
  expect(await kit.stored()).toHaveLength(2);
  expect((await kit.agent()).getHistory(null, { session: id })).toHaveLength(2);
  const nowhere = new AgentClient({ agent: "Talk", name: "one", host, session: "nope" });
  onTestFinished(() => nowhere.close());
  const error = await eventually(() => nowhere.connectionError ?? undefined, "an error");
  expect(error).toMatchObject({ code: 4404, reason: "unknown session" });
});
