import { readUpTo } from "../../base/bytes.ts";
import { posixError } from "../sandbox/posix-error.ts";

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Where it is looked for NUL: texts have none, and most other things have one early. */
const SNIFFED = 8_192;
const STREAM_BYTES = 64 * 1024;

export function encodeText(text: string): Uint8Array {
  if (typeof text !== "string") throw posixError("EINVAL", `The content must be a string, not ${typeof text}.`);
  return encoder.encode(text);
}

/** The text that bytes are; undefined when they are none: NUL near the beginning, or no UTF-8. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, SNIFFED).includes(0)) return undefined;
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

/** As {@link decodeText}. @throws PerdureError `EINVAL` */
export function textOf(path: string, bytes: Uint8Array): string {
  const text = decodeText(bytes);
  if (text === undefined) throw posixError("EINVAL", `${path} is not UTF-8 text. Read its bytes instead.`);
  return text;
}

/** Everything that a stream brings. @throws PerdureError `EFBIG`, after which the stream is cancelled */
export function collectStream(stream: ReadableStream<Uint8Array>, max: number): Promise<Uint8Array> {
  return readUpTo(stream, max, () => tooLarge("The stream", max));
}

/** A file that may not be as large as that. */
export function tooLarge(what: string, max: number): Error {
  return posixError("EFBIG", `${what} has more than ${max} bytes, which is the most that a file may have here.`);
}

/** Bytes as a stream, in pieces. */
export function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + STREAM_BYTES));
      at += STREAM_BYTES;
    },
  });
}
