import { expect, test } from "vitest";
import { isMediaMark, putMedia, takeMedia } from "./media.ts";

const data = "iVBORw0KGgoAAAANSUhEUgAA+/b9".repeat(50);

test.each<[string, unknown, string]>([
  ["a data URL", "data:image/png;base64,AAAA", "image/png"],
  ["a data URL that is no base64", "data:image/svg+xml,%3Csvg/%3E", "image/svg+xml"],
  ["long base64", data, "base64"],
  ["a file of the AI SDK", { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } }, "image/png"],
  ["a part of older versions", { type: "media", mediaType: "audio/wav", data: "AAAA" }, "audio/wav"],
  ["a picture of MCP", { type: "image", mimeType: "image/jpeg", data: "AAAA" }, "image/jpeg"],
  ["a resource of MCP", { uri: "file:///a", mimeType: "application/pdf", blob: "AAAA" }, "application/pdf"],
  ["a text file as base64", { mediaType: "text/csv", data }, "text/csv"],
])("%s is taken whole and put back", (_name, value, mediaType) => {
  const output = { before: 1, list: [value], after: "x" };
  const taken = takeMedia(output);
  expect(taken.media).toMatchObject([{ value, mediaType }]);
  const mark = taken.media[0]?.mark;
  expect(isMediaMark(mark)).toBe(true);
  expect(taken.value).toEqual({ before: 1, list: [mark], after: "x" });
  expect(putMedia(taken.value, new Map([[mark, value]]))).toEqual(output);
});

test.each<[string, unknown]>([
  ["words", "lorem ipsum ".repeat(200)],
  ["one letter", "x".repeat(5_000)],
  ["hex", "0123456789abcdef".repeat(200)],
  ["short base64", "iVBORw0KGgo="],
  ["text about data URLs", "data: a lot of it, really"],
  ["a text file", { mediaType: "text/plain", data: "hello there" }],
  ["a file that is elsewhere", { mediaType: "image/png", url: "https://example.com/a.png" }],
  ["inline text", { type: "file", mediaType: "text/plain", data: { type: "text", text: "hello" } }],
])("%s is no media", (_name, value) => {
  const output = { list: [value] };
  const taken = takeMedia(output);
  expect(taken.media).toEqual([]);
  expect(taken.value).toBe(output);
});
