import { readUIMessageStream } from "ai";
import { expect, test } from "vitest";
import { takeChunk } from "../../message/admit.ts";
import { type MessageBuilder, newBuilder, toMessage } from "../../message/builder.ts";
import { applyChunk } from "../../message/fold.ts";
import { INTERRUPTED_TEXT } from "../../message/repair.ts";
import { isToolPart, toolParts, type Part, type UIMessage, type UIMessageChunk } from "../../message/types.ts";
import { closingChunks, continuationFilter, hasContent } from "./turn.ts";

const ID = "answer-1";

/** What a model says in one go: reasoning, text, a tool that runs here, and more text in a second step. */
const WHOLE: readonly UIMessageChunk[] = [
  { type: "start", messageId: ID },
  { type: "start-step" },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "hm " },
  { type: "reasoning-delta", id: "r", delta: "yes" },
  { type: "reasoning-end", id: "r" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "one " },
  { type: "text-delta", id: "t", delta: "two " },
  { type: "text-end", id: "t" },
  { type: "tool-input-start", toolCallId: "c1", toolName: "look" },
  { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: '{"at":' },
  { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: "1}" },
  { type: "tool-input-available", toolCallId: "c1", toolName: "look", input: { at: 1 } },
  { type: "tool-output-available", toolCallId: "c1", output: { seen: true } },
  { type: "finish-step" },
  { type: "start-step" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "three " },
  { type: "text-delta", id: "t", delta: "four" },
  { type: "text-end", id: "t" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop" },
];
const TEXTS = ["one two ", "three four"];

function fold(chunks: readonly UIMessageChunk[]): MessageBuilder {
  const builder = newBuilder("other");
  for (const chunk of chunks) applyChunk(builder, chunk);
  return builder;
}

const textsOf = (message: UIMessage) => message.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));

/** What a model says that is shown `partial`: it goes on behind the text, and calls the tool unless there is a result. */
function* goOn(partial: UIMessage, id: string): Generator<UIMessageChunk> {
  const said = textsOf(partial);
  const hasResult = toolParts(partial).some(({ state }) => state === "output-available");
  yield { type: "start", messageId: `second-${id}` };
  yield { type: "start-step" };
  if (!hasResult) {
    yield* say(TEXTS[0]?.slice(said[0]?.length ?? 0) ?? "", id);
    yield { type: "tool-input-available", toolCallId: `call-${id}`, toolName: "look", input: { at: 1 } };
    yield { type: "tool-output-available", toolCallId: `call-${id}`, output: { seen: true } };
    yield { type: "finish-step" };
    yield { type: "start-step" };
  }
  yield* say(TEXTS[1]?.slice(said[1]?.length ?? 0) ?? "", id);
  yield { type: "finish-step" };
  yield { type: "finish", finishReason: "stop" };
}

function* say(text: string, id: string): Generator<UIMessageChunk> {
  if (text === "") return;
  yield { type: "text-start", id };
  for (const word of text.match(/\S+ ?/g) ?? []) yield { type: "text-delta", id, delta: word };
  yield { type: "text-end", id };
}

/** The whole log after a second attempt took over from `log`. */
function carryOn(
  log: readonly UIMessageChunk[],
  second: (partial: UIMessage) => Iterable<UIMessageChunk>,
): UIMessageChunk[] {
  const builder = fold(log);
  const all = [...log];
  const put = (chunk: UIMessageChunk) => all.push(...takeChunk(builder, chunk));
  for (const chunk of closingChunks(builder)) put(chunk);
  const fit = continuationFilter(builder);
  for (const chunk of second(toMessage(builder))) for (const fitted of fit(chunk)) put(fitted);
  return all;
}

async function readBySdk(chunks: readonly UIMessageChunk[]): Promise<UIMessage | undefined> {
  const errors: unknown[] = [];
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream, onError: (error) => errors.push(error) })) last = message;
  expect(errors).toEqual([]);
  return last;
}

/** The SDK shows a step only once there is something in it. */
function begun(message: UIMessage): Part[] {
  return message.parts.slice(0, message.parts.findLastIndex(({ type }) => type !== "step-start") + 1);
}

/** What a person sees: no step marks, no calls that came to nothing, one reasoning for two that follow each other. */
function visible(message: UIMessage): unknown[] {
  const shown: Part[] = [];
  for (const part of message.parts) {
    if (part.type === "step-start") continue;
    if (isToolPart(part) && part.errorText === INTERRUPTED_TEXT) continue;
    shown.push(part);
  }
  return shown.map((part) => (isToolPart(part) ? { type: part.type, output: part.output } : part));
}

const cuts = WHOLE.map((_, at) => at).filter((at) => at > 0);

test.each(cuts)("cut after %i chunks: the whole reads as if it had not been cut", async (at) => {
  const log = carryOn(WHOLE.slice(0, at), (partial) => goOn(partial, "x"));
  const message = toMessage(fold(log));
  const whole = toMessage(fold(WHOLE));
  const withoutReasoning = (shown: readonly unknown[]) => shown.filter((part) => (part as Part).type !== "reasoning");
  expect(withoutReasoning(visible(message))).toEqual(withoutReasoning(visible(whole)));
  expect(message.id).toBe(ID);
  // What was seen is still there, at the same place.
  expect(log.slice(0, at)).toEqual(WHOLE.slice(0, at));
  const read = await readBySdk(log);
  expect(read?.parts).toEqual(begun(message));
  expect(read?.id).toBe(ID);
});

test("cut twice, and three times", async () => {
  for (const [first, second] of cuts.flatMap((a) => [4, 9].map((b) => [a, a + b] as const))) {
    const once = carryOn(WHOLE.slice(0, first), (partial) => goOn(partial, "x"));
    const twice = carryOn(once.slice(0, second), (partial) => goOn(partial, "y"));
    const thrice = carryOn(twice.slice(0, second + 3), (partial) => goOn(partial, "z"));
    for (const log of [twice, thrice]) {
      expect(textsOf(toMessage(fold(log))), `cut after ${first} and ${second}`).toEqual(TEXTS);
      expect((await readBySdk(log))?.parts).toEqual(begun(toMessage(fold(log))));
    }
  }
});

test("a text that was cut goes on in its part, under its old id", () => {
  const log = carryOn(WHOLE.slice(0, 8), () => say("two", "new"));
  expect(log.slice(8)).toEqual([
    { type: "text-delta", id: "t", delta: "two" },
    { type: "text-end", id: "t" },
  ]);
});

test("a model that goes on with something else ends the text that was cut", () => {
  const second: UIMessageChunk[] = [
    { type: "start" },
    { type: "start-step" },
    { type: "tool-input-available", toolCallId: "c9", toolName: "look", input: {} },
  ];
  expect(carryOn(WHOLE.slice(0, 8), () => second).slice(8)).toEqual([{ type: "text-end", id: "t" }, second[2]]);
});

test("the second start is left out, its metadata is not", () => {
  const log = carryOn(WHOLE.slice(0, 2), () => [
    { type: "start", messageId: "other", messageMetadata: { model: "b" } },
  ]);
  expect(log.slice(2)).toEqual([{ type: "message-metadata", messageMetadata: { model: "b" } }]);
});

test("a step that had only begun is not begun twice", () => {
  const log = carryOn(WHOLE.slice(0, 2), (partial) => goOn(partial, "x"));
  expect(
    toMessage(fold(log))
      .parts.slice(0, 2)
      .map(({ type }) => type),
  ).toEqual(["step-start", "text"]);
});

test.each([
  ["its input was streaming", 12],
  ["it was running", 14],
])("a call that was cut when %s ends with an error that says so", (_, at) => {
  const builder = fold(WHOLE.slice(0, at));
  for (const chunk of closingChunks(builder)) applyChunk(builder, chunk);
  expect(toolParts(toMessage(builder))).toMatchObject([
    { toolCallId: "c1", state: "output-error", errorText: INTERRUPTED_TEXT },
  ]);
});

test("the app may give a cut call its end", () => {
  const builder = fold(WHOLE.slice(0, 14));
  const chunks = closingChunks(builder, {
    repairInterruptedToolPart: (part) => ({ ...part, state: "output-available", output: "looked up later" }),
  });
  expect(chunks).toEqual([{ type: "tool-output-available", toolCallId: "c1", output: "looked up later" }]);
});

test("a call that waits for somebody stays open when the turn has ended in order", () => {
  expect(closingChunks(fold(WHOLE.slice(0, 14)), { keepPending: true })).toEqual([]);
});

test("nothing is closed twice", () => {
  for (const at of cuts) {
    const builder = fold(WHOLE.slice(0, at));
    for (const chunk of closingChunks(builder)) applyChunk(builder, chunk);
    expect(closingChunks(builder), `cut after ${at}`).toEqual([]);
  }
});

test("only what a model could go on from counts as content", () => {
  expect(hasContent(fold([]))).toBe(false);
  expect(hasContent(fold(WHOLE.slice(0, 3)))).toBe(false);
  expect(hasContent(fold(WHOLE.slice(0, 4)))).toBe(true);
  expect(hasContent(fold([{ type: "text-start", id: "t" }]))).toBe(false);
  expect(hasContent(fold([{ type: "tool-input-start", toolCallId: "c", toolName: "look" }]))).toBe(true);
});
