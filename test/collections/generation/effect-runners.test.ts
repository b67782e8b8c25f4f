import { chat } from "@tanstack/ai";
import { assembleText, createClaims, createGenerationEffect, rowsOf, streamToCollection } from "perdure/collections";
import type { GenerationRun } from "perdure/collections";
import type { RowCondition } from "perdure/collections/log";
import { scriptedText } from "perdure/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { mortal } from "./mortal.ts";
import { desk, pending, settled, until, user } from "./asks.ts";
import type { Ask, Desk } from "./asks.ts";

describe.each(backends)("runners on $name", (backend) => {
  let place: TestPlace;
  const effects: { dispose(): Promise<void> }[] = [];
  beforeEach(async () => {
    place = await backend.start();
  });
  afterEach(async () => {
    await Promise.all(effects.splice(0).map((effect) => effect.dispose()));
    await place.stop();
  });
  const open = async () => desk(await place.open());
  const keep = <T extends { dispose(): Promise<void> }>(effect: T): T => {
    effects.push(effect);
    return effect;
  };

  test("a try that a crash has left behind is tried again, under the same id if it can go on, and not for ever", async () => {
    const here = await open();
    const left = { prompt: "hi", status: "generating", generationId: "old" };
    await here.rows.insert({ id: "a", ...left, attempt: 1 });
    await here.rows.insert({ id: "b", ...left, attempt: 3 });
    const runs: string[] = [];
    const generate = async (row: Ask, { generationId, attempt }: GenerationRun) => {
      runs.push(`${row.id} ${attempt} ${generationId === "old"}`);
      return "whole";
    };
    const effect = keep(
      createGenerationEffect({ ...pending(here, ["pending", "generating"]), resumable: true, generate }),
    );
    expect(await until(here, "a", settled)).toMatchObject({ status: "completed", answer: "whole", attempt: 2 });
    expect(await until(here, "b", settled)).toMatchObject({ status: "failed" });
    await effect.dispose();
    await here.rows.insert({ id: "c", ...left });
    keep(createGenerationEffect({ ...pending(here, ["pending", "generating"]), generate }));
    expect(await until(here, "c", settled)).toMatchObject({ status: "completed" });
    expect(runs).toEqual(["a 2 true", "c 1 false"]);
  });

  test("a runner whose row was taken over writes nothing any more", async () => {
    const [here, there] = [await open(), await open()];
    const stored = rowsOf(there.chunks);
    const first = new Promise<void>((resolve) => {
      stored.subscribe(() => void (stored.all().some(({ content }) => content === "old ") && resolve()));
    });
    const takeOver = () => there.rows.update("a", (draft) => void (draft.generationId = "other"));
    const adapter = scriptedText([{ text: ["old ", () => first, takeOver, "never"] }]);
    const problems: Error[] = [];
    let before: readonly RowCondition[] = [];
    const effect = keep(
      createGenerationEffect({
        ...pending(here),
        onProblem: (error) => void problems.push(error),
        generate: (row, { generationId, when }) => {
          before = when();
          return streamToCollection(chat({ adapter, messages: user(row.prompt) }), {
            collection: here.chunks,
            generationId,
            when,
          });
        },
      }),
    );
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    await until(here, "a", (row) => row?.generationId === "other");
    await effect.idle();
    expect(problems).toMatchObject([{ code: "fenced" }]);
    expect(here.rows.get("a")).toMatchObject({ status: "generating", generationId: "other" });
    expect(assembleText(stored.all())).toBe("old ");
    const late = { id: "late", generationId: "late", index: 0, type: "text", content: "late" } as const;
    expect(await rowsOf(here.chunks).insert(late, { when: before })).toBe(false);
  });

  test("a runner that dies is succeeded by another, and what it still does is refused", async () => {
    const dying = mortal(await place.open());
    const [old, next] = [desk(dying), await open()];
    const begun = Promise.withResolvers<GenerationRun>();
    const runner = (at: Desk, owner: string, leaseMs: number, generate: (run: GenerationRun) => Promise<string>) => {
      const claims = createClaims({ collection: at.claims, owner, leaseMs });
      keep({ dispose: () => claims.dispose() });
      const options = pending(at, ["pending", "generating"]);
      keep(createGenerationEffect({ ...options, claims, generate: (_row, run) => generate(run) }));
    };
    // On a busy machine it may lose so short a lease, and take it again, before it dies.
    let tries = 0;
    runner(old, "old", 200, (run) => {
      tries = run.attempt;
      begun.resolve(run);
      return new Promise<string>((_, reject) => run.signal.addEventListener("abort", () => reject(new Error("dead"))));
    });
    await next.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    const { generationId, when } = await begun.promise;
    const conditions = when();
    dying.die();
    runner(next, "next", 30_000, async (run) => `try ${run.attempt}`);
    expect(await until(next, "a", settled)).toMatchObject({ status: "completed", answer: `try ${tries + 1}` });
    const late = streamToCollection(chat({ adapter: scriptedText(["late"]), messages: user("x") }), {
      collection: next.chunks,
      generationId,
      when: conditions,
    });
    await expect(late).rejects.toMatchObject({ code: "fenced" });
  });

  test("with claims many runners share the rows, and each is answered once", async () => {
    const places = [await open(), await open(), await open()];
    const calls: string[] = [];
    for (const [index, at] of places.entries()) {
      const claims = createClaims({ collection: at.claims, owner: `runner-${index}` });
      keep({ dispose: () => claims.dispose() });
      keep(
        createGenerationEffect({
          ...pending(at, ["pending", "generating"]),
          claims,
          generate: async (row, run) => {
            calls.push(row.id);
            expect(run.claim?.owner).toBe(`runner-${index}`);
            await Promise.resolve();
            return `answer to ${row.prompt}`;
          },
        }),
      );
    }
    const ids = Array.from({ length: 12 }, (_, n) => `r${n}`);
    for (const id of ids) await places[0]!.rows.insert({ id, prompt: id, status: "pending" });
    for (const id of ids) expect(await until(places[2]!, id, settled)).toMatchObject({ answer: `answer to ${id}` });
    expect(calls.toSorted()).toEqual(ids.toSorted());
  });

  test("without claims, too, of two who want a pending row one gets it", async () => {
    const places = [await open(), await open()];
    const made: string[] = [];
    const all = places.map((at) =>
      keep(createGenerationEffect({ ...pending(at), generate: async (row: Ask) => (made.push(row.id), "one") })),
    );
    await Promise.all(all.map((effect) => effect.ready));
    const ids = Array.from({ length: 10 }, (_, n) => `r${n}`);
    await places[0]!.rows.insertAll(ids.map((id) => ({ id, prompt: id, status: "pending" })));
    for (const id of ids) await until(places[1]!, id, settled);
    await Promise.all(all.map((effect) => effect.idle()));
    expect(made.toSorted()).toEqual(ids);
  });
});
