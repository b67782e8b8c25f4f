// What must be true of every request of a long conversation, and of what is stored.
import type { UIMessage } from "ai";
import type { RecordedCall } from "perdure/testing";
import { expect } from "vitest";
import type { ModelPrompt } from "../../src/testing/model-types.ts";
import { sayingsInPrompt, sayingsOf, valuesIn } from "./facts.ts";
import { valuesInSummary } from "./summariser.ts";
import { type Conversation, marksIn } from "./talk.ts";

const NOTE = "[Note of the system, not of the user.";
const WORDS = "What the user said in messages that are not shown whole";

/** A request in its parts. */
export interface Sent {
  /** The summary, with what code put below it; undefined when there is none. */
  readonly note: string | undefined;
  /** What stands behind it. */
  readonly rest: ModelPrompt;
  /** All texts. */
  readonly text: string;
}

export function readSent({ prompt }: Pick<RecordedCall, "prompt">): Sent {
  const said = prompt.filter(({ role }) => role !== "system");
  const text = JSON.stringify(said);
  const notes = said.filter((message) => JSON.stringify(message).includes(NOTE));
  expect(notes.length, "summaries in a request").toBeLessThanOrEqual(1);
  if (notes.length === 0) return { note: undefined, rest: said, text };
  // It begins the conversation, as a message of its own.
  expect(said[0]).toBe(notes[0]);
  return { note: sayingsInPrompt(notes)[0]?.text ?? "", rest: said.slice(1), text };
}

/** Each call has its result right behind it, and no result is without its call. */
export function expectPairs(prompt: ModelPrompt): void {
  const open = new Set<string>();
  const seen = new Set<string>();
  for (const message of prompt) {
    if (message.role !== "tool") expect([...open], "calls without a result").toEqual([]);
    if (message.role === "system") continue;
    for (const part of message.content) {
      if (part.type === "tool-call") {
        expect(seen.has(part.toolCallId), `call ${part.toolCallId} twice`).toBe(false);
        seen.add(part.toolCallId);
        open.add(part.toolCallId);
      }
      if (part.type === "tool-result") expect(open.delete(part.toolCallId), `result of ${part.toolCallId}`).toBe(true);
    }
  }
  expect([...open], "calls without a result").toEqual([]);
}

/**
 * Nothing stands in it twice: messages behind the summary are the end of the conversation, without a gap, and pinned
 * ones before them. @param stored up to the last question. @returns how many of them are not shown.
 */
export function expectTail(call: RecordedCall, stored: readonly UIMessage[], pins: readonly string[]): number {
  const { rest, note } = readSent(call);
  const marks = marksIn(JSON.stringify(rest));
  expect(new Set(marks).size, "each message once").toBe(marks.length);
  // Summaries of these tests quote no messages; what code puts below them has words of the user.
  expect(marksIn(note?.split(WORDS)[0] ?? "")).toEqual([]);
  const texts = stored.map((message) => marksIn(JSON.stringify(message)));
  const first = texts.findIndex(
    (own, at) =>
      texts
        .slice(at)
        .flat()
        .every((mark) => marks.includes(mark)) && own.length > 0,
  );
  const pinned = stored.slice(0, first).flatMap(({ id }, at) => (pins.includes(id) ? (texts[at] ?? []) : []));
  expect(marks).toEqual([...pinned, ...texts.slice(first).flat()]);
  return first;
}

/** Pinned messages are there word for word, once. */
export function expectPinned(call: RecordedCall, stored: readonly UIMessage[], pins: readonly string[]): number {
  const said = sayingsInPrompt(readSent(call).rest);
  const pinned = stored.filter(({ id }) => pins.includes(id));
  for (const message of pinned) {
    const [text] = message.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    expect(
      said.filter((one) => one.text === text),
      `${message.id}, word for word and once`,
    ).toHaveLength(1);
  }
  return pinned.length;
}

/** What the conversation says last of each thing, the request says too. @returns how many there are. */
export function expectFacts({ facts }: Conversation, call: RecordedCall, stored: readonly UIMessage[]): number {
  const { note, rest } = readSent(call);
  const found = valuesIn(facts, sayingsInPrompt(rest), valuesInSummary(note ?? ""));
  const truth = valuesIn(facts, stored.flatMap(sayingsOf));
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(truth));
  return truth.size;
}
