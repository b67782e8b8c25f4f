import { errorText, PerdureError } from "../error.ts";
import { readJson } from "../wire/json.ts";
import { MAX_JSON_DEPTH } from "../wire/parse.ts";

/** The body of a request as JSON. @throws PerdureError `bad_input` when it is not, `too_large`. */
export async function readBody(request: Request): Promise<unknown> {
  const read = readJson(await request.text(), MAX_JSON_DEPTH);
  if (!read.ok) throw new PerdureError("bad_input", "The body is not JSON, or nested too deep.");
  return read.value;
}

/** The answer to a request that is wrong in itself; what is anything else is thrown on. */
export function refuseInput(thrown: unknown): Response {
  const status = PerdureError.is(thrown) ? STATUS[thrown.code] : undefined;
  if (status === undefined || !PerdureError.is(thrown)) throw thrown;
  return Response.json({ error: { code: thrown.code, message: errorText(thrown) } }, { status });
}

const STATUS: Partial<Record<PerdureError["code"], number>> = {
  bad_input: 400,
  not_allowed: 403,
  bad_state: 409,
  too_large: 413,
};

/** One segment of a path, as it was meant. */
export function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
