// Messages that a summary stands for are changed or deleted: what they said is in the summary.
import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { parts } from "../../src/parts/part.ts";
import { refusal } from "../think/harness.ts";
import { insertAgentRun, type NewAgentRun } from "../../src/store/agent-run.ts";
import { until } from "../support/until.ts";
import { fill, long, openSmall, shown } from "./compacting.ts";

const SECRET = "the code is 4711";
const text = (message: UIMessage | undefined, words: string): UIMessage => ({
  ...{ id: message?.id ?? "", role: message?.role ?? "user" },
  parts: [{ type: "text", text: words }],
});

/** A conversation whose beginning, with a secret, is covered by a summary that tells it. */
async function openTold(failing = () => false) {
  const kit = await openSmall({
    summary: ({ prompt }) => {
      if (failing()) return { error: refusal(401, "no key") };
      return `## Goal\n${JSON.stringify(prompt).includes(SECRET) ? SECRET : "Be short."}`;
    },
  });
  await kit.ask(long(`${SECRET}. Keep it.`, 900));
  await fill(kit, 4);
  const agent = await kit.agent();
  expect((await kit.compactions()).filter(({ status }) => status === "done").length).toBeGreaterThan(0);
  expect(shown(kit.turns().at(-1))).toContain(SECRET);
  const [secret] = agent.session.getHistory();
  return { kit, agent, session: agent.session, secret };
}

test.each([
  ["updateMessage", "changed"],
  ["deleteMessages", "deleted"],
] as const)("%s: the summary is taken back, and the next request has none of the old words", async (what, reason) => {
  const { kit, agent, session, secret } = await openTold();
  const fork = session.fork();
  const [before] = agent.listCompactions().filter(({ status }) => status === "done");
  if (what === "updateMessage") session.updateMessage(text(secret, long("Something else.", 900)));
  else session.deleteMessages([secret?.id ?? ""]);
  const dropped = agent.listCompactions().find(({ id }) => id === before?.id);
  expect(dropped).toMatchObject({ status: "undone", error: expect.stringContaining(reason) as string });
  expect((await kit.compactions()).map(({ summary, carried }) => `${summary}${carried}`).join()).not.toContain(SECRET);
  await kit.ask(long("more", 500));
  expect(shown(kit.turns().at(-1))).not.toContain(SECRET);
  expect((await kit.compactions()).at(-1)).toMatchObject({ status: "done", trigger: "before" });
  await agent.runTurn({ input: "in the fork", session: fork.id });
  expect(shown(kit.turns().at(-1))).not.toContain(SECRET);
  expect(shown(kit.turns().at(-1))).toContain("in the fork");
});

test("after a deletion no word is left, also when no summary can be made", async () => {
  let fails = false;
  const { kit, session, secret } = await openTold(() => fails);
  fails = true;
  session.deleteMessages([secret?.id ?? ""]);
  const before = kit.turns().length;
  await kit.ask("short");
  expect(kit.turns().slice(before).map(shown).join()).not.toContain(SECRET);
});

test("the app may keep the summary", async () => {
  const { kit, session, secret } = await openTold();
  const rows = await kit.compactions();
  session.updateMessage(text(secret, "Something else."), { keepSummary: true });
  session.deleteMessages([secret?.id ?? ""], { keepSummary: true });
  expect(await kit.compactions()).toEqual(rows);
  await kit.ask("short");
  expect(shown(kit.turns().at(-1))).toContain(SECRET);
});

test("what is written again as it was, and what no summary covers, changes no summary", async () => {
  const { kit, session, secret } = await openTold();
  const rows = await kit.compactions();
  if (secret !== undefined) session.updateMessage(secret as never);
  const last = session.getHistory().at(-1);
  session.updateMessage(text(last as never, "Another answer."));
  expect(await kit.compactions()).toEqual(rows);
});

test("another version of a covered message, with all that stands behind it, takes the summary back too", async () => {
  const { kit, agent, secret } = await openTold();
  const { chat } = agent[parts].chat.room;
  chat.commit(() => chat.transcripts.of("main").edit(text(secret, long("Something else.", 900))));
  await kit.ask("short");
  expect(shown(kit.turns().at(-1))).not.toContain(SECRET);
});

test("messages that server code puts in the place of covered ones take the summary back too", async () => {
  const { kit, agent, secret } = await openTold();
  await agent.persistMessages([text(secret, long("Something else.", 900))]);
  await kit.ask("short");
  expect(shown(kit.turns().at(-1))).not.toContain(SECRET);
});

test("a message that waited when a summary was made, and is deleted later, is told of no more", async () => {
  const made = Promise.withResolvers<void>();
  const kit = await openSmall({ summary: () => made.promise.then(() => "## Goal\nBe short.") });
  await fill(kit, 3);
  const agent = await kit.agent();
  const going = kit.ask(long("question 4", 1_400));
  await until(() => kit.summaries().length > 0);
  await agent.submitMessages([{ id: "waits", role: "user", parts: [{ type: "text", text: `It is so:\n${SECRET}` }] }]);
  made.resolve();
  await going;
  await kit.stable();
  expect((await kit.compactions()).at(-1)?.carried).toContain(SECRET);
  agent.session.updateMessage({
    ...text(agent.session.getMessage("waits"), `It is so: ${SECRET}`),
    metadata: { seen: 1 },
  });
  expect((await kit.compactions()).at(-1)?.carried).toContain(SECRET);
  agent.session.deleteMessages(["waits"]);
  expect((await kit.compactions()).at(-1)).toMatchObject({ status: "undone", carried: null });
  await kit.ask("short");
  const [answer] = kit.turns().slice(-1);
  // What the assistant has answered to it is a message of its own.
  expect(shown(answer)).not.toContain(SECRET);
});

test("what a summary tells of calls and runs is of its own session", async () => {
  const kit = await openSmall();
  const agent = await kit.agent();
  const other = agent.createSession({ name: "other" }).id;
  await agent.runTurn({ input: "Hello.", session: other });
  const { host } = agent[parts].chat.chat;
  const [turn] = host.sql<{ id: string }>("SELECT id FROM perdure_turn WHERE session = ?", other);
  const run = {
    className: "Reader",
    toolCallId: null,
    input: "null",
    display: null,
    displayOrder: null,
    delivery: "full",
  } as const;
  const begin = (runId: string, preview: string, more: Pick<NewAgentRun, "turnId" | "detached" | "session">) =>
    insertAgentRun(host, { ...run, runId, preview, startedAt: 1, ...more });
  begin("r1", "the books of Anna", { turnId: turn?.id ?? "", detached: null, session: other });
  begin("r2", "the books of Ben", { turnId: null, detached: JSON.stringify({ session: other }) });
  begin("r3", "the books of all", { turnId: null, detached: null });
  await fill(kit, 4);
  const carried = (await kit.compactions()).at(-1)?.carried ?? "";
  expect(carried).toContain("the books of all");
  expect(carried).not.toContain("Anna");
  expect(carried).not.toContain("Ben");
});

test("a deleted message is left neither in the submission that it came by nor in a name that was made of it", async () => {
  const kit = await openSmall({ summary: () => "## Goal\nBe short." });
  const agent = await kit.agent();
  const mine: UIMessage = { id: "mine", role: "user", parts: [{ type: "text", text: `Well, ${SECRET}.` }] };
  const first = await agent.submitMessages([mine], { idempotencyKey: "one", metadata: { from: "desk" } });
  await agent.waitUntilStable();
  await kit.ask("And the tide?");
  const { session } = agent;
  const fork = session.fork();
  expect([session.name, fork.name]).toEqual([`Well, ${SECRET}.`, `Well, ${SECRET}.`]);
  session.deleteMessages(["mine"]);
  expect([session.name, fork.name]).toEqual(["And the tide?", "And the tide?"]);
  expect(session.info.namedBy).toBe("derived");
  // That it was handed in is still known, by its key.
  const known = agent.inspectSubmission(first.submissionId);
  expect(known).toMatchObject({
    status: "completed",
    messages: [{ id: "mine", parts: [] }],
    metadata: { from: "desk" },
  });
  expect(await agent.submitMessages([mine], { idempotencyKey: "one" })).toMatchObject({ accepted: false });
  const { host } = agent[parts].chat.chat;
  const rows = ["submission", "session"].map((table) => host.sql(`SELECT * FROM perdure_${table}`));
  expect(rows.map(({ length }) => length)).toEqual([1, 2]);
  expect(JSON.stringify(rows)).not.toContain(SECRET);
  // A name that a person gave is theirs.
  session.rename("And the tide?");
  session.deleteMessages(session.getHistory().map(({ id }) => id));
  expect(session.name).toBe("And the tide?");
});
