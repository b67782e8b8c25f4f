import { expect, test } from "vitest";
import {
  bytesOfDataUrl,
  dataUrlOf,
  mapMedia,
  MIN_MOVED_CHARS,
  movablesOf,
  referencesOf,
  referenceTo,
  shortenedTexts,
  toReference,
  withStoredMedia,
} from "./media-ref.ts";
import type { Part, UIMessage } from "./types.ts";

const NAME = "a".repeat(64);
const ADDRESS = `/agents/chat/one/files/${NAME}`;
const picture = dataUrlOf(new Uint8Array(MIN_MOVED_CHARS).fill(7), "image/png");
const long = "long words ".repeat(4_000);

const message = (...parts: unknown[]): UIMessage => ({ id: "m", role: "assistant", parts: parts as Part[] });
const file = (url: string) => ({ type: "file", mediaType: "image/png", url });
const call = (output: unknown, state = "output-available") => ({
  ...{ type: "tool-x", toolCallId: "c", state, input: { long }, output },
});

test("large data URLs of files, and large texts and data URLs in outputs, can be moved", () => {
  const found = movablesOf(
    message(file(picture), call({ deep: [long, { url: picture }] }), { type: "text", text: long }),
  );
  expect(found).toEqual([
    { kind: "media", mediaType: "image/png", url: picture },
    { kind: "text", text: long },
  ]);
});

test.each([
  ["a small file", file("data:image/png;base64,AAAA")],
  ["a file elsewhere", file(`https://example.com/${"x".repeat(MIN_MOVED_CHARS)}`)],
  ["a short output", call("short")],
  ["an output that is not the last one", { ...call(long), preliminary: true }],
  ["an input", { type: "tool-x", toolCallId: "c", state: "input-available", input: { long } }],
  [
    "base64 beside its type, of which clients make a picture",
    call({ data: picture.slice(30), mediaType: "image/png" }),
  ],
  ["text", { type: "text", text: long }],
  ["reasoning", { type: "reasoning", text: long }],
])("stays where it is: %s", (_, part) => {
  const found = movablesOf(message(part));
  expect(found.filter(({ kind }) => kind === "media" || part.type !== "file")).toEqual([]);
});

test("what was moved is found again by what stands in its place", () => {
  const media = referenceTo({ kind: "media", mediaType: "image/png", url: picture }, ADDRESS);
  expect(media).toBe(ADDRESS);
  expect(toReference(media)).toEqual({ kind: "media", name: NAME });
  const text = referenceTo({ kind: "text", text: long }, ADDRESS);
  expect(text.length).toBeLessThan(5_000);
  expect(text.startsWith(long.slice(0, 4_000))).toBe(true);
  expect(toReference(text)).toEqual({ kind: "text", name: NAME });
  expect(referencesOf(message(file(media), call({ deep: [text] })))).toHaveLength(1);
});

test.each([
  `https://example.com/files/${NAME}`,
  `/files/${NAME}?x`,
  `/files/${"A".repeat(64)}`,
  `/files/${"a".repeat(63)}`,
  `/files/../files/${NAME}/x`,
  `see /agents/chat/one/files/${NAME}`,
  "",
])("is no reference: %s", (text) => {
  expect(toReference(text)).toBeUndefined();
});

test("a message in which nothing changes is the same object", () => {
  const given = message(file(picture), call({ deep: [1, null, { a: "b" }] }));
  expect(mapMedia(given, (text) => text)).toBe(given);
  expect(mapMedia(given, (text) => (text === "b" ? "c" : text))).toEqual(
    message(file(picture), call({ deep: [1, null, { a: "c" }] })),
  );
});

test("bytes survive a data URL and back", () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, n) => (n * 31) % 256);
  expect(bytesOfDataUrl(dataUrlOf(bytes, "image/png"))).toEqual(bytes);
  expect(bytesOfDataUrl("data:text/plain;charset=utf-8,gr%C3%BCn")).toEqual(new TextEncoder().encode("grün"));
  expect(bytesOfDataUrl("data:text/plain;base64,%%%")).toBeUndefined();
  expect(bytesOfDataUrl("data:text/plain,%zz")).toBeUndefined();
  expect(bytesOfDataUrl("nothing")).toBeUndefined();
});

test("what a client sends of a message before it was moved is no edit, other changes are", () => {
  const stored = message({ type: "text", text: "look" }, file(ADDRESS));
  expect(withStoredMedia(stored, message({ type: "text", text: "look" }, file(picture)))).toEqual(stored);
  expect(withStoredMedia(stored, message({ type: "text", text: "other" }, file(picture)))).not.toEqual(stored);
  const plain = message({ type: "text", text: "look" }, file("https://example.com/x.png"));
  expect(withStoredMedia(stored, plain)).toEqual(plain);
  expect(withStoredMedia(undefined, plain)).toBe(plain);
});

test("how much of a text is kept elsewhere is known", () => {
  const text = referenceTo({ kind: "text", text: long }, ADDRESS);
  expect(shortenedTexts({ deep: [text, "short"] })).toEqual([{ text, missing: long.length - text.length }]);
  expect(shortenedTexts([long, ADDRESS, 1, null])).toEqual([]);
});
