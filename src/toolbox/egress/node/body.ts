import type { IncomingMessage } from "node:http";
import type { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { concat } from "../../../base/bytes.ts";
import { PerdureError } from "../../../base/error.ts";

/** What the host can undo, and so asks for. */
export const ACCEPTED_ENCODINGS = "gzip, br";

/** A body, and whether it is in the form that the headers tell of. */
interface Body {
  readonly bytes: Uint8Array;
  readonly decoded: boolean;
}

/**
 * Reads a body to its end, decompressed. What is too large is given up as soon as that is known: a small body that
 * unfolds into a large one costs no more than the limit.
 * @throws PerdureError `limit` over `maxBytes`, `call_failed` for what cannot be decompressed
 */
export async function readBody(message: IncomingMessage, maxBytes: number, hasBody: boolean): Promise<Body> {
  if (!hasBody) {
    message.destroy();
    return { bytes: new Uint8Array(), decoded: false };
  }
  const announced = Number(message.headers["content-length"] ?? 0);
  if (announced > maxBytes) {
    message.destroy();
    throw tooLarge(maxBytes);
  }
  const unpack = decoderOf(message.headers["content-encoding"]);
  const chunks: Uint8Array[] = [];
  let size = 0;
  const collect = async (source: AsyncIterable<Uint8Array>) => {
    for await (const chunk of source) {
      size += chunk.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  };
  if (unpack === undefined) await pipeline(message as Readable, collect);
  else {
    try {
      await pipeline(message as Readable, unpack, collect);
    } catch (thrown) {
      if (!isZlib(thrown)) throw thrown;
      throw new PerdureError("call_failed", "The response could not be decompressed.", { cause: thrown });
    }
  }
  return { bytes: concat(chunks), decoded: unpack !== undefined };
}

function decoderOf(encoding: string | undefined): Transform | undefined {
  const names = (encoding ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  // Packed several times is how bombs are built.
  if (names.length > 1) throw new PerdureError("call_failed", "The response is compressed more than once.");
  if (names[0] === "gzip" || names[0] === "x-gzip") return createGunzip();
  if (names[0] === "deflate") return createInflate();
  return names[0] === "br" ? createBrotliDecompress() : undefined;
}

function isZlib(thrown: unknown): boolean {
  const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? String(thrown.code) : "";
  return code.startsWith("Z_") || code.startsWith("ERR__ERROR_");
}

function tooLarge(maxBytes: number): PerdureError {
  return new PerdureError("limit", `The response is larger than ${maxBytes} bytes.`);
}
