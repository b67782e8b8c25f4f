import { errorText, PerdureError } from "../error.ts";
import type { AgentHost } from "../port.ts";
import { readLongBody } from "../wire/chat-text.ts";

/**
 * The body of a request as JSON. A long transcript in it is read in pieces.
 * @throws PerdureError `bad_input` when it is not JSON, `too_large` when it holds more than is taken.
 */
export async function readBody(host: AgentHost, request: Request): Promise<unknown> {
  const read = await readLongBody(await request.text(), () => host.breathe());
  if ("reason" in read) throw new PerdureError(read.code ?? "bad_input", read.reason);
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
