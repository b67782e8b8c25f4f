import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { answer, called, jobOn, measureOf, step, TestPath, text, user } from "../../test/context/paths.ts";
import { listCompactions } from "../store/compaction.ts";
import { readMessage, setPinned } from "../store/message.ts";
import type { Part } from "../message/types.ts";
import type { CompactionJob } from "./compaction-job.ts";
import { Compactor, CUT_OFF } from "./compactor.ts";
import { project } from "./view.ts";
import type { SummaryAnswer } from "./summarise.ts";

const long = (words: string, tokens = 1_000) => `${words} ${"abc ".repeat(tokens)}`;

async function open() {
  const { host, clock } = await probeHost();
  const path = new TestPath(host).add(
    user("u1", long("one")),
    answer("a1", text(long("two"))),
    user("u2", long("three")),
    answer("a2", text(long("four"))),
    user("u3", "five"),
  );
  const told: string[] = [];
  const compactor = new Compactor(host, (row) => told.push(row.status));
  const shown = () => JSON.stringify(project(path.view()));
  const rows = () => listCompactions(host, {}, 100).toReversed();
  return { host, clock, path, compactor, told, shown, rows };
}

/** A job whose model says this, and what it was asked. */
function asking(path: TestPath, says: SummaryAnswer | string, more: Partial<CompactionJob> = {}) {
  const prompts: string[] = [];
  const ask = ({ prompt }: { prompt: string }) => {
    prompts.push(prompt);
    return Promise.resolve(typeof says === "string" ? ({ kind: "text", text: says } as const) : says);
  };
  const job = jobOn(path, { summariser: { model: "test/small", room: 100_000, ask }, ...more });
  return { job, prompts };
}

const turn = { seq: 7, id: "request-7", step: 0 };

test("a compaction is begun, made, checked and done", async () => {
  const { path, compactor, told, shown, rows } = await open();
  const { job } = asking(path, "## Goal\nBe short.");
  const made = await compactor.run(job);
  expect(made.ok).toBe(true);
  expect(told).toEqual(["started", "done"]);
  const [row] = rows();
  expect(row).toMatchObject({ status: "done", kind: "summary", trigger: "manual", model: "test/small", parts: null });
  expect(row?.summary).toBe("## Goal\nBe short.");
  expect(row?.tokensAfter).toBeLessThan(0.8 * (row?.tokensBefore ?? 0));
  expect(shown()).toContain("Be short.");
  expect(shown()).not.toContain("two abc");
  expect(shown()).toContain("five");
});

test("one that does not make the request smaller comes to nothing", async () => {
  const { path, compactor, shown, rows } = await open();
  const before = shown();
  const made = await compactor.run(asking(path, long("a summary as long as all of it", 6_000)).job);
  expect(made).toMatchObject({ ok: false, tried: true });
  expect(rows().at(-1)).toMatchObject({ status: "failed" });
  expect(rows().at(-1)?.error).toMatch(/^It would not help: about \d+ tokens would become \d+\.$/);
  expect(shown()).toBe(before);
});

test("one that cannot help is not even asked for", async () => {
  const { path, compactor, shown, rows } = await open();
  const before = shown();
  const full = asking(path, "short", { measure: measureOf(10_000, 9_990) });
  expect(await compactor.run(full.job)).toMatchObject({ ok: false, tried: false });
  expect(full.prompts).toEqual([]);
  expect(rows()).toEqual([]);
  path.add(user("u4", long("x", 11_000)));
  const large = asking(path, "short", { trigger: "before", turn });
  await compactor.run(large.job);
  expect(large.prompts).toEqual([]);
  expect(rows()[0]?.error).toMatch(/would not (be enough|help)/);
  expect(shown().startsWith(before.slice(0, -1))).toBe(true);
});

test("a model that fails, throws or says nothing leaves the conversation as it was", async () => {
  const { path, compactor, shown, rows, told } = await open();
  const before = shown();
  await compactor.run(asking(path, { kind: "failed", error: "no key" }).job);
  await compactor.run(asking(path, "   ").job);
  const ask = () => Promise.reject(new Error("boom"));
  await compactor.run(jobOn(path, { summariser: { model: "m", room: 1e6, ask } }));
  expect(rows().map(({ status, error }) => [status, error])).toEqual([
    ["failed", "no key"],
    ["failed", "The model wrote an empty summary."],
    ["failed", "boom"],
  ]);
  expect(told.filter((status) => status === "failed")).toHaveLength(3);
  expect(shown()).toBe(before);
});

test("one that is stopped comes to nothing", async () => {
  const { path, compactor, shown, rows } = await open();
  const before = shown();
  const stop = new AbortController();
  const ask = () => {
    stop.abort(new Error("stop"));
    return Promise.resolve({ kind: "text", text: "late" } as const);
  };
  const made = await compactor.run(jobOn(path, { summariser: { model: "m", room: 1e6, ask }, signal: stop.signal }));
  expect(made).toMatchObject({ ok: false });
  expect(rows()[0]?.error).toBe("It was stopped.");
  expect(shown()).toBe(before);
});

test("what an earlier life had begun has come to nothing", async () => {
  const { host, path, compactor, rows, shown } = await open();
  const before = shown();
  const ask = () => new Promise<never>(() => {});
  void compactor.run(jobOn(path, { summariser: { model: "m", room: 1e6, ask } }));
  expect(rows()[0]?.status).toBe("started");
  new Compactor(host).closeOpen();
  expect(rows()[0]).toMatchObject({ status: "failed", error: CUT_OFF });
  expect(shown()).toBe(before);
});

test("the next summary takes in the last one, and says so", async () => {
  const { path, compactor, rows } = await open();
  await compactor.run(asking(path, "First facts.").job);
  path.add(
    answer("a3", text(long("six"))),
    user("u4", long("seven")),
    answer("a4", text(long("eight"))),
    user("u5", "x"),
  );
  const { job, prompts } = asking(path, "All facts.");
  await compactor.run(job);
  expect(prompts[0]).toContain("<prior-summary>\nFirst facts.\n</prior-summary>");
  expect(prompts[0]).not.toContain("one abc");
  expect(prompts[0]).toContain("six abc");
  const [first, second] = rows();
  expect(second).toMatchObject({ status: "done", prior: first?.seq });
});

test("pinned messages are shown word for word after it, and after the next one", async () => {
  const { host, path, compactor, shown } = await open();
  setPinned(host, readMessage(host, "a1")?.seq ?? 0, true);
  await compactor.run(asking(path, "First.").job);
  expect(shown()).toContain(JSON.stringify(answer("a1", text(long("two")))));
  path.add(answer("a3", text(long("six", 3_000))), user("u4", "y"));
  await compactor.run(asking(path, "Second.").job);
  expect(shown()).toContain("Second.");
  expect(shown()).toContain(JSON.stringify(answer("a1", text(long("two")))));
  expect(shown()).not.toContain("First.");
});

test("the focus reaches the model and the row", async () => {
  const { path, compactor, rows } = await open();
  const { job, prompts } = asking(path, "x", { focus: "the API key rotation" });
  await compactor.run(job);
  expect(prompts[0]).toContain("the API key rotation");
  expect(rows()[0]?.focus).toBe("the API key rotation");
});

test("a preview writes nothing; what was changed of it can be applied", async () => {
  const { path, compactor, shown, rows } = await open();
  const before = shown();
  const { job } = asking(path, "A draft.");
  const draft = await compactor.draft(job);
  expect(draft).toMatchObject({ summary: "A draft.", messageId: "a2", parts: null, problem: undefined });
  expect(draft.tokensAfter).toBeLessThan(draft.tokensBefore);
  expect(rows()).toEqual([]);
  expect(shown()).toBe(before);
  expect(compactor.apply(job, { ...draft, summary: "My own words." })).toMatchObject({ ok: true });
  expect(shown()).toContain("My own words.");
  expect(shown()).not.toContain("A draft.");
  expect(compactor.apply(job, draft)).toMatchObject({ ok: false, tried: false });
  expect(compactor.apply(job, { ...draft, summary: " ", messageId: "u3" })).toMatchObject({ ok: false });
});

test("undone, the conversation is what it was, to the byte, with what was said since", async () => {
  const { path, compactor, shown, rows } = await open();
  const before = shown();
  await compactor.run(asking(path, "Short.").job);
  path.add(answer("a3", text("later")));
  const [row] = rows();
  expect(compactor.undo(row?.id ?? "", path.view(), measureOf(10_000))).toMatchObject({ status: "undone" });
  expect(shown()).toBe(`${before.slice(0, -1)},${JSON.stringify(answer("a3", text("later")))}]`);
  expect(() => compactor.undo(row?.id ?? "", path.view(), measureOf(10_000))).toThrow("in effect");
  expect(() => compactor.undo("nope", path.view(), measureOf(10_000))).toThrow("no compaction");
});

test("only the one in effect is undone, and only while the rest fits; how much is missing is said", async () => {
  const { path, compactor, rows } = await open();
  await compactor.run(asking(path, "First.").job);
  path.add(answer("a3", text(long("six", 3_000))), user("u4", "y"));
  await compactor.run(asking(path, "Second.").job);
  const [first, second] = rows();
  expect(() => compactor.undo(first?.id ?? "", path.view(), measureOf(10_000))).toThrow("newer one");
  const now = (second?.tokensBefore ?? 0) - 100;
  expect(() => compactor.undo(second?.id ?? "", path.view(), measureOf(now))).toThrow(/about 10[01] tokens too long/);
  compactor.undo(second?.id ?? "", path.view(), measureOf(10_000));
  expect(path.view().compaction?.seq).toBe(first?.seq);
});

test("a turn is compacted once for each reason, unless it came further; a failure is not tried again", async () => {
  const { path, compactor, rows } = await open();
  expect(compactor.allowed(turn, "before", 10)).toBe(true);
  await compactor.run(asking(path, "Short.", { trigger: "before", turn }).job);
  expect(compactor.allowed(turn, "before", 10)).toBe(false);
  expect(compactor.allowed(turn, "error", 1)).toBe(true);
  expect(compactor.allowed({ seq: 7, step: 1 }, "before", 10)).toBe(true);
  expect(compactor.allowed({ seq: 7, step: 1 }, "before", 1)).toBe(false);
  expect(compactor.allowed({ seq: 8, step: 0 }, "before", 1)).toBe(true);
  await compactor.run(asking(path, "Short.", { trigger: "before", turn: { ...turn, step: 1 } }).job);
  expect(rows().at(-1)).toMatchObject({ status: "failed", turn: 7, step: 1 });
  expect(compactor.allowed({ seq: 7, step: 2 }, "before", 10)).toBe(false);
});

test("what is published late counts only if the conversation still goes that way", async () => {
  const { host, path, compactor, shown, rows } = await open();
  const begun = await compactor.prepare(asking(path, "Ahead of time.", { trigger: "background" }).job);
  expect(rows()[0]?.status).toBe("started");
  path.add(answer("a3", text("later")), user("u4", "still later"));
  if (!("seq" in begun)) throw new Error(begun.error);
  expect(compactor.publish(begun)).toMatchObject({ ok: true });
  expect(shown()).toContain("Ahead of time.");
  expect(shown()).toContain("still later");

  const other = new TestPath(host).add(user("v1", long("x", 3_000)), answer("b1", text(long("y"))), user("v2", "z"));
  const away = await compactor.prepare(asking(other, "Gone.").job);
  other.leaf = readMessage(host, "v1")?.parent ?? null;
  other.add(user("w1", "another way"));
  if (!("seq" in away)) throw new Error(away.error);
  expect(compactor.publish(away)).toMatchObject({ ok: false, error: expect.stringContaining("another way") });
});

test("of two that were begun together, the second comes to nothing", async () => {
  const { path, compactor } = await open();
  const one = await compactor.prepare(asking(path, "One.").job);
  const two = await compactor.prepare(asking(path, "Two.").job);
  if (!("seq" in one) || !("seq" in two)) throw new Error("not prepared");
  expect(compactor.publish(one)).toMatchObject({ ok: true });
  expect(compactor.publish(two)).toMatchObject({ ok: false, error: "Another one came first." });
});

test("live state, files and what was said meanwhile are put below the summary by code", async () => {
  const { host } = await probeHost();
  const path = new TestPath(host).add(
    user("u1", "the task"),
    answer(
      "a1",
      step,
      called("edit", "c1", long("x", 3_000), { path: "src/a.ts" }),
      { type: "steering-message", id: "u2", parts: [{ type: "text", text: "mind the tests" }] },
      step,
      called("read", "c2", long("y", 3_000)),
      step,
      called("read", "c3", "short"),
    ),
  );
  const live = () => ({ runs: [{ id: "r1", name: "Researcher" }] });
  const made = await new Compactor(host).run(asking(path, "Half way.", { open: true, live }).job);
  const text0 = made.ok ? (made.row.carried ?? "") : made.error;
  expect(text0).toContain("src/a.ts (edit)");
  expect(text0).toContain("mind the tests");
  expect(text0).toContain("Researcher, run r1");
  const shown = project(path.view());
  expect(shown.map(({ id }) => id)).toEqual([expect.stringContaining("compaction-"), "u1", "a1"]);
  expect(shown[2]?.parts).toEqual([step, called("read", "c3", "short")]);
});

test("files are remembered from compaction to compaction", async () => {
  const { host } = await probeHost();
  const read = (id: string, path: string) => answer(id, called("read", `c${id}`, long("x", 1_500), { path }));
  const path = new TestPath(host).add(user("u1", "go"), read("a1", "one.ts"), user("u2", "on"), read("a2", "two.ts"));
  const compactor = new Compactor(host);
  await compactor.run(asking(path.add(user("u3", "y")), "First.").job);
  await compactor.run(asking(path.add(read("a3", "three.ts"), user("u4", "z")), "Second.").job);
  const carried = path.view().compaction?.carried ?? "";
  expect(carried.indexOf("one.ts")).toBeGreaterThan(-1);
  expect(carried.indexOf("three.ts")).toBeGreaterThan(carried.indexOf("two.ts"));
});

test("outputs of tools are cleared first; if that is enough, no model is asked", async () => {
  const { host } = await probeHost();
  const path = new TestPath(host);
  for (let i = 0; i < 8; i++)
    path.add(user(`u${i}`, "read"), answer(`a${i}`, called("read", `c${i}`, long("z", 15_000), { i })));
  path.add(user("u9", "x"));
  const compactor = new Compactor(host);
  const { job, prompts } = asking(path, "x", { trigger: "before", turn, measure: measureOf(120_000) });
  const made = await compactor.run(job);
  expect(made).toMatchObject({ ok: true, row: { kind: "prune", status: "done", summary: null } });
  expect(prompts).toEqual([]);
  const shown = JSON.stringify(project(path.view()));
  expect(shown.match(/Cleared to make room/g)).toHaveLength(5);
  expect(compactor.undo(made.ok ? made.row.id : "", path.view(), measureOf(200_000))).toMatchObject({ kind: "prune" });
  expect(JSON.stringify(project(path.view()))).not.toContain("Cleared");
  const kept = await compactor.run({ ...job, keepAlways: () => true });
  expect(kept).toMatchObject({ ok: true, row: { kind: "summary" } });
});

test("an app can summarise by itself, up to a message of its choice, or leave it", async () => {
  const { path, compactor, shown, rows } = await open();
  const heard: unknown[] = [];
  const made = await compactor.run(
    jobOn(path, {
      focus: "boats",
      own: (messages, { focus }) => {
        heard.push(
          messages.map(({ id }) => id),
          focus,
        );
        return { summary: "Mine.", toMessageId: "a1" };
      },
    }),
  );
  expect(made).toMatchObject({ ok: true });
  expect(heard).toEqual([["u1", "a1", "u2", "a2", "u3"], "boats"]);
  expect(shown()).toContain("Mine.");
  expect(shown()).toContain("three abc");
  await compactor.run(jobOn(path, { own: () => null }));
  await compactor.run(jobOn(path, { own: () => ({ summary: "x", toMessageId: "a1" }) }));
  await compactor.run(jobOn(path, { own: () => Promise.reject(new Error("mine broke")) }));
  expect(
    rows()
      .slice(1)
      .map(({ error }) => error),
  ).toEqual([
    "onCompaction left it as it is.",
    "onCompaction named message a1, which is not shown to the model.",
    "mine broke",
  ]);
});

test("when there is nothing to cover, a turn is told once and a person at once", async () => {
  const { host } = await probeHost();
  const path = new TestPath(host).add(user("u1", "hello"));
  const compactor = new Compactor(host);
  expect(await compactor.run(asking(path, "x").job)).toMatchObject({ ok: false, tried: false });
  await expect(compactor.draft(asking(path, "x").job)).rejects.toThrow("nothing to summarise");
  expect(listCompactions(host, {}, 10)).toEqual([]);
  expect(await compactor.run(asking(path, "x", { trigger: "before", turn }).job)).toMatchObject({ tried: true });
  expect(compactor.allowed(turn, "before", 10)).toBe(false);
});

test.each(["whole", "in part"])(
  "what is pinned and an answer took in stays when that answer is covered %s",
  async (how) => {
    const { host } = await probeHost();
    const path = new TestPath(host);
    const said = { type: "steering-message", id: "s1", parts: [text("mind the pump")] } as unknown as Part;
    const steps = Array.from({ length: 6 }, (_, i) => [step, text(`${i} ${"abc ".repeat(700)}`)]).flat();
    path.add(user("u1", "go"), answer("a1", step, text("begin"), said, ...steps), user("s1", "mind the pump"));
    setPinned(host, path.leaf ?? 0, true);
    if (how === "whole") path.add(user("u2", `next ${"abc ".repeat(100)}`));
    const open = how === "in part";
    const made = await new Compactor(host).run(jobOn(path, { measure: measureOf(4_000), open }));
    expect(made.ok && (made.row.parts ?? 0) > 0).toBe(open);
    expect(made.ok).toBe(true);
    const pinned = project(path.view()).filter(({ id }) => id === "s1");
    expect(pinned).toMatchObject([{ parts: [{ text: "mind the pump" }] }]);
  },
);

test("nothing is left out where the request would not be shorter with what that adds to it", async () => {
  const { path, compactor, rows } = await open();
  const fail = asking(path, { kind: "failed", error: "no" }, { turn, trigger: "error" }).job;
  expect((await compactor.run(fail)).ok).toBe(false);
  const most = rows()[0]?.tokensBefore ?? 0;
  expect(compactor.truncate({ ...fail, measure: { ...fail.measure, added: most } })).toBeUndefined();
  expect(compactor.truncate({ ...fail, measure: { ...fail.measure, added: 10 } })?.kind).toBe("truncate");
});
