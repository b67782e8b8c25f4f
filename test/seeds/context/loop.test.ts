// The loop of a coding agent, its queue, its title, and how it is stopped. Written after the samples on sessions, loops and
// cancellation; a comment says what had to be written otherwise.
import { jsonSchema, tool } from "ai";
import type { Think } from "perdure";
import { defer } from "perdure/host";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../../chat/client.ts";
import { fill, long, openSmall, reader, shown } from "../../context/compacting.ts";

test("core loop: one runs, what is asked meanwhile is queued, and each step reads what is not compacted", async () => {
  // `loop(sessionID)` is the engine here: `runTurn({ input, session })`. What was queued there got the first one's answer;
  // here every question gets its own.
  const kit = await openSmall({
    answer: ({ userText, step }) =>
      step < 2 && userText.startsWith("read")
        ? { toolCalls: [{ toolName: "read", input: { name: `file ${step}` } }] }
        : `to ${userText.slice(0, 10)}`,
    tools: { read: reader },
  });
  const ends = await Promise.all([kit.ask("read it"), kit.ask("and then?")]);
  expect(ends.map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(kit.turns().map(({ step }) => step)).toEqual([0, 1, 2, 0]);
  await fill(kit, 5);
  // `MessageV2.filterCompacted(MessageV2.stream(sessionID))`: the model reads the summary and what came after it.
  const request = shown(kit.turns().at(-1));
  expect(request).toContain("Be short.");
  // Of what it stands for, only the words of the user are told.
  expect(request).toContain("\\n- read it\\n");
  expect(request).not.toContain('"text":"read it"');
  expect((await kit.agent()).session.getHistory()[0]).toMatchObject({ parts: [{ text: "read it" }] });
});

test("the first step begins a title, and the loop does not wait for it", async () => {
  // `SessionSummary.summarize({ sessionID, messageID })` is not called: `titles` and `getTitleModel()` say it once.
  const small = scriptedModel([{ hang: "before" }]);
  const kit = await openSmall({
    extend: (Base) =>
      class extends Base {
        override titles = { after: 1 };
        override getTitleModel() {
          return small;
        }
      },
  });
  expect(await kit.ask("Which berth is free?")).toMatchObject({ status: "completed" });
  await expect.poll(() => small.calls.length).toBe(1);
  expect((await kit.agent()).session.name).toBe("Which berth is free?");
  expect(await kit.ask("And tomorrow?")).toMatchObject({ status: "completed" });
});

test("an answer that has filled the window is followed by a compaction, and the loop goes on", async () => {
  // `SessionCompaction.create({ auto: true })` and `continue` are the loop's own here: the row's trigger says why.
  const kit = await openSmall({
    answer: ({ step }) =>
      step === 0
        ? {
            text: long("much", 500),
            toolCalls: [{ toolName: "read", input: {} }],
            usage: { inputTokens: 3_900, outputTokens: 500 },
          }
        : "Went on.",
    tools: { read: reader },
  });
  await fill({ ask: (text) => kit.ask(text) }, 2);
  expect(textIn(await kit.last())).toContain("Went on.");
  expect(await kit.compactions()).toContainEqual(
    expect.objectContaining({ status: "done", kind: "summary", trigger: "usage" }),
  );
});

test("defer: what is to be done at the end is done, however the block is left", async () => {
  const told: string[] = [];
  const loop = async (sessionID: string, work: () => Promise<void>) => {
    using _ = defer(() => void told.push(`idle ${sessionID}`));
    told.push(`busy ${sessionID}`);
    await work();
  };
  await loop("s1", async () => {});
  await expect(loop("s2", async () => Promise.reject(new Error("aborted")))).rejects.toThrow("aborted");
  expect(told).toEqual(["busy s1", "idle s1", "busy s2", "idle s2"]);
  const close = async () => {
    await using _ = defer(async () => void told.push("closed"));
  };
  await close();
  expect(told.at(-1)).toBe("closed");
});

test("cancel: the turn that runs is stopped, what waits ends too, and the next one is taken", async () => {
  // `cancel(sessionID)` is `abortAllRequests()`, or `abortRequest(id)` for one. Nobody's promise is rejected: each turn
  // ends with a status, as it is stored.
  const kit = await openSmall({
    answer: ({ userText }) => (userText === "after" ? "Idle again." : { hang: true, text: "Wait" }),
  });
  const waiting = [kit.ask("one"), kit.ask("two")];
  await expect.poll(() => kit.turns().length).toBe(1);
  const agent: Think = await kit.agent();
  agent.abortAllRequests();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(["aborted", "aborted"]);
  expect(await kit.ask("after")).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toBe("Idle again.");
});

test("abort signal: the model, the tools and what they begin hear of it", async () => {
  // Tools get it as `abortSignal`, as the AI SDK names it, not as `abort`.
  const told: string[] = [];
  const watch = tool({
    inputSchema: jsonSchema<object>({ type: "object" }),
    execute: async (_input, { abortSignal }) => {
      using _ = defer(() => void told.push("cleaned up"));
      told.push("runs");
      await new Promise((resolve) => abortSignal?.addEventListener("abort", resolve, { once: true }));
      abortSignal?.throwIfAborted();
      return "never";
    },
  });
  const kit = await openSmall({ answer: () => ({ toolCalls: [{ toolName: "watch", input: {} }] }), tools: { watch } });
  const stop = new AbortController();
  const agent = await kit.agent();
  const turn = agent.runTurn({ input: "watch it", signal: stop.signal });
  await expect.poll(() => told).toContain("runs");
  stop.abort();
  expect(await turn).toMatchObject({ status: "aborted" });
  await expect.poll(() => told).toEqual(["runs", "cleaned up"]);
});

test("a loop that is cancelled in the middle of a model call has an end", async () => {
  const kit = await openSmall({ answer: () => ({ hang: "before" }) });
  const turn = kit.ask("go");
  await expect.poll(() => kit.turns().length).toBe(1);
  (await kit.agent()).abortAllRequests();
  // Not a rejection: see above.
  await expect(turn).resolves.toMatchObject({ status: "aborted" });
  expect(kit.turns()[0]?.status).toBe("aborted");
});
