import { createCollection, localOnlyCollectionOptions } from "@tanstack/db";
import { agentCollections, forgetGenerations, openLocalLog, rowsOf } from "perdure/collections";
import type { AgentCollections, ChunkRecord, GenerationRecord, RowLog, ToolCallRecord } from "perdure/collections";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { backends } from "../backends.ts";

const TIME = "2026-01-01T11:00:00.000Z";
/** More than go into one write. */
const MANY = 1_203;

const answer = (id: string, status: GenerationRecord["status"]): GenerationRecord => ({
  ...{ id, agentName: "x", model: "m", status, createdAt: TIME, updatedAt: TIME },
});
const chunksOf = (generationId: string, count: number): ChunkRecord[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{
      id: `${generationId}:${index}`,
      generationId,
      actorId: "x",
      index,
      type: "text",
      content: "w ",
      createdAt: TIME,
    },
  }));
const call = (id: string, generationId: string, status: ToolCallRecord["status"]): ToolCallRecord => ({
  ...{ id, generationId, name: "tool", args: {}, status, createdAt: TIME, updatedAt: TIME },
});

/** Two answers that are over and one under way, each with rows in all collections. */
async function fill(tables: AgentCollections): Promise<void> {
  await rowsOf(tables.generations).insertAll([
    answer("done", "completed"),
    answer("failed", "failed"),
    answer("busy", "suspended"),
  ]);
  for (const id of ["done", "failed", "busy"]) {
    await rowsOf(tables.chunks).insertAll(chunksOf(id, 3));
    await rowsOf(tables.turns).insertAll([
      { id: `${id}:head`, generationId: id, index: -1, chunkIndex: 3 },
      { id: `${id}:0`, generationId: id, index: 0, chunkIndex: 3 },
    ]);
    await rowsOf(tables.toolCalls).insertAll([call(`${id}:a`, id, "completed"), call(`${id}:b`, id, "executing")]);
  }
}

/** Whose rows are left. */
const left = (tables: AgentCollections) => ({
  generations: rowsOf(tables.generations)
    .all()
    .map(({ id }) => id),
  chunks: [
    ...new Set(
      rowsOf(tables.chunks)
        .all()
        .map(({ generationId }) => generationId),
    ),
  ],
  turns: [
    ...new Set(
      rowsOf(tables.turns)
        .all()
        .map(({ generationId }) => generationId),
    ),
  ],
  toolCalls: rowsOf(tables.toolCalls)
    .all()
    .map(({ id }) => id),
});

test("what workers leave goes with the answer that they were called for; that of one which you ran, when you say so", async () => {
  const tables = agentCollections(openLocalLog());
  const write = async (generationId: string, parentGenerationId?: string) => {
    const parent = parentGenerationId === undefined ? {} : { parentGenerationId };
    await rowsOf(tables.chunks).insertAll(chunksOf(generationId, 2).map((row) => ({ ...row, ...parent })));
    await rowsOf(tables.toolCalls).insert({ ...call(`${generationId}:x`, generationId, "completed"), ...parent });
  };
  await rowsOf(tables.generations).insertAll([answer("done", "completed"), answer("busy", "suspended")]);
  await write("done");
  await write("done:w", "done");
  await write("done:w:v", "done:w");
  await write("busy:w", "busy");
  await write("mine");
  expect(await forgetGenerations(tables)).toEqual({ chunks: 6, turns: 0, toolCalls: 3 });
  expect(left(tables).chunks).toEqual(["busy:w", "mine"]);
  expect(await forgetGenerations(tables, ["mine", "busy", "nobody"])).toEqual({ chunks: 2, turns: 0, toolCalls: 1 });
  expect(left(tables).chunks).toEqual(["busy:w"]);
});

describe.each(backends)("what finished answers leave: $name", ({ start }) => {
  const open = async (): Promise<[RowLog, RowLog]> => {
    const place = await start();
    onTestFinished(() => place.stop());
    return [await place.open(), await place.open()];
  };

  test("goes when it is told to, in one process and in all; answers under way keep all of theirs", async () => {
    const [one, other] = await open();
    const [here, there] = [agentCollections(one), agentCollections(other)];
    await fill(here);
    expect(await forgetGenerations(here, ["done", "busy", "nobody"])).toEqual({ chunks: 3, turns: 2, toolCalls: 1 });
    const expected = {
      generations: ["done", "failed", "busy"],
      chunks: ["failed", "busy"],
      turns: ["failed", "busy"],
      toolCalls: ["done:b", "failed:a", "failed:b", "busy:a", "busy:b"],
    };
    expect(left(here)).toEqual(expected);
    await Promise.all(Object.values(there).map((collection) => collection.preload()));
    await until(() => rowsOf(there.toolCalls).get("done:a") === undefined);
    expect(left(there)).toEqual(expected);
    expect(await forgetGenerations(there)).toEqual({ chunks: 3, turns: 2, toolCalls: 1 });
    expect(await forgetGenerations(there)).toEqual({ chunks: 0, turns: 0, toolCalls: 0 });
  });

  test("two processes at once, and many chunks: all of them go, and nobody fails", async () => {
    const [one, other] = await open();
    const [here, there] = [agentCollections(one), agentCollections(other)];
    await rowsOf(here.generations).insert(answer("long", "cancelled"));
    const all = chunksOf("long", MANY);
    for (let at = 0; at < MANY; at += 500) await rowsOf(here.chunks).insertAll(all.slice(at, at + 500));
    await Promise.all([there.chunks.preload(), there.generations.preload()]);
    await until(() => rowsOf(there.chunks).all().length === MANY);
    await Promise.all([forgetGenerations(here), forgetGenerations(there)]);
    await until(() => [here, there].every(({ chunks }) => rowsOf(chunks).all().length === 0));
    expect(left(there)).toMatchObject({ generations: ["long"], chunks: [] });
  });

  test("an answer that is taken up again meanwhile keeps its rows", async () => {
    const [one, other] = await open();
    const [here, there] = [agentCollections(one), agentCollections(other)];
    await fill(here);
    // It decides by what it has seen, and is told of the change by the refusal of its write.
    const write = one.write.bind(one);
    one.write = async (wanted) => {
      one.write = write;
      await rowsOf(there.generations).ready();
      await rowsOf(there.generations).update("failed", (draft) => void (draft.status = "pending"));
      return write(wanted);
    };
    expect(await forgetGenerations(here, ["failed"])).toEqual({ chunks: 0, turns: 0, toolCalls: 0 });
    expect(left(here).chunks).toEqual(["done", "failed", "busy"]);
  });
});

test("collections that are on no log, and only some of them", async () => {
  const { generations } = agentCollections(openLocalLog());
  const chunks = createCollection(localOnlyCollectionOptions<ChunkRecord, string>({ getKey: (row) => row.id }));
  await rowsOf(generations).insertAll([answer("done", "completed"), answer("busy", "generating")]);
  for (const id of ["done", "busy"]) await rowsOf(chunks).insertAll(chunksOf(id, 2));
  expect(await forgetGenerations({ generations, chunks })).toEqual({ chunks: 2, turns: 0, toolCalls: 0 });
  expect(
    rowsOf(chunks)
      .all()
      .map(({ id }) => id),
  ).toEqual(["busy:0", "busy:1"]);
});
