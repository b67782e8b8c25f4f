import { readUIMessageStream } from "ai";
import { expect, test } from "vitest";
import { type Random, seeded } from "../../../test/support/seeded.ts";
import { Step } from "../../../test/support/step-attempts.ts";
import type { Part, UIMessageChunk } from "../../message/types.ts";
import { StepFit } from "./fit.ts";

// An attempt that says the same again makes the answer that an uninterrupted one would have made.

/** How many random answers a property is tried on, and how many of them on a client too. */
const SEEDS = 1_000;
const SEEN_BY_CLIENT = 100;

/** One thing that a model says, without the ids, which change from attempt to attempt. */
type Saying =
  | { kind: "text" | "reasoning"; words: string; signature: string | undefined }
  | { kind: "source"; url: string }
  | {
      kind: "call";
      tool: string;
      input: unknown;
      streamed: boolean;
      result: string | undefined;
      bad: boolean;
    };

const DYNAMIC = "far";
const WORDS = ["", "a", "aa", "aaa", "Hello", "Hello world.", "Let me look.\n", "ünï \u{1F600} cödé"];
const INPUTS: unknown[] = [{}, { a: 1 }, { a: 2 }, { city: "Paris", deep: [{ b: null }, 'x"y'] }, "no object"];

function someSayings(random: Random): Saying[] {
  const sayings: Saying[] = [];
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  for (let count = 1 + random(6); count > 0; count--) {
    const kind = pick(["text", "reasoning", "call", "call", "source"] as const);
    if (kind === "source") sayings.push({ kind, url: `https://${pick(["a", "b"])}.example` });
    else if (kind === "call") {
      const result = random(10) < 3 ? pick(["r1", "r2"]) : undefined;
      sayings.push({
        kind,
        tool: pick(["look", "run", DYNAMIC]),
        input: pick(INPUTS),
        streamed: random(10) < 7,
        result,
        bad: result === undefined && random(10) < 2,
      });
    } else {
      const words = pick(WORDS) + (random(10) < 5 ? pick(WORDS) : "");
      sayings.push({ kind, words, signature: random(10) < 4 ? pick(["s1", "s2"]) : undefined });
    }
  }
  return sayings;
}

/** Cuts a text into deltas, now and then an empty one. */
function pieces(random: Random, whole: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < whole.length;) {
    const size = random(5);
    found.push(whole.slice(at, at + size));
    at += size;
  }
  return found;
}

/** What an attempt streams: the same sayings, in pieces and under ids of its own. */
function stream(random: Random, sayings: readonly Saying[], prefix: string): UIMessageChunk[] {
  return sayings.flatMap((saying, index): UIMessageChunk[] => {
    const id = `${prefix}${index}`;
    if (saying.kind === "source") return [{ type: "source-url", sourceId: id, url: saying.url }];
    if (saying.kind !== "call") {
      const { kind, words, signature } = saying;
      const signed = signature === undefined ? [] : [{ providerMetadata: { anthropic: { signature } } }];
      return [
        { type: `${kind}-start`, id },
        ...pieces(random, words).map((one) => ({ type: `${kind}-delta` as const, id, delta: one })),
        ...signed.map((meta) => ({ type: `${kind}-delta` as const, id, delta: "", ...meta })),
        { type: `${kind}-end`, id },
      ];
    }
    const { tool: toolName, input, streamed, result, bad } = saying;
    const executed = {
      ...(result !== undefined && { providerExecuted: true }),
      ...(toolName === DYNAMIC && { dynamic: true }),
    };
    const parts: UIMessageChunk[] = [];
    if (streamed) {
      parts.push({ type: "tool-input-start", toolCallId: id, toolName, ...executed });
      for (const one of pieces(random, JSON.stringify(input)))
        parts.push({ type: "tool-input-delta", toolCallId: id, inputTextDelta: one });
    }
    // As it is admitted: an object.
    const stored = typeof input === "string" ? {} : input;
    if (bad)
      parts.push({ type: "tool-input-error", toolCallId: id, toolName, input: stored, errorText: "bad", ...executed });
    else parts.push({ type: "tool-input-available", toolCallId: id, toolName, input: stored, ...executed });
    if (result !== undefined)
      parts.push({ type: "tool-output-available", toolCallId: id, output: result, providerExecuted: true });
    return parts;
  });
}

/** Ids are names only. */
function nameless(parts: readonly Part[]): unknown[] {
  return parts.map((part) => ({ ...part, id: 0, toolCallId: 0, sourceId: 0 }));
}

/** What may go out once only. */
function onceOnly(chunk: UIMessageChunk): string | undefined {
  if (chunk.type.endsWith("-delta")) return undefined;
  if ("toolCallId" in chunk) return `${chunk.type} ${chunk.toolCallId}`;
  return undefined;
}

/** One answer without a cut, and the same one in several attempts, all cut but the last. */
function repeated(seed: number, prefix: (attempt: number) => string): { whole: Step; step: Step } {
  const random = seeded(seed);
  const sayings = someSayings(random);
  const whole = new Step(...stream(random, sayings, "w"));
  const step = new Step();
  const cuts = 1 + random(3);
  for (let attempt = 0; attempt <= cuts; attempt++) {
    const chunks = stream(random, sayings, prefix(attempt));
    if (attempt === cuts) {
      step.again(...chunks);
      continue;
    }
    const fit =
      attempt === 0 ? undefined : new StepFit({ builder: step.builder, turn: 1, isTakenElsewhere: () => false }, 1);
    for (const chunk of chunks.slice(0, random(chunks.length + 1)))
      for (const one of fit?.take(chunk) ?? [chunk]) step.put(one);
  }
  return { whole, step };
}

function streamOf(chunks: readonly UIMessageChunk[]): ReadableStream<UIMessageChunk> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

/** What the AI SDK's client makes of it. */
async function onClient(chunks: readonly UIMessageChunk[]): Promise<Part[]> {
  const all: UIMessageChunk[] = [{ type: "start-step" }, ...chunks, { type: "finish-step" }];
  let parts: Part[] = [];
  for await (const message of readUIMessageStream({ stream: streamOf(all), terminateOnError: true }))
    ({ parts } = message);
  return JSON.parse(JSON.stringify(parts)) as Part[];
}

test.each([
  ["the same ids", () => "i"],
  ["new ids", (attempt: number) => `i${attempt}-`],
])("an attempt that says the same again, with %s, adds what was missing and nothing else", async (_name, prefix) => {
  const types = new Set<string>();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { whole, step } = repeated(seed, prefix);
    for (const { type } of step.sent) types.add(type);
    expect(nameless(step.parts), `seed ${seed}`).toEqual(nameless(whole.parts));
    const once = step.sent.flatMap((chunk) => onceOnly(chunk) ?? []);
    expect(once, `seed ${seed}`).toEqual([...new Set(once)]);
    const ends = (chunks: readonly UIMessageChunk[]) => chunks.filter(({ type }) => /(start|end)$/.test(type)).length;
    expect(ends(step.sent.filter((chunk) => "id" in chunk)), `seed ${seed}`).toBe(
      ends(whole.sent.filter((chunk) => "id" in chunk)),
    );
    expect(step.builder.openText.size + step.builder.openReasoning.size).toBe(0);
    if (seed > SEEN_BY_CLIENT) continue;
    expect(nameless(await onClient(step.sent)), `seed ${seed}`).toEqual(nameless(await onClient(whole.sent)));
  }
  // Six of speech, five of tools, a source: the answers had something of everything.
  expect(types.size).toBe(12);
});

test("an attempt that goes on makes one text, wherever the cut was", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = seeded(seed);
    const letters = Array.from({ length: 1 + random(12) }, () => "ab "[random(3)]).join("");
    const at = random(letters.length + 1);
    const [before, rest] = [letters.slice(0, at), letters.slice(at)];
    // To say all of it again is to repeat it.
    if (before !== "" && rest.startsWith(before)) continue;
    const said = (words: string): UIMessageChunk[] => [
      { type: "text-start", id: "a" },
      ...pieces(random, words).map((delta) => ({ type: "text-delta" as const, id: "a", delta })),
    ];
    const step = new Step(...said(before));
    step.again(...said(rest), { type: "text-end", id: "a" });
    expect(step.parts, `seed ${seed}`).toEqual([{ type: "text", text: letters, state: "done" }]);
  }
});

test("whatever a second attempt says, nothing of the first is lost and everything has an end", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = seeded(seed);
    const first = stream(random, someSayings(random), "i");
    const second = stream(random, someSayings(random), random(10) < 5 ? "i" : "j");
    const step = new Step(...first.slice(0, random(first.length + 1)));
    const before = step.parts;
    step.again(...second);
    const words = (part: Part | undefined) => (part !== undefined && "text" in part ? part.text : "");
    const lost = before.filter((part, index) => {
      const now = step.parts[index];
      return now?.type !== part.type || !words(now).startsWith(words(part));
    });
    expect(lost, `seed ${seed}`).toEqual([]);
    expect(step.builder.openText.size + step.builder.openReasoning.size, `seed ${seed}`).toBe(0);
    expect(step.parts.some((part) => "state" in part && /streaming/.test(part.state ?? ""))).toBe(false);
  }
});
