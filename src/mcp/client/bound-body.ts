import { PerdureError } from "../../error.ts";

const LINE_FEED = 10;
const RETURN = 13;

/**
 * A response whose body fails when it is larger than `max` bytes: the whole of it, or of an event stream each single event,
 * since a stream itself may go on for days.
 */
export function boundBody(response: Response, max: number): Response {
  const { body, status } = response;
  // A Response with these may not be made with a body.
  if (body === null || status === 204 || status === 205 || status === 304) return response;
  const streams = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  let size = 0;
  let previous = 0;
  const meter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.byteLength;
      if (streams) {
        // What counts is what came since the last empty line.
        for (let at = chunk.length - 1; at >= 0; at--) {
          if (chunk[at] !== LINE_FEED) continue;
          const before = chunk[at - 1] === RETURN ? chunk[at - 2] : chunk[at - 1];
          if ((at === 0 ? previous : before) !== LINE_FEED) continue;
          size = chunk.length - 1 - at;
          break;
        }
        previous = chunk.at(-1) ?? previous;
      }
      if (size <= max) return controller.enqueue(chunk);
      controller.error(new PerdureError("limit", `The answer of the MCP server is larger than ${max} bytes.`));
    },
  });
  const { headers, statusText } = response;
  const bounded = new Response(body.pipeThrough(meter), { status, statusText, headers });
  // Redirects are judged by it, and a made Response has none.
  Object.defineProperty(bounded, "url", { value: response.url });
  return bounded;
}
