import { PerdureError } from "../../../base/error.ts";
import { Backoff, Trouble, type Batch, type ReadPlace, type StreamHttp } from "./stream-http.ts";
import { START } from "./stream-state.ts";

/** A server that has nothing new holds the request at least that long. */
const SHORTEST_WAIT_MS = 10;

/**
 * How long a server may claim that its stream ends before what it handed out: the published one does, until it notes its file's
 * end.
 */
const BEHIND_PATIENCE_MS = 2_000;

/** Who is told what was read. None of these may throw. */
interface ReaderEvents {
  /** The stream is there. */
  onOpen(): void;
  /** The next messages, each batch once and in order; `next` is where it goes on. */
  onBatch(messages: readonly unknown[], next: string): void;
  /** All that was there is read. */
  onUpToDate(): void;
  /** It cannot be read at the moment; told once for each outage. */
  onTrouble(error: Error): void;
}

interface ReaderOptions {
  readonly http: StreamHttp;
  readonly create: boolean;
  readonly signal: AbortSignal;
  readonly events: ReaderEvents;
}

/**
 * Reads a stream from its start and follows it. A server's answer is taken whole, with its place, or not at all, so nothing is
 * read twice or missed. Ends when the signal aborts or a closed stream was read to its end.
 * @throws PerdureError when it will never be readable again: `not_found`, `not_allowed` at the start, `bad_config`, `conflict`
 *   when the stream is no longer the one that was read.
 */
export async function followStream({ http, create, signal, events }: ReaderOptions): Promise<void> {
  const backoff = new Backoff();
  let place: ReadPlace = { offset: START, live: false, cursor: undefined };
  let opened = false;
  let created = false;
  let behindSince: number | undefined;
  while (!signal.aborted) {
    try {
      const asked = Date.now();
      const answer = await http.read(place);
      if (signal.aborted) return;
      if (answer.kind === "missing") {
        if (opened || !create || answer.status === 410) throw missing(http.url, answer.status, opened);
        const refused = await http.create();
        if (refused !== undefined) throw refused.error;
        if (created) await backoff.wait(signal);
        created = true;
        continue;
      }
      if (answer.kind === "refused") {
        // Credentials may be renewed while it runs, but at the start somebody waits for the answer.
        if (!opened || answer.error.code !== "not_allowed") throw answer.error;
        throw new Trouble(answer.error.message, { cause: answer.error });
      }
      // Offsets of the protocol are in the order of their text.
      if (place.offset !== START && answer.next < place.offset) {
        behindSince ??= asked;
        if (Date.now() - behindSince > BEHIND_PATIENCE_MS) throw replaced(http.url, place, answer);
        place = { ...place, live: false };
        await backoff.wait(signal);
        continue;
      }
      behindSince = undefined;
      const idle = place.live && answer.messages.length === 0;
      // Who is asked to wait for news and does not is not to be asked all the time.
      if (idle && Date.now() - asked < SHORTEST_WAIT_MS) await backoff.wait(signal);
      else backoff.succeeded();
      if (!opened) events.onOpen();
      opened = true;
      if (!idle || answer.next === place.offset) {
        events.onBatch(answer.messages, answer.next);
        if (answer.upToDate) events.onUpToDate();
        if (answer.closed && answer.upToDate) return;
        place = { offset: answer.next, live: answer.upToDate, cursor: answer.cursor };
      } else {
        // A server that is being stopped may answer like this to who waits: nothing, and a place further on.
        // What is between is asked for again, without waiting.
        place = { ...place, live: false };
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Trouble)) throw error;
      if (backoff.fresh) events.onTrouble(error);
      await backoff.wait(signal, error.waitMs);
    }
  }
}

function replaced(url: string, { offset }: ReadPlace, { next }: Batch): PerdureError {
  return new PerdureError(
    "conflict",
    `The stream ${url} ends at ${next}, before ${offset} up to which it was read: it was replaced, or has lost data. Open a new log.`,
  );
}

function missing(url: string, status: number, opened: boolean): PerdureError {
  const what =
    status === 410 || opened
      ? "was deleted. Open a log on another stream."
      : "is not there. Create it, or open the log with `create: true`.";
  return new PerdureError("not_found", `The stream ${url} ${what}`);
}
