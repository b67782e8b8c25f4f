import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import type { UIMessage } from "../message/types.ts";
import { messagesUp, siblingsOf } from "../store/message.ts";
import { insertSession, readSession } from "../store/session.ts";
import { Transcript } from "./transcript.ts";
import { Transcripts } from "./transcripts.ts";

const user = (id: string, text = id): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });
const answer = (id: string, text = id): UIMessage => ({ id, role: "assistant", parts: [{ type: "text", text }] });
const ids = (transcript: Transcript) => transcript.list().map(({ id }) => id);

async function talk(...names: string[]) {
  const probe = await probeHost();
  const transcript = new Transcript(probe.host, "main");
  for (const id of names) transcript.put(id.startsWith("a") ? answer(id) : user(id));
  /** As another life would read it. */
  const fresh = () => new Transcript(probe.host, "main");
  return { ...probe, transcript, fresh };
}

test("what is set aside stays in the tree, and what stood behind it moves up", async () => {
  const { host, transcript, fresh } = await talk("q1", "a1", "q2", "a2", "q3");
  transcript.setAside(new Set(["a1", "a2"]));
  for (const view of [transcript, fresh()]) expect(ids(view)).toEqual(["q1", "q2", "q3"]);
  const [a1, q2] = [transcript.seqOf("a1"), transcript.seqOf("q2")];
  expect(siblingsOf(host, [a1 ?? 0], "main").map(({ seq }) => seq)).toEqual([a1, q2]);
  expect(transcript.get("a1")).toEqual(answer("a1"));
  transcript.put(answer("a3"));
  for (const view of [transcript, fresh()]) expect(ids(view)).toEqual(["q1", "q2", "q3", "a3"]);
});

test("setting the end aside makes the message before it the newest", async () => {
  const { transcript, fresh } = await talk("q1", "a1");
  transcript.setAside(new Set(["a1"]));
  expect(transcript.last()).toEqual(user("q1"));
  transcript.put(answer("a2"));
  for (const view of [transcript, fresh()]) expect(ids(view)).toEqual(["q1", "a2"]);
  transcript.cutAfter("a1");
  for (const view of [transcript, fresh()]) expect(ids(view)).toEqual(["q1", "a1"]);
});

test("an edit takes the id and the place; the old version keeps what was set aside behind it", async () => {
  const { host, transcript, fresh } = await talk("q1", "a1", "q2", "a2");
  transcript.setAside(new Set(["a1", "q2", "a2"]));
  transcript.edit(user("q1", "other words"));
  for (const view of [transcript, fresh()]) expect(view.list()).toEqual([user("q1", "other words")]);
  const old = messagesUp(host, transcript.seqOf("a2") ?? 0, 9).at(-1);
  expect(old?.id).not.toBe("q1");
  expect(JSON.parse(old?.body ?? "")).toEqual({ ...user("q1"), id: old?.id });
  expect(transcript.get(old?.id ?? "")).toEqual({ ...user("q1"), id: old?.id });
});

test("what still stands behind an edited message stands behind the new version", async () => {
  const { transcript, fresh } = await talk("q1", "a1", "q2");
  transcript.edit(user("q1", "other words"));
  for (const view of [transcript, fresh()])
    expect(view.list()).toEqual([user("q1", "other words"), answer("a1"), user("q2")]);
});

test("an edit of a message on another branch goes there", async () => {
  const { transcript, fresh } = await talk("q1", "a1", "q2");
  transcript.setAside(new Set(["q2"]));
  transcript.put(user("q3"));
  transcript.edit(user("q2", "again"));
  for (const view of [transcript, fresh()]) expect(ids(view)).toEqual(["q1", "a1", "q2"]);
  expect(transcript.last()).toEqual(user("q2", "again"));
});

test("what is moved to the end keeps its order, and nothing else moves", async () => {
  const { transcript, fresh } = await talk("q1", "w1", "a1", "w2", "q2");
  transcript.moveToEnd(new Set(["w2", "w1"]));
  for (const view of [transcript, fresh()]) expect(ids(view)).toEqual(["q1", "a1", "q2", "w1", "w2"]);
  transcript.moveToEnd(new Set(["nobody"]));
  expect(ids(fresh())).toEqual(["q1", "a1", "q2", "w1", "w2"]);
});

test("pages go up the branch that is shown", async () => {
  const { transcript } = await talk("q1", "a1", "q2", "a2");
  transcript.setAside(new Set(["q2", "a2"]));
  for (const id of ["q3", "a3", "q4"]) transcript.put(id.startsWith("a") ? answer(id) : user(id));
  const shown: string[] = [];
  let before: number | undefined;
  do {
    const page = transcript.page(2, before);
    shown.unshift(...(JSON.parse(page.json) as UIMessage[]).map(({ id }) => id));
    expect(page.seqs).toHaveLength(JSON.parse(page.json).length);
    before = page.before;
  } while (before !== undefined);
  expect(shown).toEqual(["q1", "a1", "q3", "a3", "q4"]);
});

test("the clock and the ids say nothing about the order", async () => {
  const { clock, transcript, fresh } = await talk();
  await clock.set(10 * 3_600_000);
  for (const id of ["z", "a-answer"]) transcript.put(id === "z" ? user(id) : answer(id));
  await clock.set(9 * 3_600_000);
  for (const id of ["m", "b"]) transcript.put(user(id));
  for (const view of [transcript, fresh()]) expect(ids(view)).toEqual(["z", "a-answer", "m", "b"]);
  expect(fresh().unanswered()).toEqual(["m", "b"]);
});

test("a limit counts the path; branches go with the message that they hang on", async () => {
  const { host } = await probeHost();
  const gone: string[] = [];
  const transcript = new Transcript(host, "main", { maxMessages: () => 4, removed: (id) => gone.push(id) });
  for (const id of ["q1", "a1"]) transcript.put(id.startsWith("a") ? answer(id) : user(id));
  transcript.setAside(new Set(["a1"]));
  for (const id of ["a2", "q2", "a3", "q3", "a4"]) {
    transcript.put(id.startsWith("a") ? answer(id) : user(id));
    transcript.trim();
  }
  expect(ids(new Transcript(host, "main"))).toEqual(["q2", "a3", "q3", "a4"]);
  expect(gone).toEqual(["a1", "a2"]);
  expect(host.sql("SELECT count(*) AS n FROM perdure_message")).toEqual([{ n: 4 }]);
});

test("two sessions over one tree: what one writes, the other reads", async () => {
  const { host } = await probeHost();
  const all = new Transcripts(host, {});
  const main = all.of("main");
  for (const id of ["q1", "a1"]) main.put(id.startsWith("a") ? answer(id) : user(id));
  insertSession(host, { id: "fork", leaf: main.leaf, parent: "main" }, 0);
  const fork = all.of("fork");
  expect(ids(fork)).toEqual(["q1", "a1"]);
  main.put(answer("a1", "better"));
  expect(fork.last()).toEqual(answer("a1", "better"));
  fork.put(user("q2"));
  main.put(user("q3"));
  expect([ids(main), ids(fork)]).toEqual([
    ["q1", "a1", "q3"],
    ["q1", "a1", "q2"],
  ]);
  main.clear();
  expect([ids(main), ids(fork)]).toEqual([[], ["q1", "a1", "q2"]]);
  expect(readSession(host, "fork")?.leaf).toBe(fork.leaf);
});

test("more is stored than is kept in memory, and all of it can be read", async () => {
  const { host } = await probeHost();
  const transcript = new Transcript(host, "main");
  const long = "x".repeat(400_000);
  for (let i = 0; i < 60; i++) transcript.put(user(`m${i}`, `${i} ${long}`));
  const newest = [...transcript.up()].slice(0, 2).map(({ id }) => id);
  expect(newest).toEqual(["m59", "m58"]);
  expect(transcript.get("m0")?.parts).toEqual([{ type: "text", text: `0 ${long}` }]);
  expect(ids(transcript)).toEqual(Array.from({ length: 60 }, (_, i) => `m${i}`));
  // The same again: what did not fit is read anew each time.
  expect(ids(transcript)).toHaveLength(60);
  transcript.put(user("m0", "short"));
  expect(transcript.list()[0]).toEqual(user("m0", "short"));
});
