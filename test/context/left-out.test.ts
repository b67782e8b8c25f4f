// No summary can be had: what the provider refuses is left out, with a word, until one can.
import type { Session } from "perdure";
import { subscribe } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { refusal, serverTool } from "../think/harness.ts";
import { fill, isSummary, long, openSmall, type Setup, shown } from "./compacting.ts";

/** What the provider takes, in characters of the request. */
const MOST = 14_000;
const tooLong = () => refusal(400, "This model's maximum context length is 4000 tokens.");
const fits: NonNullable<Setup["answer"]> = ({ prompt }) =>
  JSON.stringify(prompt).length > MOST ? { error: tooLong() } : "Yes.";
/** The table knows a far larger window. */
const wide = { "scripted/*": { window: 1_000_000 } };

function told() {
  const events: Record<string, unknown>[] = [];
  onTestFinished(subscribe("chat:context:compacted", ({ payload }) => void events.push(payload)));
  return events;
}

const broken: [string, NonNullable<Setup["summary"]>][] = [
  ["fails", () => ({ error: refusal(401, "bad key") })],
  ["says nothing", () => "  "],
  ["writes more than it read", () => long("as long as before", 9_000)],
];

test.each(broken)("a summariser that %s does not lock the conversation", async (_, summary) => {
  const events = told();
  let works = false;
  const kit = await openSmall({
    ...{ answer: fits, settings: { modelLimits: wide } },
    summary: (call) => (works ? "## Goal\nKnown again." : summary(call)),
  });
  const agent = await kit.agent();
  await fill(kit, 1);
  agent.session.pin((await kit.stored())[0]?.id ?? "");
  await fill(kit, 4, 2);
  const rows = await kit.compactions();
  expect(rows.slice(0, 2)).toMatchObject([
    { status: "failed", kind: "summary", trigger: "error" },
    { status: "done", kind: "truncate", trigger: "error" },
  ]);
  expect(events[0]).toMatchObject({ kind: "truncate", leftOut: expect.any(Number), trigger: "error" });
  expect(events[0]?.why).toContain("left out of what the model reads; nothing was deleted");
  const request = shown(kit.turns().at(-1));
  expect(request).toContain("question 1 abc");
  expect(request).not.toContain(long("question 2", 1_000));
  expect(request).toContain("question 5 abc");
  expect(request).toContain("left out without a summary");
  expect(agent.listCompactions().find(({ inEffect }) => inEffect)).toMatchObject({
    ...{ kind: "truncate", leftOut: expect.any(Number), error: events.at(-1)?.why },
  });
  const before = shown(kit.turns().at(-1));

  works = true;
  await kit.restart();
  const asked = kit.summaries().length;
  expect(await kit.ask("short")).toMatchObject({ status: "completed" });
  const [made] = (await kit.compactions()).slice(-1);
  expect(made).toMatchObject({ status: "done", kind: "summary", trigger: "retry" });
  // It has read what had been left out.
  expect(kit.summaries().slice(asked).map(shown).join()).toContain("question 2 abc");
  expect((await kit.compactions()).filter(({ kind }) => kind === "truncate").map(({ status }) => status)).toEqual(
    rows.filter(({ kind }) => kind === "truncate").map((_one, i, all) => (i === all.length - 1 ? "undone" : "done")),
  );
  const after = shown(kit.turns().at(-1));
  expect(after).toContain("Known again.");
  expect(after).not.toContain("left out without a summary");
  // Undone, the request is what it was, to the byte.
  works = false;
  await (await kit.agent()).undoCompaction(made?.id ?? "");
  await kit.ask("and now");
  expect(shown(kit.turns().at(-1)).startsWith(before.slice(0, -1))).toBe(true);
});

test("a summariser that fails while the provider takes the request changes nothing", async () => {
  const kit = await openSmall({ summary: () => ({ error: refusal(401, "bad key") }) });
  await fill(kit, 6);
  const rows = await kit.compactions();
  expect(new Set(rows.map(({ status, kind }) => `${kind} ${status}`))).toEqual(new Set(["summary failed"]));
  for (let i = 1; i <= 6; i++) expect(shown(kit.turns().at(-1))).toContain(`question ${i} abc`);
});

test("a turn asks for a summary at most twice in vain, and goes on in every step", async () => {
  const kit = await openSmall({
    answer: (call) => {
      if (JSON.stringify(call.prompt).length > MOST) return { error: tooLong() };
      const last = JSON.stringify(call.prompt.at(-1));
      return call.userText === "go" && !last.includes("page 7 ")
        ? { toolCalls: [{ toolName: "read", input: { page: Number(/page (\d)/.exec(last)?.[1] ?? 0) + 1 } }] }
        : "Read.";
    },
    summary: () => ({ error: refusal(401, "bad key") }),
    tools: { read: serverTool<{ page: number }>(({ page }) => long(`page ${page} `, 1_500)) },
    settings: { maxSteps: 20 },
  });
  await fill(kit, 3);
  const before = kit.summaries().length;
  expect(await kit.ask("go")).toMatchObject({ status: "completed" });
  expect(kit.summaries().length - before).toBeLessThanOrEqual(2);
  const rows = await kit.compactions();
  expect(rows.filter(({ kind }) => kind === "truncate").length).toBeGreaterThan(1);
  for (const call of kit.turns().filter(({ userText }) => userText === "go")) {
    const said = call.prompt.filter(({ role }) => role !== "system");
    expect(said[0]?.role).toBe("user");
    expect(JSON.stringify(said)).toContain('"go"');
    const ids = (type: string) => JSON.stringify(said).match(new RegExp(`"type":"${type}","toolCallId":"[^"]+`, "g"));
    expect(ids("tool-result")?.length).toBe(ids("tool-call")?.length);
  }
});

test("what even that does not help ends the turn with the provider's word; the next one is not locked", async () => {
  let most = 500;
  const kit = await openSmall({
    answer: ({ prompt }) => (JSON.stringify(prompt).length > most ? { error: tooLong() } : "Yes."),
    summary: () => ({ error: refusal(401, "bad key") }),
    settings: { modelLimits: wide },
  });
  const agent = await kit.agent();
  most = MOST;
  await fill(kit, 3);
  most = 500;
  const end = await kit.ask(long("question 4", 1_000));
  expect(end).toMatchObject({ status: "error" });
  expect(end.error).toContain("longer than the model can read");
  expect(kit.turns().filter(({ userText }) => userText.startsWith("question 4"))).toHaveLength(2);
  most = MOST;
  expect(await kit.ask("short")).toMatchObject({ status: "completed" });
  expect(agent.listCompactions().filter(({ kind }) => kind === "truncate")).toHaveLength(1);
});

test("an app that wants no compaction gets none; maxRetries 0 leaves it to the provider", async () => {
  const null_ = await openSmall({
    ...{ answer: fits, settings: { modelLimits: wide } },
    extend: (Base) =>
      class extends Base {
        override configureSession(session: Session) {
          return session.onCompaction(() => null);
        }
      },
  });
  const none = await openSmall({
    ...{ answer: fits, summary: () => "", settings: { modelLimits: wide, contextOverflow: { maxRetries: 0 } } },
  });
  for (const kit of [null_, none]) {
    await fill(kit, 3);
    expect(await kit.ask(long("question 4", 1_000))).toMatchObject({ status: "error" });
    expect((await kit.compactions()).filter(({ kind }) => kind === "truncate")).toEqual([]);
    expect(kit.model.calls.filter(isSummary)).toEqual([]);
  }
});
