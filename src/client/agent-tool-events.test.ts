import { expect, test } from "vitest";
import type { UIMessageChunk } from "../message/types.ts";
import type { AgentToolEvent } from "../wire/agent-tool-frames.ts";
import { AgentToolEvents } from "./agent-tool-events.ts";

/** Runs of an agent that says what the test wants. */
function listening() {
  const agent = new EventTarget() as EventTarget & ConstructorParameters<typeof AgentToolEvents>[0];
  const runs = new AgentToolEvents(agent, () => 1000);
  const changes: boolean[] = [];
  runs.subscribe((urgent) => changes.push(urgent));
  const raw = (data: unknown) => void agent.dispatchEvent(new MessageEvent("message", { data }));
  const tell = (sequence: number, event: AgentToolEvent, replay?: true) =>
    raw(JSON.stringify({ type: "agent-tool-event", parentToolCallId: "call", sequence, replay, event }));
  return {
    runs,
    changes,
    raw,
    start: (runId = "r", replay?: true) => tell(0, { kind: "started", runId, agentType: "R", order: 0 }, replay),
    chunk: (
      sequence: number,
      chunk: UIMessageChunk,
      more: { runId?: string; replay?: true; unstoredId?: string } = {},
    ) => {
      const { runId = "r", replay, unstoredId } = more;
      tell(sequence, { kind: "chunk", runId, body: JSON.stringify(chunk), unstoredId }, replay);
    },
    tell,
    parts: (runId = "r") => runs.getSnapshot().runsById[runId]?.parts,
    text: (runId = "r") =>
      runs.getSnapshot().runsById[runId]?.parts.map((part) => (part.type === "text" ? part.text : `<${part.type}>`)),
  };
}

const open: UIMessageChunk = { type: "text-start", id: "t" };
const say = (delta: string): UIMessageChunk => ({ type: "text-delta", id: "t", delta });

test("what the child says becomes the parts of a message", () => {
  const { start, chunk, parts, runs } = listening();
  start();
  const chunks: UIMessageChunk[] = [
    { type: "start", messageId: "m" },
    { type: "start-step" },
    { type: "reasoning-start", id: "t" },
    { type: "reasoning-delta", id: "t", delta: "hm" },
    { type: "reasoning-end", id: "t" },
    { type: "tool-input-available", toolCallId: "c", toolName: "search", input: { q: "x" } },
    { type: "tool-output-available", toolCallId: "c", output: 3 },
    { type: "tool-input-available", toolCallId: "d", toolName: "any", input: {}, dynamic: true },
    open,
    say("hi"),
    { type: "text-end", id: "t" },
    { type: "data-note", id: "n", data: 1 },
    { type: "data-note", id: "n", data: 2 },
    { type: "finish" },
  ];
  chunks.forEach((one, index) => chunk(index + 1, one));
  expect(parts()).toEqual([
    { type: "step-start" },
    { type: "reasoning", id: "t", text: "hm", state: "done" },
    {
      type: "tool-search",
      toolName: "search",
      toolCallId: "c",
      state: "output-available",
      input: { q: "x" },
      output: 3,
    },
    { type: "dynamic-tool", toolName: "any", toolCallId: "d", state: "input-available", input: {} },
    { type: "text", text: "hi", state: "done" },
    { type: "data-note", id: "n", data: 2 },
  ]);
  expect(runs.getSnapshot().runsByToolCallId.call).toEqual([runs.getSnapshot().runsById.r]);
});

test("a replay after a reconnect changes nothing, and brings what was missed", () => {
  const { start, chunk, tell, text, runs, changes } = listening();
  start();
  chunk(1, open);
  chunk(2, say("one "));
  const before = runs.getSnapshot();
  start("r", true);
  chunk(1, open, { replay: true });
  chunk(2, say("one "), { replay: true });
  expect(runs.getSnapshot()).toBe(before);
  expect(changes).toHaveLength(3);
  chunk(3, say("two "), { replay: true });
  chunk(3, say("two "));
  chunk(4, say("three"));
  expect(text()).toEqual(["one two three"]);
  tell(5, { kind: "finished", runId: "r", summary: "s" });
  const ended = runs.getSnapshot();
  tell(5, { kind: "finished", runId: "r", summary: "s" }, true);
  start("r", true);
  expect(runs.getSnapshot()).toBe(ended);
});

test("chunks that are not stored share a number with the next that is", () => {
  const { start, chunk, text, runs } = listening();
  start();
  chunk(1, open);
  const far = (id: string, fraction: number) =>
    chunk(2, { type: "data-agent-progress", id, transient: true, data: { fraction } });
  far("p1", 0.1);
  far("p2", 0.2);
  far("p1", 0.1);
  chunk(2, { type: "data-agent-milestone", data: { name: "m", sequence: 0, at: 1 } });
  chunk(2, say("long "), { unstoredId: "u1" });
  chunk(2, say("long "), { unstoredId: "u1" });
  chunk(2, say("longer "), { unstoredId: "u2" });
  chunk(2, say("stored"));
  expect(text()).toEqual(["long longer stored", "<data-agent-milestone>"]);
  expect(runs.getSnapshot().runsById.r).toMatchObject({
    progress: { fraction: 0.2 },
    milestones: [{ name: "m", sequence: 0 }],
  });
  chunk(2, { type: "data-agent-milestone", data: { name: "m", sequence: 0, at: 1 } }, { replay: true });
  expect(text()).toHaveLength(2);
});

test("progress without an id is known by what it says", () => {
  const { start, raw, runs, changes } = listening();
  start();
  const far = (fraction: number) => {
    const body = JSON.stringify({ type: "data-agent-progress", transient: true, data: { fraction } });
    raw(JSON.stringify({ type: "agent-tool-event", sequence: 1, event: { kind: "chunk", runId: "r", body } }));
  };
  far(0.1);
  far(0.2);
  far(0.1);
  expect(runs.getSnapshot().runsById.r?.progress).toEqual({ fraction: 0.2, at: 1000 });
  expect(changes).toHaveLength(3);
});

test("a chunk that comes before its run is taken when it comes again", () => {
  const { start, chunk, text } = listening();
  chunk(2, say("lost?"));
  expect(text()).toBeUndefined();
  start("r", true);
  chunk(1, open, { replay: true });
  chunk(2, say("lost?"), { replay: true });
  expect(text()).toEqual(["lost?"]);
});

test("runs do not disturb each other, and one that did not change stays the same object", () => {
  const { start, chunk, text, runs } = listening();
  for (const id of ["a", "b"]) {
    start(id);
    chunk(1, open, { runId: id });
  }
  const { b } = runs.getSnapshot().runsById;
  chunk(2, say("A"), { runId: "a" });
  expect([text("a"), text("b")]).toEqual([["A"], [""]]);
  expect(runs.getSnapshot().runsById.b).toBe(b);
});

test("what was returned does not change", () => {
  const { start, chunk, runs } = listening();
  start();
  chunk(1, open);
  chunk(2, say("a"));
  const before = runs.getSnapshot();
  const copy = structuredClone(before);
  chunk(3, say("b"));
  expect(runs.getSnapshot()).not.toBe(before);
  expect(before).toEqual(copy);
});

test("beginnings and ends are urgent, what is said is not", () => {
  const { start, chunk, tell, changes } = listening();
  start();
  chunk(1, open);
  tell(2, { kind: "error", runId: "r", error: "boom" });
  chunk(3, { type: "finish" });
  expect(changes).toEqual([true, false, true]);
});

test("reset forgets runs and what was heard of them; a replay brings them back", () => {
  const { start, chunk, text, runs, changes } = listening();
  start();
  chunk(1, open);
  chunk(2, say("x"));
  runs.reset();
  expect(runs.getSnapshot()).toEqual({ runsById: {}, runsByToolCallId: {}, unboundRuns: [] });
  expect(changes.at(-1)).toBe(true);
  chunk(3, say("y"));
  start("r", true);
  [open, say("x"), say("y")].forEach((one, index) => chunk(index + 1, one, { replay: true }));
  expect(text()).toEqual(["xy"]);
});

test("after close nothing is heard, and what was stays", () => {
  const { start, runs, changes } = listening();
  start();
  runs.close();
  start("s");
  expect(Object.keys(runs.getSnapshot().runsById)).toEqual(["r"]);
  expect(changes).toEqual([true]);
});

test("one who left is not told", () => {
  const { start, runs } = listening();
  let told = 0;
  const leave = runs.subscribe(() => told++);
  start();
  leave();
  start("s");
  expect(told).toBe(1);
});

const event = (fields: unknown) => ({ type: "agent-tool-event", sequence: 1, event: fields });
const garbage: readonly unknown[] = [
  undefined,
  new ArrayBuffer(2),
  "",
  "agent-tool-event",
  '"agent-tool-event"',
  '["agent-tool-event"]',
  '{"type":"agent-tool-event"',
  { type: "agent-tool-event" },
  { type: "other", note: "agent-tool-event", event: { kind: "finished", runId: "r", summary: "" } },
  event(null),
  event([]),
  event("finished"),
  event({ kind: "finished" }),
  event({ kind: "finished", runId: "" }),
  event({ kind: "finished", runId: 1 }),
  event({ kind: "danced", runId: "r" }),
  event({ runId: "r" }),
  event({ kind: "started", runId: "x" }),
  event({ kind: "chunk", runId: "r" }),
  event({ kind: "chunk", runId: "r", body: 5 }),
  event({ kind: "chunk", runId: "r", body: "{" }),
  event({ kind: "chunk", runId: "r", body: "5" }),
  event({ kind: "chunk", runId: "r", body: "null" }),
  event({ kind: "chunk", runId: "r", body: '{"type":"text-delta","id":"t"}' }),
  event({ kind: "chunk", runId: "r", body: '{"type":5}' }),
  {
    type: "agent-tool-event",
    sequence: "1",
    event: { kind: "chunk", runId: "r", body: '{"type":"text-start","id":"t"}' },
  },
];

test.each(garbage.map((data) => [typeof data === "object" ? JSON.stringify(data) : data]))("garbage: %s", (data) => {
  const { start, raw, runs, changes } = listening();
  start();
  const before = runs.getSnapshot();
  raw(data);
  expect(runs.getSnapshot()).toBe(before);
  expect(changes).toEqual([true]);
});
