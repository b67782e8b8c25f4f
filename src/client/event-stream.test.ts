import { expect, test } from "vitest";
import { readBodyEvents } from "./http-chat-transport.ts";

function bodyOf(...pieces: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
      controller.close();
    },
  });
}

test("events come with their ids, however the bytes were cut", async () => {
  const text =
    'id: 0\ndata: {"a":"ü"}\n\n: a comment\n\ndata: one\ndata: two\n\nid: 7\r\ndata: x\r\n\r\ndata: unfinished';
  const bytes = new TextEncoder().encode(text);
  const whole = await Array.fromAsync(readBodyEvents(bodyOf(bytes)));
  expect(whole).toEqual([
    { id: "0", data: '{"a":"ü"}' },
    { id: undefined, data: "one\ntwo" },
    { id: "7", data: "x" },
  ]);
  const cut = Array.from(bytes, (byte) => new Uint8Array([byte]));
  expect(await Array.fromAsync(readBodyEvents(bodyOf(...cut)))).toEqual(whole);
});

test("leaving early, or by the signal, ends the request", async () => {
  let cancelled = 0;
  const endless = () =>
    new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode("data: 1\n\n")),
      cancel: () => void cancelled++,
    });
  for await (const _ of readBodyEvents(endless())) break;
  await expect.poll(() => cancelled).toBe(1);
  const stop = new AbortController();
  for await (const _ of readBodyEvents(endless(), stop.signal)) stop.abort();
  await expect.poll(() => cancelled).toBe(2);
});
