import { PerdureError } from "../error.ts";
import { readJson } from "../wire/json.ts";
import { MAX_JSON_DEPTH } from "../wire/parse.ts";

/** The body of a request as JSON. @throws PerdureError `bad_input` when it is not. */
export async function readBody(request: Request): Promise<unknown> {
  const read = readJson(await request.text(), MAX_JSON_DEPTH);
  if (!read.ok) throw new PerdureError("bad_input", "The body is not JSON, or nested too deep.");
  return read.value;
}

/** One segment of a path, as it was meant. */
export function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
