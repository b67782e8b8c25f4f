import { expect, test } from "vitest";
import { withReadableData } from "./model-messages.ts";

const file = (url: string, filename?: string) => ({ type: "file", mediaType: "text/plain", url, filename }) as const;

test.each(["data:image/png;base64,iVBORw0KGgo=", "data:;base64,", "data:a/b;x=y;BASE64,a-_9", "https://a.example/x"])(
  "%s is left as it is",
  (url) => {
    const part = file(url);
    expect(withReadableData(part)).toBe(part);
  },
);

test.each([
  ["data:text/plain,hello%20x", "data:text/plain;base64,aGVsbG8geA=="],
  ["data:text/plain;charset=utf-8,%C3%BC,", "data:text/plain;charset=utf-8;base64,w7ws"],
  ["data:,", "data:;base64,"],
])("%s is written as base64", (url, base64) => {
  expect(withReadableData(file(url, "a.txt"))).toEqual(file(base64, "a.txt"));
});

test.each(["data:", "data:text/plain;base64", "data:a/b;base64,%%%", "data:a/b;base64,abcde", "data:a/b,%E0%A4"])(
  "%s cannot be read, and the model is told so",
  (url) => {
    expect(withReadableData(file(url, "a.txt"))).toEqual({ type: "text", text: "[The file a.txt cannot be read.]" });
    expect(withReadableData(file(url))).toEqual({ type: "text", text: "[The file cannot be read.]" });
  },
);
