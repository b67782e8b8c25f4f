import { toolDefinition } from "@tanstack/ai";
import { createCollection } from "@tanstack/db";
import {
  assembleText,
  durableChat,
  isCompleteAnswer,
  logCollectionOptions,
  openLocalLog,
  readChunks,
  rowsOf,
} from "perdure/collections";
import type { ChunkRecord, RowLog, ToolCallRecord, TurnRecord } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import type { TextScript } from "perdure/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import type { TestPlace } from "../backends.ts";
import { mortal } from "./mortal.ts";

const messages = [{ role: "user" as const, content: "Go." }];
const input = z.object({ q: z.string() });
const search = toolDefinition({ name: "search", description: "Searches.", inputSchema: input });
const lookUp = toolDefinition({ name: "lookUp", description: "Looks up.", inputSchema: input });
const tools = [search, lookUp];
const call = (id: string, name = "search") => ({ id, name, input: { q: id } });
/** The model calls the tools of the first turn, and then says what they gave. */
const script: TextScript = ({ step, messages: history }) =>
  step === 0
    ? { text: "Let me see. ", toolCalls: [call("c1"), call("c2", "lookUp")] }
    : {
        text: [
          "Found: ",
          history
            .filter(({ role }) => role === "tool")
            .map(({ content }) => content)
            .join(", "),
        ],
      };

/** What one process has of the place. */
function desk(log: RowLog) {
  const table = <TRow extends { id: string }>(name: string) =>
    createCollection(logCollectionOptions<TRow>({ log, name, getKey: (row) => row.id }));
  const toolCalls = table<ToolCallRecord>("toolCalls");
  const chunks = table<ChunkRecord>("chunks");
  const turns = table<TurnRecord>("turns");
  return {
    log,
    toolCalls,
    chunks,
    turns,
    stores: { toolCalls: { collection: toolCalls }, chunks: { collection: chunks }, turns },
  };
}

/** Executes what is pending, as somebody else would. */
async function execute({ toolCalls }: ReturnType<typeof desk>, only?: string): Promise<void> {
  const rows = rowsOf(toolCalls);
  await rows.ready();
  for (const row of rows.all().filter(({ status, name }) => status === "pending" && (only ?? name) === name)) {
    await rows.update(row.id, (draft) => Object.assign(draft, { status: "completed", result: `${row.name}!` }));
  }
}

const arrived = (work: () => boolean, subscribe: (listener: () => void) => () => void) =>
  new Promise<void>((resolve) => {
    const look = () => {
      if (!work()) return;
      stop();
      resolve();
    };
    const stop = subscribe(look);
    queueMicrotask(look);
  });

describe.each(backends)("durableChat on $name", (backend) => {
  let place: TestPlace;
  beforeEach(async () => {
    place = await backend.start();
  });
  afterEach(() => place.stop());
  const open = async () => desk(await place.open());

  test("hold: the run waits for results that another process writes, and its chunks are final", async () => {
    const [here, there] = [await open(), await open()];
    const rows = rowsOf(there.toolCalls);
    const stop = rows.subscribe(() => void execute(there));
    const adapter = scriptedText(script);
    const result = await durableChat({ adapter, messages, tools, ...here.stores, generationId: "g1" });
    stop();
    expect(result).toMatchObject({ outcome: "completed", content: "Let me see. Found: search!, lookUp!" });
    const chunks = readChunks(there.chunks, "g1");
    expect(assembleText(chunks)).toBe(result.content);
    expect(isCompleteAnswer(chunks)).toBe(true);
    expect(result.chunks).toBe(chunks.length);
    expect(result.messages.map(({ role }) => role)).toEqual(["assistant", "tool", "tool", "assistant"]);
  });

  test("suspend: the run ends with all calls pending at once, others execute them, a third process goes on", async () => {
    const first = await open();
    const adapter = scriptedText(script);
    const settings = { messages, tools, generationId: "g1", mode: "suspend" } as const;
    const suspended = await durableChat({ adapter, ...settings, ...first.stores });
    expect(suspended).toMatchObject({ outcome: "suspended", pending: ["g1:c1", "g1:c2"], interrupts: [] });
    expect(isCompleteAnswer(readChunks(first.chunks, "g1"))).toBe(false);

    const second = await open();
    expect(rowsOf(second.toolCalls).all()).toMatchObject([
      { id: "g1:c1", name: "search", args: { q: "c1" }, status: "pending", generationId: "g1" },
      { id: "g1:c2", name: "lookUp", status: "pending" },
    ]);
    const unused = scriptedText([]);
    expect(await durableChat({ adapter: unused, ...settings, ...second.stores })).toMatchObject({
      outcome: "suspended",
      pending: ["g1:c1", "g1:c2"],
    });
    await execute(second, "lookUp");
    expect(await durableChat({ adapter: unused, ...settings, ...second.stores })).toMatchObject({ pending: ["g1:c1"] });
    await execute(second);
    expect(unused.calls).toHaveLength(0);

    const third = await open();
    const other = scriptedText(script);
    const result = await durableChat({ adapter: other, ...settings, ...third.stores });
    expect(result).toMatchObject({
      outcome: "completed",
      content: "Let me see. Found: search!, lookUp!",
      lastText: "Found: search!, lookUp!",
    });
    expect([adapter.calls.length, other.calls.length]).toEqual([1, 1]);
    const chunks = readChunks(first.chunks, "g1");
    expect(chunks.map(({ index }) => index)).toEqual([...chunks.keys()]);
    expect(assembleText(chunks)).toBe(result.content);
    expect(isCompleteAnswer(chunks)).toBe(true);
    expect(chunks.filter(({ isFinal }) => isFinal)).toHaveLength(1);

    const again = await durableChat({ adapter: unused, ...settings, ...first.stores });
    expect(again).toMatchObject({ outcome: "completed", content: result.content, chunks: chunks.length });
    expect(unused.calls).toHaveLength(0);
  });

  test("suspend: tools with an implementation run in the same turn, and their results are kept", async () => {
    const here = await open();
    let ran = 0;
    const local = toolDefinition({ name: "local", description: "Runs here.", inputSchema: input }).server(async () => {
      ran++;
      return "local!";
    });
    const adapter = scriptedText(({ step, messages: history }) =>
      step === 0
        ? { toolCalls: [call("c1", "local"), call("c2")] }
        : {
            text: history
              .filter(({ role }) => role === "tool")
              .map(({ content }) => content)
              .join("+"),
          },
    );
    const settings = { adapter, messages, tools: [local, search], generationId: "g1", mode: "suspend" } as const;
    expect(await durableChat({ ...settings, ...here.stores })).toMatchObject({ pending: ["g1:c2"] });
    await execute(here);
    expect(await durableChat({ ...settings, ...(await open()).stores })).toMatchObject({ content: "local!+search!" });
    expect(ran).toBe(1);
  });

  test("a crash in the middle of a turn: the next run keeps the turns before it, and repeats only that one", async () => {
    const log = mortal(await place.open());
    const dying = desk(log);
    const there = await open();
    const stop = rowsOf(there.toolCalls).subscribe(() => void execute(there));
    const seen = rowsOf(there.chunks);
    const half = arrived(() => seen.all().some(({ content }) => content === "half "), seen.subscribe);
    const adapter = scriptedText(({ step }) =>
      step === 0
        ? { text: "Let me see. ", toolCalls: [call("c1")] }
        : { text: ["half ", () => half, () => log.die(), "never"] },
    );
    const settings = { messages, tools, generationId: "g1" };
    await expect(durableChat({ adapter, ...settings, ...dying.stores })).rejects.toMatchObject({
      code: "disconnected",
    });
    stop();
    expect(assembleText(readChunks(there.chunks, "g1"))).toBe("Let me see. half ");

    const next = scriptedText([{ text: "whole." }]);
    const result = await durableChat({ adapter: next, ...settings, ...there.stores });
    expect(result).toMatchObject({ outcome: "completed", content: "Let me see. whole." });
    expect(next.calls[0]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    const chunks = readChunks(there.chunks, "g1");
    expect(assembleText(chunks)).toBe(result.content);
    expect(isCompleteAnswer(chunks)).toBe(true);
  });

  test("an earlier run that still lives is shut out by the next one, at once", async () => {
    const [old, next] = [await open(), await open()];
    const settings = { messages, generationId: "g1" };
    const [chunks, turns] = [rowsOf(next.chunks), rowsOf(next.turns)];
    const oldDone = Promise.withResolvers<void>();
    const newer = scriptedText([{ text: [oldDone.promise, "new"] }]);
    let result: Promise<unknown> | undefined;
    const takeOver = async () => {
      result = durableChat({ adapter: newer, ...settings, ...next.stores });
      await arrived(() => turns.get("g1:head")?.run === 2, turns.subscribe);
      await arrived(() => chunks.all().every(({ content }) => content !== "old "), chunks.subscribe);
    };
    const stored = arrived(() => chunks.all().some(({ content }) => content === "old "), chunks.subscribe);
    const adapter = scriptedText([{ text: ["old ", () => stored, takeOver, "zombie"] }]);
    await expect(durableChat({ adapter, ...settings, ...old.stores })).rejects.toMatchObject({ code: "fenced" });
    oldDone.resolve();
    expect(await result).toMatchObject({ outcome: "completed", content: "new" });
    expect(assembleText(readChunks(old.chunks, "g1"))).toBe("new");
  });

  test("of two runs that store no chunks only the later one has the answer", async () => {
    const [old, next] = [await open(), await open()];
    const settings = { messages, generationId: "g1" };
    const oldDone = Promise.withResolvers<void>();
    const rows = rowsOf(next.turns);
    let result: Promise<unknown> | undefined;
    const takeOver = async () => {
      await arrived(() => rows.get("g1:head")?.run === 1, rows.subscribe);
      const adapter = scriptedText([{ text: [oldDone.promise, "new"] }]);
      result = durableChat({ adapter, ...settings, turns: next.turns });
      await arrived(() => rows.get("g1:head")?.run === 2, rows.subscribe);
    };
    const adapter = scriptedText([{ text: ["old", takeOver] }]);
    await expect(durableChat({ adapter, ...settings, turns: old.turns })).rejects.toMatchObject({ code: "fenced" });
    oldDone.resolve();
    expect(await result).toMatchObject({ outcome: "completed", content: "new" });
  });
});

describe("durableChat", () => {
  test("an abort is never an answer, and cancels the calls that it waited for", async () => {
    const here = desk(openLocalLog());
    const abortController = new AbortController();
    const rows = rowsOf(here.toolCalls);
    const stop = rows.subscribe(() => abortController.abort());
    const adapter = scriptedText(script);
    const settings = { adapter, messages, tools, generationId: "g1", abortController };
    await expect(durableChat({ ...settings, ...here.stores })).rejects.toMatchObject({ code: "cancelled" });
    stop();
    await arrived(() => rows.get("g1:c1")?.status === "cancelled", rows.subscribe);
    expect(adapter.calls).toHaveLength(1);
    await expect(durableChat({ ...settings, ...here.stores })).rejects.toMatchObject({ code: "cancelled" });
    expect(adapter.calls).toHaveLength(1);
  });

  test("approvals of TanStack AI end it as suspended, and are answered with resume", async () => {
    const here = desk(openLocalLog());
    let ran = 0;
    const risky = toolDefinition({ name: "risky", description: "Asks.", needsApproval: true }).server(
      async () => ++ran,
    );
    const adapter = scriptedText(({ step }) => (step === 0 ? { toolCalls: [{ id: "c1", name: "risky" }] } : "Done."));
    const settings = { adapter, messages, tools: [risky], generationId: "g1", turns: here.turns };
    const suspended = await durableChat(settings);
    if (suspended.outcome !== "suspended") throw new Error("it did not ask");
    expect(suspended).toMatchObject({ content: "", pending: [], interrupts: [{ id: "approval_c1" }] });
    const [asked] = suspended.interrupts;
    const resume = [
      { interruptId: asked!.id, status: "resolved" as const, payload: { approved: true }, metadata: asked!.metadata },
    ];
    const result = await durableChat({ ...settings, parentRunId: suspended.runId, resume });
    expect(result).toMatchObject({ outcome: "completed", content: "Done." });
    expect(ran).toBe(1);
  });

  test("the limit of the agent loop is an error, and so is suspend without turns", async () => {
    const here = desk(openLocalLog());
    const local = toolDefinition({ name: "local", description: "Runs here." }).server(async () => 1);
    const adapter = scriptedText(() => ({ toolCalls: [{ name: "local" }] }));
    await expect(durableChat({ adapter, messages, tools: [local] })).rejects.toMatchObject({ code: "limit" });
    const { turns: _turns, ...stores } = here.stores;
    await expect(durableChat({ adapter, messages, tools, mode: "suspend", ...stores })).rejects.toMatchObject({
      code: "bad_config",
    });
  });
});

test("generationId of chunks names the answer; another one beside it is refused before anything happens", async () => {
  const { stores, chunks, turns } = desk(openLocalLog());
  const adapter = scriptedText(["Owls."]);
  const named = { ...stores, chunks: { collection: chunks, generationId: "gen-123" } };
  const first = await durableChat({ adapter, messages, ...named });
  expect(first).toMatchObject({ generationId: "gen-123", content: "Owls." });
  expect(assembleText(readChunks(chunks, "gen-123"))).toBe("Owls.");
  const again = await durableChat({ adapter, messages, ...named, generationId: "gen-123" });
  expect(again).toMatchObject({ generationId: "gen-123", content: "Owls." });
  const two = durableChat({ adapter, messages, ...named, generationId: "gen-4" });
  await expect(two).rejects.toMatchObject({ code: "bad_config", message: expect.stringContaining('"gen-123"') });
  expect(adapter.calls).toHaveLength(1);
  expect(
    rowsOf(turns)
      .all()
      .every((row) => row.generationId === "gen-123"),
  ).toBe(true);
});
