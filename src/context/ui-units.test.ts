import { tool, jsonSchema } from "ai";
import { expect, test } from "vitest";
import type { Part, UIMessage } from "../message/types.ts";
import { toModelMessages } from "./model-messages.ts";
import { unitsOfUIMessage, unitsOfUIPart, unitsOfUIParts } from "./ui-units.ts";
import { unitsOfMessages } from "./units.ts";

const tools = { look: tool({ inputSchema: jsonSchema({}), execute: () => "" }) };
const text = (value: string): Part => ({ type: "text", text: value });
const step: Part = { type: "step-start" };
const call = (more: object): Part => {
  const part = { type: "tool-look", toolCallId: `c${Math.random()}`, state: "input-available", input: { at: "a" } };
  return { ...part, ...more } as Part;
};
const png = "data:image/png;base64,AAAA";
const answer = (...parts: Part[]): UIMessage => ({ id: "m", role: "assistant", parts });
const said = (...parts: Part[]): UIMessage => ({ id: "m", role: "user", parts });

test.each<[string, UIMessage]>([
  ["a text", said(text("Hello, 世界"))],
  ["several texts and a file", said(text("a"), text("b"), { type: "file", mediaType: "image/png", url: png })],
  ["a system message", { id: "m", role: "system", parts: [text("Be brief.")] }],
  ["an answer", answer(step, { type: "reasoning", text: "Hm." }, text("Yes."))],
  ["an answer without steps", answer(text("Yes."))],
  ["an output of text", answer(step, call({ state: "output-available", output: "done" }))],
  ["an output of JSON", answer(step, call({ state: "output-available", output: { rows: [1, 2, "三"] } }))],
  ["an error", answer(step, call({ state: "output-error", errorText: "It broke." }))],
  ["a denial", answer(step, call({ state: "output-denied", approval: { id: "a", approved: false, reason: "No." } }))],
  ["a call that was cut", answer(step, call({}))],
  [
    "a dynamic tool",
    answer(step, call({ type: "dynamic-tool", toolName: "seek", state: "output-available", output: 1 })),
  ],
  [
    "many steps",
    answer(
      step,
      text("First."),
      call({ state: "output-available", output: "one" }),
      call({ state: "output-available", output: "two" }),
      step,
      call({ state: "output-available", output: "three" }),
      step,
      text("Done."),
    ),
  ],
  [
    "a tool that the provider ran",
    answer(step, call({ state: "output-available", output: "x", providerExecuted: true })),
  ],
  [
    "what is not sent",
    answer(step, text(""), { type: "data-note", data: { long: "x".repeat(500) } } as Part, text("a")),
  ],
  ["nothing", answer()],
])("%s weighs what it becomes", async (_name, message) => {
  const sent = await toModelMessages(message, tools);
  expect(unitsOfUIMessage(message)).toBe(unitsOfMessages(sent));
});

test("what was said in the middle of an answer counts", async () => {
  const steering = { type: "steering-message", parts: [text("Wait, in Spanish.")] } as unknown as Part;
  const message = answer(step, text("Well"), steering, step, text("Hola"));
  expect(unitsOfUIMessage(message)).toBe(unitsOfMessages(await toModelMessages(message, tools)));
});

test("a part is what it adds", () => {
  const output = call({ state: "output-available", output: "x".repeat(4_000) });
  expect(unitsOfUIPart(output)).toBeGreaterThan(1_000);
  expect(unitsOfUIParts([step, text("a"), output])).toBeGreaterThan(unitsOfUIPart(text("a")) + unitsOfUIPart(output));
  expect(unitsOfUIPart(step)).toBe(0);
  expect(unitsOfUIPart({ type: "source-url", sourceId: "s", url: "https://example.com" })).toBe(0);
});

test("an answer that is cut between its steps weighs the same in two", () => {
  const first = [step, text("a"), call({ state: "output-available", output: "one" })];
  const second = [step, text("b")];
  expect(unitsOfUIParts(first) + unitsOfUIParts(second)).toBe(unitsOfUIParts([...first, ...second]));
});

test("a message is looked at once", () => {
  let looks = 0;
  const message: UIMessage = {
    id: "m",
    role: "user",
    get parts() {
      looks++;
      return [text("Hello")];
    },
  };
  expect(unitsOfUIMessage(message)).toBe(unitsOfUIMessage(message));
  expect(looks).toBe(1);
});
