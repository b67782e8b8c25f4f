import { PerdureError } from "../../../base/error.ts";
import { MAX_JSON_DEPTH } from "../../../wire/json.ts";

const LINE_FEED = 10;
const RETURN = 13;

/** What an answer, or one event of a stream, may hold at most. */
export interface AnswerBounds {
  readonly bytes: number;
  /** Of JSON, lists and objects included: a few megabytes can hold millions, which take seconds to parse and to check. */
  readonly values: number;
}

/**
 * A response whose body fails, as it is read, when it is too large: as a whole, or per event of an event stream, which may go on
 * for days.
 */
export function boundBody(response: Response, bounds: AnswerBounds): Response {
  const { body, status } = response;
  // A Response with these may not be made with a body.
  if (body === null || status === 204 || status === 205 || status === 304) return response;
  const streams = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  const meter = new Meter(bounds, streams);
  const metered = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const problem = meter.take(chunk);
      if (problem === undefined) return controller.enqueue(chunk);
      controller.error(new PerdureError("limit", `The answer of the MCP server ${problem}.`));
    },
  });
  const { headers, statusText } = response;
  const bounded = new Response(body.pipeThrough(metered), { status, statusText, headers });
  // Redirects are judged by it, and a made Response has none.
  Object.defineProperty(bounded, "url", { value: response.url });
  return bounded;
}

/** Counts what came so far, of the event that is under way. */
class Meter {
  readonly #bounds: AnswerBounds;
  readonly #streams: boolean;
  #bytes = 0;
  #values = 0;
  #depth = 0;
  #inText = false;
  #escaped = false;
  /** How many line ends came since the last other byte; the two bytes of one count once. */
  #lines = 0;
  #previous = 0;

  constructor(bounds: AnswerBounds, streams: boolean) {
    this.#bounds = bounds;
    this.#streams = streams;
  }

  /** @returns what is wrong, if it is too much now. */
  take(chunk: Uint8Array): string | undefined {
    const most = this.#bounds;
    const streams = this.#streams;
    // Counted here and not in the fields, which takes several times longer.
    let bytes = this.#bytes;
    let values = this.#values;
    let depth = this.#depth;
    let lines = this.#lines;
    let previous = this.#previous;
    let inText = this.#inText;
    let escaped = this.#escaped;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0;
      bytes++;
      if (streams && (byte === LINE_FEED || byte === RETURN)) {
        // No text of JSON goes on in the next line, whatever stands in a line that is none.
        inText = false;
        escaped = false;
        if (byte === RETURN || previous !== RETURN) lines++;
        if (lines > 1) {
          bytes = 0;
          values = 0;
          depth = 0;
        }
        previous = byte;
        continue;
      }
      lines = 0;
      previous = byte;
      if (inText) {
        if (escaped) escaped = false;
        else if (byte === BACKSLASH) escaped = true;
        else if (byte === QUOTE) inText = false;
      } else if (byte === QUOTE) inText = true;
      else if (byte === COMMA) values++;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        values++;
        if (++depth > MAX_JSON_DEPTH) return `is nested deeper than ${MAX_JSON_DEPTH} levels`;
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
      if (bytes > most.bytes) return `is larger than ${most.bytes} bytes`;
      if (values > most.values) return `holds more than ${most.values} values`;
    }
    this.#bytes = bytes;
    this.#values = values;
    this.#depth = depth;
    this.#lines = lines;
    this.#previous = previous;
    this.#inText = inText;
    this.#escaped = escaped;
    return undefined;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
