// What a good agent loop does, piece by piece, seen from outside: parts in their order, tokens of every step, one runner,
// a title that nobody waits for, a summary in the flow, and an order that no clock and no id can change.
import { expect, test } from "vitest";
import { isToolPart, toolName } from "../../src/message/types.ts";
import { textIn } from "../chat/client.ts";
import { fill, openSmall, reader, shown } from "./compacting.ts";

const reads = (n: number) => ({
  reasoning: [`thinking ${n}`],
  text: [`before ${n}`],
  toolCalls: [{ toolName: "read", input: { name: `file ${n}` } }],
  usage: { inputTokens: 100 + n, outputTokens: 10 + n },
});

test("parts stand in the order in which they came: thought, words, call with its result, then the next step", async () => {
  const kit = await openSmall({
    answer: ({ step }) => (step < 2 ? reads(step) : "done"),
    tools: { read: reader },
  });
  await kit.ask("go");
  const parts = (await kit.last())?.parts ?? [];
  const names = parts.map((part) => (isToolPart(part) ? `${toolName(part)} ${part.state}` : part.type));
  const step = ["step-start", "reasoning", "text", "read output-available"];
  expect(names).toEqual([...step, ...step, "step-start", "text"]);
  // The model reads a call before its result, and both before what it said after them.
  const roles = kit
    .turns()
    .at(-1)
    ?.prompt.map(({ role }) => role);
  expect(roles).toEqual(["system", "user", "assistant", "tool", "assistant", "tool"]);
});

test("every step has its tokens, and the turn has their sum", async () => {
  const kit = await openSmall({
    answer: ({ step }) =>
      step < 2 ? reads(step) : { text: ["done"], usage: { inputTokens: 200, outputTokens: 5, cachedInputTokens: 150 } },
    tools: { read: reader },
  });
  const { requestId } = await kit.ask("go");
  const agent = await kit.agent();
  const steps = agent.listUsage().map(({ step, input, output, cacheRead }) => ({ step, input, output, cacheRead }));
  expect(steps.reverse()).toEqual([
    { step: 0, input: 100, output: 10, cacheRead: 0 },
    { step: 1, input: 101, output: 11, cacheRead: 0 },
    { step: 2, input: 200, output: 5, cacheRead: 150 },
  ]);
  expect(agent.usage({ turn: requestId })).toMatchObject({ input: 401, output: 26, calls: 3 });
});

test("one runner: what is asked meanwhile waits, and each question gets its own answer", async () => {
  const kit = await openSmall({ answer: ({ userText }) => `to ${userText}` });
  const asked = await Promise.all(["a", "b", "c"].map((text) => kit.ask(text)));
  expect(asked.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
  expect((await kit.stored()).map(textIn)).toEqual(["a", "to a", "b", "to b", "c", "to c"]);
  expect(kit.turns()).toHaveLength(3);
});

test("a title is there before the model has answered, and nobody waits for a better one", async () => {
  let answer = () => {};
  const kit = await openSmall({ answer: () => new Promise((resolve) => (answer = () => resolve("Yes."))) });
  const asked = kit.ask("How do I repair a bicycle?");
  await expect.poll(() => kit.turns().length).toBe(1);
  expect((await kit.agent()).session.name).toBe("How do I repair a bicycle?");
  answer();
  expect((await asked).status).toBe("completed");
});

test("a summary is a message in the flow: the first one that the model reads, and none that anybody wrote", async () => {
  const kit = await openSmall();
  await fill(kit, 5);
  const [first, second] = kit.turns().at(-1)?.prompt.slice(1) ?? [];
  expect([first?.role, JSON.stringify(first?.content).includes("Be short.")]).toEqual(["user", true]);
  expect(second).toBeDefined();
  expect((await kit.stored()).map(textIn).join()).not.toContain("Be short.");
});

test("a clock that goes back an hour, and stands still, changes nothing that is sent or kept", async () => {
  const talk = async (at: (turn: number) => number | undefined) => {
    const kit = await openSmall({ manual: true });
    for (let turn = 0; turn < 6; turn++) {
      const time = at(turn);
      if (time !== undefined) await kit.clock.set(time);
      await kit.ask(`question ${turn} ${"abc ".repeat(900)}`);
    }
    await kit.restart();
    await kit.ask("last");
    const stored = (await kit.stored()).map(({ role, parts }) => JSON.stringify([role, parts]));
    return { requests: kit.turns().map(shown), stored, compactions: (await kit.compactions()).length };
  };
  const HOUR = 3_600_000;
  const straight = await talk((turn) => 100 * HOUR + turn * HOUR);
  expect(straight.compactions).toBeGreaterThan(0);
  expect(await talk((turn) => 100 * HOUR - turn * HOUR)).toEqual(straight);
  expect(await talk(() => undefined)).toEqual(straight);
});
