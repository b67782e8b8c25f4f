import { expect, test } from "vitest";
import { Step } from "../../../test/support/step-attempts.ts";
import type { UIMessageChunk } from "../../message/types.ts";
import { NOT_RUN_TEXT } from "./fit.ts";
import { StepFit } from "./fit.ts";

const start = (id: string): UIMessageChunk => ({ type: "text-start", id });
const delta = (id: string, text: string): UIMessageChunk => ({ type: "text-delta", id, delta: text });
const end = (id: string): UIMessageChunk => ({ type: "text-end", id });
const text = (id: string, ...deltas: string[]): UIMessageChunk[] => [
  start(id),
  ...deltas.map((one) => delta(id, one)),
  end(id),
];
const think = (id: string, ...deltas: string[]): UIMessageChunk[] => [
  { type: "reasoning-start", id },
  ...deltas.map((one) => ({ type: "reasoning-delta" as const, id, delta: one })),
];
const sign = (id: string, signature: string): UIMessageChunk => ({
  type: "reasoning-delta",
  id,
  delta: "",
  providerMetadata: { anthropic: { signature } },
});
const thought = (id: string): UIMessageChunk => ({ type: "reasoning-end", id });
const begin = (toolCallId: string, toolName = "look"): UIMessageChunk => ({
  type: "tool-input-start",
  toolCallId,
  toolName,
});
const more = (toolCallId: string, inputTextDelta: string): UIMessageChunk => ({
  type: "tool-input-delta",
  toolCallId,
  inputTextDelta,
});
const call = (toolCallId: string, input: unknown, toolName = "look"): UIMessageChunk => ({
  type: "tool-input-available",
  toolCallId,
  toolName,
  input,
});
const notRun = (toolCallId: string, input: unknown, type = "tool-look") => ({
  type,
  toolCallId,
  state: "output-error",
  input,
  errorText: NOT_RUN_TEXT,
});
const said = (words: string) => ({ type: "text", text: words, state: "done" });

test("a text that comes again from its beginning goes on where it was cut", () => {
  const step = new Step(start("a"), delta("a", "Hello wo"));
  expect(step.again(...text("b", "Hel", "lo world", ".", "\n"))).toEqual([
    delta("a", "rld"),
    delta("a", "."),
    delta("a", "\n"),
    end("a"),
  ]);
  expect(step.parts).toEqual([said("Hello world.\n")]);
});

test("a text that goes on from the cut is one text with what was there", () => {
  const step = new Step(start("a"), delta("a", "Hello wo"));
  step.again(...text("b", "rl", "d"));
  expect(step.parts).toEqual([said("Hello world")]);
});

test.each(["H", "He", "Hello w", "o", "…"])("%j is a continuation of few words", (rest) => {
  const step = new Step(start("a"), delta("a", "Hello wo"));
  step.again(...text("a", rest));
  expect(step.parts).toEqual([said(`Hello wo${rest}`)]);
});

test("a text that is said again just as it is, or not at all, changes nothing but its end", () => {
  for (const chunks of [text("b", "Hello", " wo"), text("b"), []]) {
    const step = new Step(start("a"), delta("a", "Hello wo"));
    expect(step.again(...chunks)).toEqual([end("a")]);
    expect(step.parts).toEqual([said("Hello wo")]);
  }
});

test("a model that says something else goes on from what was there", () => {
  const step = new Step(start("a"), delta("a", "Hello wo"));
  step.again(...text("a", "Hello", " there", "!"));
  expect(step.parts).toEqual([said("Hello woHello there!")]);
});

test("something else than a closed text is a text of its own", () => {
  const step = new Step(...text("0", "Let me look."), begin("c"));
  step.again(...text("0", "I will", " look."), call("d", {}));
  expect(step.parts).toMatchObject([said("Let me look."), { toolCallId: "c", input: {} }, said("I will look.")]);
});

test("more than a closed text is only what is more", () => {
  const step = new Step(...text("0", "Let me look."), begin("c"));
  step.again(...text("0", "Let me look.", " Now."), call("c", {}));
  expect(step.parts).toMatchObject([said("Let me look."), { toolCallId: "c" }, said(" Now.")]);
});

test("of several texts the one that was being said is gone on with", () => {
  const step = new Step(...text("0", "One."), start("1"), delta("1", "Tw"));
  step.again(...text("1", "o", "."), ...text("2", "Three."));
  expect(step.parts).toEqual([said("One."), said("Two."), said("Three.")]);
});

test("a text does not get an id under which another is open", () => {
  const step = new Step(...text("0", "One."), start("1"), delta("1", "Tw"));
  step.again(start("1"), delta("1", "One. And"), start("x"), delta("x", "Two"), end("x"), end("1"));
  expect(step.parts).toEqual([said("One."), said("Two"), said(" And")]);
});

test("a new text does not get an id under which another is open", () => {
  const step = new Step(start("1"), delta("1", "On"));
  step.again(start("0"), delta("0", "One"), start("1"), delta("1", "Two"), end("0"), end("1"));
  expect(step.parts).toEqual([said("One"), said("Two")]);
});

test("a text and a reasoning may have the same id", () => {
  const step = new Step(...think("0", "Hm"), start("0"), delta("0", "He"));
  step.again(...think("0", "Hm,", " so"), ...text("0", "Hello"), thought("0"));
  expect(step.parts).toMatchObject([
    { type: "reasoning", text: "Hm, so", state: "done" },
    { type: "text", text: "Hello", state: "done" },
  ]);
});

test("what a provider attaches to words that are passed over is kept", () => {
  const step = new Step(...think("0", "Let me se"));
  step.again(...think("0", "Let me s", "e"), sign("0", "s1"), thought("0"), ...text("1", "Yes"));
  expect(step.parts[0]).toMatchObject({
    text: "Let me se",
    state: "done",
    providerMetadata: { anthropic: { signature: "s1" } },
  });
});

test("reasoning that differs is a part of its own, so that its signature fits", () => {
  const step = new Step(...think("0", "Let me se"));
  step.again(...think("0", "Let me", " think", "."), sign("0", "s2"), thought("0"));
  expect(step.parts).toEqual([
    { type: "reasoning", id: "0", text: "Let me se", state: "done" },
    {
      type: "reasoning",
      id: "0",
      text: "Let me think.",
      state: "done",
      providerMetadata: { anthropic: { signature: "s2" } },
    },
  ]);
});

test("reasoning that is shorter or longer than a signed one is a part of its own too", () => {
  for (const words of ["Let", "Let me see again"]) {
    const step = new Step(...think("0", "Let me see"), sign("0", "s1"), thought("0"), start("1"));
    step.again(...think("0", words), sign("0", "s2"), thought("0"), ...text("1", "Yes"));
    expect(step.parts).toMatchObject([
      { text: "Let me see", providerMetadata: { anthropic: { signature: "s1" } } },
      { type: "text", text: "Yes", state: "done" },
      { text: words, state: "done", providerMetadata: { anthropic: { signature: "s2" } } },
    ]);
  }
});

test("reasoning and text that do not come again are ended", () => {
  const step = new Step(...think("0", "Hm"), start("1"), delta("1", "He"));
  expect(step.again(call("c", {}))).toEqual([call("c", {}), thought("0"), end("1")]);
});

test("a whole call that comes again is the one that was there, whatever its id", () => {
  for (const id of ["c", "d"]) {
    const step = new Step(begin("c"), more("c", '{"a":1}'), call("c", { a: 1, b: { c: [2] } }));
    expect(step.again(begin(id), more(id, '{"b"'), call(id, { b: { c: [2] }, a: 1 }))).toEqual([]);
    expect(step.parts).toMatchObject([{ toolCallId: "c", state: "input-available" }]);
  }
});

test("half a call gets the input of the one that comes again", () => {
  const step = new Step(begin("c"), more("c", '{"city":"Par'));
  expect(step.again(begin("d"), more("d", '{"city":"Paris"}'), call("d", { city: "Paris" }))).toEqual([
    call("c", { city: "Paris" }),
  ]);
  expect(step.parts).toEqual([
    { type: "tool-look", toolCallId: "c", state: "input-available", input: { city: "Paris" } },
  ]);
});

test("an input that is no object is the same call when it comes again", () => {
  const step = new Step(begin("c", "ask"), call("c", {}, "ask"));
  expect(step.again(call("d", "nonsense", "ask"))).toEqual([]);
});

test("calls that do not come again end as not run, and no client is told to run them", () => {
  const step = new Step(call("c1", { a: 1 }), begin("c2"), more("c2", '{"a":2'), begin("c3", "other"));
  expect(step.again(...text("t", "No need."))).not.toContainEqual(expect.objectContaining({ type: call("", 0).type }));
  expect(step.parts).toEqual([
    notRun("c1", { a: 1 }),
    notRun("c2", { a: 2 }),
    notRun("c3", {}, "tool-other"),
    said("No need."),
  ]);
});

test("another call of the same tool stands beside the one that does not come again", () => {
  const step = new Step(call("c1", { a: 1 }));
  step.again(begin("c2"), more("c2", '{"a":2}'), call("c2", { a: 2 }));
  expect(step.parts).toMatchObject([notRun("c1", { a: 1 }), { toolCallId: "c2", input: { a: 2 } }]);
});

test("another call under the same id gets an id of its own, and its result finds it", () => {
  const step = new Step(call("0", { a: 1 }), call("1", {}, "other"));
  step.again(call("0", { a: 2 }), begin("1"), more("1", '{"a":3}'), call("1", { a: 3 }), {
    type: "tool-output-available",
    toolCallId: "1",
    output: "three",
    providerExecuted: true,
  });
  expect(step.parts).toMatchObject([
    notRun("0", { a: 1 }),
    notRun("1", {}, "tool-other"),
    { toolCallId: "0-2", input: { a: 2 }, state: "input-available" },
    { toolCallId: "1-2", input: { a: 3 }, state: "output-available", output: "three" },
  ]);
});

test("a provider's result finds the call that was there", () => {
  const search = { toolName: "search", providerExecuted: true, input: { q: "x" } };
  const step = new Step({ type: "tool-input-available", toolCallId: "c", ...search });
  step.again(
    { type: "tool-input-available", toolCallId: "d", ...search },
    { type: "tool-output-available", toolCallId: "d", output: 1, providerExecuted: true },
  );
  expect(step.parts).toMatchObject([{ toolCallId: "c", state: "output-available", output: 1 }]);
});

test("a provider's call that does not come again ends too", () => {
  const step = new Step({
    type: "tool-input-available",
    toolCallId: "c",
    toolName: "search",
    providerExecuted: true,
    input: {},
  });
  step.again(...text("t", "Done."));
  expect(step.parts[0]).toMatchObject({ ...notRun("c", {}, "tool-search"), providerExecuted: true });
});

test("a call that was answered meanwhile is not asked for again", () => {
  const output: UIMessageChunk = { type: "tool-output-available", toolCallId: "c", output: "sunny" };
  for (const id of ["c", "d"]) {
    const step = new Step(call("c", { a: 1 }), output);
    expect(step.again(begin(id), call(id, { a: 1 }), { ...output, toolCallId: id })).toEqual([]);
    expect(step.parts).toMatchObject([{ state: "output-available", output: "sunny" }]);
  }
});

test("a call that ended as not run may be asked for once more", () => {
  const step = new Step(call("c", { a: 1 }));
  step.again();
  step.again(call("c", { a: 1 }));
  expect(step.parts).toMatchObject([notRun("c", { a: 1 }), { toolCallId: "c-2", state: "input-available" }]);
});

test("a call that cannot be read is there once", () => {
  const bad = (toolCallId: string): UIMessageChunk => ({
    type: "tool-input-error",
    toolCallId,
    toolName: "look",
    input: { a: "?" },
    errorText: "No number.",
  });
  for (const left of [[begin("c"), more("c", '{"a"')], [bad("c")], [call("c", { a: "?" })]]) {
    const step = new Step(...left);
    step.again(begin("d"), more("d", '{"a":"?"}'), bad("d"), {
      type: "tool-output-error",
      toolCallId: "d",
      errorText: "No number.",
    });
    expect(step.parts).toMatchObject([{ toolCallId: "c", state: "output-error", errorText: "No number." }]);
  }
});

test("a source or a file that comes again is there once; another one is added", () => {
  const source = (sourceId: string, url: string): UIMessageChunk => ({ type: "source-url", sourceId, url });
  const file: UIMessageChunk = { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA==" };
  const step = new Step(source("s1", "https://a.example"), file);
  const fresh = source("s3", "https://b.example");
  expect(step.again(source("s2", "https://a.example"), fresh, file, file)).toEqual([fresh, file]);
});

test("chunks that are about nothing of a step pass", () => {
  const fit = new StepFit({ builder: new Step().builder, turn: 1, isTakenElsewhere: () => false }, 1);
  const chunks: UIMessageChunk[] = [{ type: "data-note", data: 1 }, delta("x", "…"), end("x"), more("y", "…")];
  expect(chunks.flatMap((chunk) => fit.take(chunk))).toEqual(chunks);
});
