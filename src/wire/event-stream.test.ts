import { expect, test } from "vitest";
import { END_OF_STREAM, readEvents } from "./event-stream.ts";

const encoder = new TextEncoder();

async function* bytesOf(pieces: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield typeof piece === "string" ? encoder.encode(piece) : piece;
}

async function read(...pieces: (string | Uint8Array)[]): Promise<string[]> {
  const events = await Array.fromAsync(readEvents(bytesOf(pieces), true));
  return events.map(({ data }) => data).filter((data) => data !== END_OF_STREAM);
}

const EVENTS = ['{"type":"start"}', '{"delta":"é 😀 \\n"}', '{"type":"finish"}'];
const STREAM = `${EVENTS.map((data) => `data: ${data}\n\n`).join("")}data: [DONE]\n\n`;

test("one event per piece, as the AI SDK writes them", async () => {
  expect(await read(...EVENTS.map((data) => `data: ${data}\n\n`), "data: [DONE]\n\n")).toEqual(EVENTS);
});

test.each([
  ["\\n", STREAM],
  ["\\r\\n", STREAM.replaceAll("\n", "\r\n")],
])("lines that end in %s, split between any two bytes", async (_, stream) => {
  const bytes = encoder.encode(stream);
  for (let at = 0; at <= bytes.length; at++) {
    expect(await read(bytes.subarray(0, at), bytes.subarray(at)), `split at ${at}`).toEqual(EVENTS);
  }
  expect(await read(...[...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(EVENTS);
});

test("several events in one piece", async () => {
  expect(await read(STREAM)).toEqual(EVENTS);
});

test("comments, names, ids and empty events are passed over", async () => {
  expect(await read(": ping\n\nevent: x\nid: 7\nretry: 5\ndata: a\n\n\n\n: ping\n\ndata: b\n\n")).toEqual(["a", "b"]);
});

test("an event of several data lines is one text", async () => {
  expect(await read("data: a\ndata: b\n\n")).toEqual(["a\nb"]);
  expect(await read("data: a\n", "data: b\n\n")).toEqual(["a\nb"]);
});

test("the space after the colon is optional, and only one belongs to the field", async () => {
  expect(await read("data:a\n\n", "data:  b\n\n")).toEqual(["a", " b"]);
});

test("an event without its last line break is read all the same, and half a character does no harm", async () => {
  expect(await read("data: a\n\ndata: b")).toEqual(["a", "b"]);
  expect(await read("data: a\n\n", Uint8Array.of(0xf0, 0x9f))).toEqual(["a"]);
});

test("nothing at all", async () => {
  expect(await read()).toEqual([]);
  expect(await read("")).toEqual([]);
  expect(await read("data: [DONE]\n\n")).toEqual([]);
});

test("ids come with their events, and an event that was cut is dropped unless the reader is lenient", async () => {
  const events = await Array.fromAsync(readEvents(bytesOf(["id: 3\ndata: a\n\ndata: b"])));
  expect(events).toEqual([{ id: "3", data: "a" }]);
});
