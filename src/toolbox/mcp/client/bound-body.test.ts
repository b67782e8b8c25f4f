import { expect, test } from "vitest";
import { PerdureError } from "../../../base/error.ts";
import { boundBody } from "./bound-body.ts";

const streamOf = (...chunks: readonly string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });

const bytes = (most: number) => ({ bytes: most, values: 100 });
const events = { headers: { "content-type": "text/event-stream; charset=utf-8" } };

test("a body is cut off at its bound", async () => {
  expect(await boundBody(new Response("x".repeat(10)), bytes(10)).text()).toHaveLength(10);
  await expect(boundBody(new Response("x".repeat(11)), bytes(10)).text()).rejects.toMatchObject({ code: "limit" });
  expect(boundBody(new Response(null, { status: 204 }), bytes(10)).body).toBeNull();
});

test.each([
  ["in pieces", ["data: a\n", "\ndata: b\n\n", "data: c\n\n", "data: d\n", "\n"]],
  ["with returns", ["data: aaa\r\n\r\ndata: b\r\n\r\n"]],
])("a stream may be longer than any of its events (%s)", async (_what, chunks) => {
  const response = boundBody(new Response(streamOf(...chunks), events), bytes(18));
  expect(await response.text()).toBe(chunks.join(""));
});

test("an event that is too large ends the stream", async () => {
  const chunks = ["data: ok\n\n", `data: ${"x".repeat(10)}`, "x".repeat(10)];
  await expect(boundBody(new Response(streamOf(...chunks), events), bytes(20)).text()).rejects.toMatchObject({
    code: "limit",
  });
});

const values = { bytes: 100_000, values: 10 };
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

test.each([
  ["as many values as may be", "[1,2,3,4,5,6,7,8,9,10]", undefined],
  ["commas in texts", JSON.stringify({ a: '",[[[{,\\",'.repeat(50) }), undefined],
  ["too many values", "[1,2,3,4,5,6,7,8,9,10,11]", "more than 10 values"],
  ["too many lists", `[${"[]".repeat(10)}`, "more than 10 values"],
])("%s: an answer is bounded by what it holds, before it is parsed", async (_what, body, words) => {
  for (const made of [new Response(body), new Response(streamOf(`: "\ndata: ${body}\n\n`), events)]) {
    const read = await boundBody(made, values)
      .text()
      .catch((error: unknown) => error);
    expect(read instanceof PerdureError ? `${read.code}: ${read.message}` : read).toContain(words ?? body);
    expect(read instanceof PerdureError && read.code).toBe(words !== undefined && "limit");
  }
});

test("an answer is bounded by levels; each event of a stream counts for itself", async () => {
  const most = { bytes: 100_000, values: 10_000 };
  expect(await boundBody(new Response(nested(256)), most).text()).toHaveLength(512);
  await expect(boundBody(new Response(nested(257)), most).text()).rejects.toMatchObject({ code: "limit" });
  const chunks = Array.from({ length: 9 }, () => "data: [1,2,3,4,5]\r\n\r\n");
  expect(await boundBody(new Response(streamOf(...chunks), events), values).text()).toBe(chunks.join(""));
});
