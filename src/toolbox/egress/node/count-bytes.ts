import { Transform } from "node:stream";
import { PerdureError } from "../../../base/error.ts";

/** Lets bytes through and fails with `limit` after `maxBytes`. */
export function countBytes(maxBytes: number, what: string): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      size += chunk.byteLength;
      if (size <= maxBytes) done(null, chunk);
      else done(new PerdureError("limit", `The ${what} is larger than ${maxBytes} bytes.`));
    },
  });
}
