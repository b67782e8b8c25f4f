import { createCollection, eq, localOnlyCollectionOptions } from "@tanstack/db";
import { createAgent, logCollectionOptions, openLocalLog, rowsOf } from "perdure/collections";
import type { ClaimRecord, QueryAgentConfig, RowLog } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { gate } from "./agent-session.ts";

interface Note {
  id: string;
  body: string;
  handled: boolean;
}

/** What one process has: a runner of the agent over its own view of the notes. */
function clerk(log: RowLog, answer: () => Promise<string>, more: Partial<QueryAgentConfig<Note>> = {}) {
  const notes = createCollection(logCollectionOptions<Note>({ log, name: "notes", getKey: (note) => note.id }));
  const rows = rowsOf(notes);
  const agent = createAgent<Note>({
    name: "clerk",
    instructions: "",
    adapter: scriptedText([]),
    pendingWork: (q) => q.from({ n: notes }).where(({ n }) => eq(n.handled, false)),
    buildMessages: async () => [],
    generate: answer,
    onResponse: async (_response, pending, { fence }) => {
      for (const { id } of pending) await rows.update(id, (note) => void (note.handled = true), fence);
    },
    ...more,
  });
  onTestFinished(() => agent.dispose());
  return { agent, rows };
}

describe.each(backends)("an agent with queries on $name", (backend) => {
  let place: TestPlace;
  beforeAll(async () => {
    place = await backend.start();
  });
  afterAll(() => place.stop());

  test("of two runners one works, without a word about claims; the other goes on when the first has left", async () => {
    const worked: string[] = [];
    const held = gate();
    const answer = (who: string) => async () => {
      worked.push(who);
      await held.opened;
      return `by ${who}`;
    };
    const one = clerk(await place.open(), answer("one"));
    const two = clerk(await place.open(), answer("two"));
    await Promise.all([one.agent.ready, two.agent.ready]);
    await one.rows.insert({ id: "a", body: "?", handled: false });
    await until(() => worked.length > 0);
    const [first, second] = worked[0] === "one" ? [one, two] : [two, one];
    await until(() => second.agent.state === "standby");
    held.open();
    await until(() => first.rows.get("a")?.handled);
    expect(worked).toHaveLength(1);
    await first.agent.dispose();
    await second.rows.insert({ id: "b", body: "?", handled: false });
    await until(() => second.rows.get("b")?.handled);
    expect(worked).toHaveLength(2);
    expect(new Set(worked).size).toBe(2);
  });
});

test("with claims: false there are none, and on a collection without a log there can be none", async () => {
  const log = openLocalLog();
  const free = clerk(log, async () => "x", { claims: false });
  await free.rows.insert({ id: "a", body: "?", handled: false });
  await until(() => free.rows.get("a")?.handled);
  const claims = createCollection(logCollectionOptions<ClaimRecord>({ log, name: "claims", getKey: (row) => row.id }));
  expect(rowsOf(claims).all()).toEqual([]);
  const notes = createCollection(localOnlyCollectionOptions<Note>({ id: "notes", getKey: (note) => note.id }));
  const { agent } = clerk(log, async () => "x", {
    pendingWork: (q) => q.from({ n: notes }).where(({ n }) => eq(n.handled, false)),
    onResponse: async (_response, pending) => {
      for (const { id } of pending) notes.update(id, (note) => void (note.handled = true));
    },
  });
  notes.insert({ id: "b", body: "?", handled: false });
  await agent.ready;
  await until(() => notes.get("b")?.handled);
});
