import { expect, test } from "vitest";
import { boundBody } from "./bound-body.ts";

const streamOf = (...chunks: readonly string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });

const events = { headers: { "content-type": "text/event-stream; charset=utf-8" } };

test("a body is cut off at its bound", async () => {
  expect(await boundBody(new Response("x".repeat(10)), 10).text()).toHaveLength(10);
  await expect(boundBody(new Response("x".repeat(11)), 10).text()).rejects.toMatchObject({ code: "limit" });
  expect(boundBody(new Response(null, { status: 204 }), 10).body).toBeNull();
});

test.each([
  ["in pieces", ["data: a\n", "\ndata: b\n\n", "data: c\n\n", "data: d\n", "\n"]],
  ["with returns", ["data: aaa\r\n\r\ndata: b\r\n\r\n"]],
])("a stream may be longer than any of its events (%s)", async (_what, chunks) => {
  const response = boundBody(new Response(streamOf(...chunks), events), 18);
  expect(await response.text()).toBe(chunks.join(""));
});

test("an event that is too large ends the stream", async () => {
  const chunks = ["data: ok\n\n", `data: ${"x".repeat(10)}`, "x".repeat(10)];
  await expect(boundBody(new Response(streamOf(...chunks), events), 20).text()).rejects.toMatchObject({
    code: "limit",
  });
});
