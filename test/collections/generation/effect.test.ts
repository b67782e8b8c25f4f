import { chat, toolDefinition } from "@tanstack/ai";
import { eq } from "@tanstack/db";
import {
  assembleText,
  createGenerationEffect,
  createToolExecutionEffect,
  durableChat,
  isCompleteAnswer,
  readChunks,
  rowsOf,
  streamToCollection,
} from "perdure/collections";
import type { GenerationRun } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { desk, is, pending, settled, until, user } from "./asks.ts";
import type { Desk } from "./asks.ts";

const echo = toolDefinition({ name: "echo", description: "Echoes.", inputSchema: z.object({ text: z.string() }) });

describe.each(backends)("generation effects on $name", (backend) => {
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

  test("requirement: Generation effects: the effect fires on query match, calls the user's generate function", async () => {
    const [here, there] = [await open(), await open()];
    const adapter = scriptedText(({ userText }) => `You said ${userText}`);
    const effect = keep(
      createGenerationEffect({
        ...pending(here),
        generate: (row, run) =>
          streamToCollection(chat({ adapter, messages: user(row.prompt) }), {
            collection: here.chunks,
            generationId: run.generationId,
            signal: run.signal,
            when: run.when,
          }),
      }),
    );
    await effect.ready;
    await there.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    await there.rows.insert({ id: "b", prompt: "no", status: "draft" });
    const row = await until(there, "a", settled);
    expect(row).toMatchObject({ status: "completed", answer: "You said hi", attempt: 1 });
    const chunks = readChunks(there.chunks, row!.generationId!);
    expect(isCompleteAnswer(chunks)).toBe(true);
    expect(assembleText(chunks)).toBe("You said hi");
    await effect.idle();
    expect(adapter.calls).toHaveLength(1);
    expect(there.rows.get("b")?.status).toBe("draft");
  });

  test("a failed try is repeated under a new generationId, so its chunks never mix with the next one's", async () => {
    const here = await open();
    const runs: GenerationRun[] = [];
    const adapter = scriptedText([{ text: "par", error: "overloaded" }, { text: "whole" }]);
    keep(
      createGenerationEffect({
        ...pending(here),
        // Even then: what has failed is not gone on with.
        resumable: true,
        generate: (row, run) => {
          runs.push(run);
          return streamToCollection(chat({ adapter, messages: user(row.prompt), debug: false }), {
            collection: here.chunks,
            generationId: run.generationId,
          });
        },
      }),
    );
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    const row = await until(here, "a", settled);
    expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2]);
    const [first, second] = runs.map(({ generationId }) => readChunks(here.chunks, generationId));
    expect(row).toMatchObject({ status: "completed", answer: "whole", generationId: runs[1]?.generationId });
    expect(row?.error).toBeUndefined();
    expect([assembleText(first!), isCompleteAnswer(first!)]).toEqual(["par", false]);
    expect([assembleText(second!), isCompleteAnswer(second!)]).toEqual(["whole", true]);
  });

  test("the last failure is written into the row, and told", async () => {
    const here = await open();
    const told: string[] = [];
    keep(
      createGenerationEffect({
        ...pending(here),
        generate: async () => {
          throw new Error("no luck");
        },
        onError: (row, error) => void told.push(`${row.id} ${error.message}`),
      }),
    );
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    expect(await until(here, "a", settled)).toMatchObject({ status: "failed", error: "no luck", attempt: 3 });
    expect(told).toEqual(["a no luck"]);
  });

  test("requirement: Cancellation: abort propagates from a row that another process cancels, down to the model", async () => {
    const [here, there] = [await open(), await open()];
    const told: string[] = [];
    const adapter = scriptedText([{ text: ["one ", new Promise(() => {}), "two"] }, "next"]);
    const effect = keep(
      createGenerationEffect({
        ...pending(here),
        generate: (row, { signal, generationId, when }) =>
          durableChat({
            adapter,
            messages: user(row.prompt),
            chunks: { collection: here.chunks },
            signal,
            generationId,
            when,
          }),
        onCancelled: (row, why) => void told.push(`${row.id} ${why}`),
      }),
    );
    await there.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    await until(there, "a", is("generating"));
    const watching = rowsOf(there.chunks);
    await new Promise<void>((resolve) => {
      const look = () => void (watching.all().some(({ content }) => content === "one ") && resolve());
      watching.subscribe(look);
      look();
    });
    await there.rows.update("a", (draft) => void (draft.status = "cancelled"));
    await there.rows.insert({ id: "b", prompt: "ho", status: "pending" });
    expect(await until(there, "b", settled)).toMatchObject({ status: "completed", answer: "next" });
    await effect.idle();
    expect(told).toEqual(["a cancelled"]);
    expect(there.rows.get("a")).toMatchObject({ status: "cancelled" });
    expect(there.rows.get("a")?.answer).toBeUndefined();
    expect(adapter.calls[0]?.status).toBe("aborted");
  });

  test("a row that is deleted stops its answer", async () => {
    const here = await open();
    const stopped = Promise.withResolvers<unknown>();
    keep(
      createGenerationEffect({
        ...pending(here),
        generate: (_row, { signal }) =>
          new Promise<string>((_, reject) => {
            signal.addEventListener("abort", () => {
              stopped.resolve(signal.reason);
              reject(new Error("stopped"));
            });
            void here.rows.delete("a");
          }),
      }),
    );
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    expect(await stopped.promise).toMatchObject({ code: "cancelled" });
    expect(here.rows.get("a")).toBeUndefined();
  });

  test("invariant 3: dispose aborts chat(), waits for it, and leaves the row to the next runner", async () => {
    const here = await open();
    const begun = Promise.withResolvers<void>();
    const adapter = scriptedText([{ text: ["one ", () => begun.resolve(), new Promise(() => {})] }]);
    const told: string[] = [];
    const effect = createGenerationEffect({
      ...pending(here),
      generate: async (row, { signal }) => {
        const abortController = new AbortController();
        signal.addEventListener("abort", () => abortController.abort());
        // It resolves with a part of the text: that is no answer.
        return chat({ adapter, messages: user(row.prompt), abortController, stream: false });
      },
      onComplete: () => void told.push("completed"),
      onCancelled: (_row, why) => void told.push(why),
    });
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    await begun.promise;
    await effect.dispose();
    expect(adapter.calls[0]?.status).toBe("aborted");
    expect(told).toEqual(["disposed"]);
    expect(here.rows.get("a")).toMatchObject({ status: "pending", attempt: 0 });
    const next = scriptedText(["whole"]);
    keep(
      createGenerationEffect({
        ...pending(here),
        generate: (row) => chat({ adapter: next, messages: user(row.prompt), stream: false }),
      }),
    );
    expect(await until(here, "a", settled)).toMatchObject({ status: "completed", answer: "whole", attempt: 1 });
  });

  test("a suspended answer waits in its row, its tool runs elsewhere, and a third process goes on", async () => {
    const [first, executor, third] = [await open(), await open(), await open()];
    const script = scriptedText(({ step, messages: history }) =>
      step === 0
        ? { text: "Wait. ", toolCalls: [{ id: "c1", name: "echo", input: { text: "x" } }] }
        : { text: `Got ${String(history.at(-1)?.content)}` },
    );
    let tries = 0;
    const runner = (at: Desk) =>
      keep(
        createGenerationEffect({
          ...pending(at, ["pending", "suspended"]),
          toolCalls: { collection: at.toolCalls },
          generate: (row, { signal, generationId, when }) => {
            tries++;
            return durableChat({
              adapter: script,
              messages: user(row.prompt),
              tools: [echo],
              toolCalls: { collection: at.toolCalls },
              chunks: { collection: at.chunks },
              turns: at.turns,
              mode: "suspend",
              signal,
              generationId,
              when,
            });
          },
        }),
      );
    const one = runner(first);
    await first.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    const suspended = await until(first, "a", is("suspended"));
    expect(suspended?.answer).toBeUndefined();
    await one.dispose();
    expect(first.rows.get("a")?.status).toBe("suspended");
    const two = runner(third);
    await two.idle();
    expect(script.calls).toHaveLength(1);
    keep(
      createToolExecutionEffect({
        query: (q) => q.from({ c: executor.toolCalls }).where(({ c }) => eq(c.status, "pending")),
        collection: executor.toolCalls,
        tools: [echo],
        implementations: { echo: async ({ text }) => `${text}!` },
      }),
    );
    const row = await until(third, "a", settled);
    expect(row).toMatchObject({
      status: "completed",
      answer: "Wait. Got x!",
      generationId: suspended?.generationId,
      attempt: 1,
    });
    expect(assembleText(readChunks(third.chunks, row!.generationId!))).toBe("Wait. Got x!");
    expect(script.calls).toHaveLength(2);
    expect(tries).toBe(2);
  });

  test("a suspended answer that is cancelled takes its calls with it", async () => {
    const [here, there] = [await open(), await open()];
    const calls = rowsOf(there.toolCalls);
    keep(
      createGenerationEffect({
        ...pending(here, ["pending", "suspended"]),
        toolCalls: { collection: here.toolCalls },
        generate: (row, { signal, generationId }) =>
          durableChat({
            adapter: scriptedText([{ toolCalls: [{ id: "c1", name: "echo", input: { text: "x" } }] }]),
            messages: user(row.prompt),
            tools: [echo],
            toolCalls: { collection: here.toolCalls },
            turns: here.turns,
            mode: "suspend",
            signal,
            generationId,
          }),
      }),
    );
    await there.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    await until(there, "a", is("suspended"));
    for (const { id } of calls.all()) await calls.update(id, (draft) => void (draft.updatedAt = "long ago"));
    await there.rows.update("a", (draft) => void (draft.status = "cancelled"));
    await new Promise<void>((resolve) => {
      const look = () => void (calls.all().every(({ status }) => status === "cancelled") && resolve());
      calls.subscribe(look);
      look();
    });
    expect(calls.all()).toHaveLength(1);
    expect(calls.all()[0]?.updatedAt).not.toBe("long ago");
  });
});
