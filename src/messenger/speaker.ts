import { concat } from "../base/bytes.ts";
import { errorText, PerdureError } from "../base/error.ts";
import { InOrder } from "../base/in-order.ts";
import { type Clock, sleep } from "../base/time.ts";
import {
  type Channel,
  ChannelError,
  type ChannelErrorKind,
  type Content,
  type FileRef,
  type Place,
  type SentFile,
} from "./channel.ts";

/** One call at a network. */
export type SpeakCall =
  | { readonly op: "create"; readonly place: Place; readonly content: Content; readonly key: string }
  | { readonly op: "file"; readonly place: Place; readonly file: SentFile; readonly key: string }
  | {
      readonly op: "edit";
      readonly place: Place;
      readonly id: string;
      readonly content: Content;
      /** What it shows will be replaced soon: it is passed over rather than waited for. */
      readonly preview: boolean;
    }
  | { readonly op: "find"; readonly place: Place; readonly key: string; readonly since: number };

/** What came of a call. Plain data: it may come from another agent. */
export type SpeakResult =
  | { readonly ok: true; readonly id?: string; readonly found?: "none" | "unknown" }
  | {
      readonly ok: false;
      readonly kind: ChannelErrorKind | "later";
      readonly error: string;
      readonly retryAfterMs?: number;
    };

/** What came of the wish for a file. Plain data: it may come from another agent. */
export type FetchResult =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | {
      readonly ok: false;
      readonly kind: ChannelErrorKind | "too-large";
      readonly error: string;
      readonly retryAfterMs?: number;
    };

const CALL_MS = 30_000;
/** Of a file, either way. */
const FILE_MS = 2 * 60_000;
/** Files that are read at once: each may be in memory. */
const FETCHES = 4;
/** Whoever would have to wait longer is told so, and stores it. */
const LONGEST_WAIT_MS = 5_000;
/** So many places in a minute that are told to wait mean the whole bot. */
const RATED_PLACES = 3;
const RATED_WITHIN_MS = 60_000;
const MAX_PLACES = 10_000;
const MOST_WAIT_MS = 60 * 60_000;

interface Lane {
  /** No call before this time. */
  freeAt: number;
  busy: Promise<unknown> | undefined;
}

interface Line {
  nextAt: number;
  pausedUntil: number;
  readonly lanes: Map<string, Lane>;
  rated: { place: string; at: number }[];
}

/**
 * Speaks for the whole bot: it has the tokens, and so the pace. One call at a time per place, no faster than the network wants
 * for a place and for the bot. Stores nothing: who has to wait long is told, and stores that.
 */
export class Speaker {
  readonly #clock: Clock;
  readonly #channel: (messenger: string) => Channel | undefined;
  readonly #lines = new Map<string, Line>();
  readonly #halt = new AbortController();
  readonly #readers = Array.from({ length: FETCHES }, () => new InOrder());
  #fetched = 0;

  constructor(clock: Clock, channel: (messenger: string) => Channel | undefined) {
    this.#clock = clock;
    this.#channel = channel;
  }

  /** Never rejects while the life goes on. */
  async call(messenger: string, call: SpeakCall): Promise<SpeakResult> {
    const channel = this.#channel(messenger);
    if (channel === undefined)
      return { ok: false, kind: "refused", error: `There is no messenger "${messenger}" any more.` };
    const line = this.#lineOf(messenger);
    const name = channel.pace.lane?.(call.place) ?? call.place.thread;
    const lane = this.#laneOf(line, name);
    const isPreview = call.op === "edit" && call.preview;
    if (isPreview && (lane.busy !== undefined || this.#wait(line, lane) > 0)) return LATER;
    const before = lane.busy;
    const mine = (async () => {
      await before?.catch(() => undefined);
      const wait = this.#wait(line, lane);
      if (wait > LONGEST_WAIT_MS)
        return { ok: false, kind: "rate", error: "The network wants us to wait.", retryAfterMs: wait } as const;
      if (wait > 0) await sleep(this.#clock, wait, this.#halt.signal);
      const now = this.#clock.now();
      line.nextAt = Math.max(now, line.nextAt) + Math.ceil(1000 / channel.pace.perSecond);
      // Also when it fails: networks count what they refuse.
      if (call.op !== "find") lane.freeAt = Math.max(lane.freeAt, now + channel.pace.perPlaceMs(call.place));
      return this.#make(channel, line, lane, name, call);
    })();
    lane.busy = mine;
    try {
      return await mine;
    } finally {
      if (lane.busy === mine) lane.busy = undefined;
    }
  }

  halt(reason: unknown): void {
    this.#halt.abort(reason);
  }

  #wait(line: Line, lane: Lane): number {
    const wait = Math.max(0, lane.freeAt, line.nextAt, line.pausedUntil) - this.#clock.now();
    if (wait <= MOST_WAIT_MS) return wait;
    // The clock was set back, or the network wants more than an hour: it is asked again, and says so again.
    Object.assign(line, { nextAt: 0, pausedUntil: 0 });
    lane.freeAt = 0;
    return 0;
  }

  async #make(channel: Channel, line: Line, lane: Lane, name: string, call: SpeakCall): Promise<SpeakResult> {
    try {
      return await this.#within(call.op === "file" ? FILE_MS : CALL_MS, (signal) => callOf(channel, call, signal));
    } catch (thrown) {
      if (this.#halt.signal.aborted) throw thrown;
      const error = asChannelError(thrown);
      if (error.kind === "rate") this.#rated(line, lane, name, error.retryAfterMs ?? LONGEST_WAIT_MS);
      return failureOf(error);
    }
  }

  /** The bytes of a file that somebody sent. No more than `maxBytes` of it are read. Never rejects while the life goes on. */
  async fetch(messenger: string, file: FileRef, maxBytes: number): Promise<FetchResult> {
    const channel = this.#channel(messenger);
    const reader = this.#readers[this.#fetched++ % FETCHES];
    if (channel?.fetchFile === undefined || reader === undefined)
      return { ok: false, kind: "refused", error: `"${messenger}" has no files that can be fetched.` };
    const fetching = async (signal: AbortSignal): Promise<FetchResult> => {
      const stream = await channel.fetchFile?.(file, signal);
      const bytes = stream && (await readUpTo(stream, maxBytes, signal));
      if (bytes !== undefined) return { ok: true, bytes };
      return { ok: false, kind: "too-large", error: `It has more than ${maxBytes} bytes.` };
    };
    try {
      return await reader.run(() => this.#within(FILE_MS, fetching));
    } catch (thrown) {
      if (this.#halt.signal.aborted) throw thrown;
      return failureOf(asChannelError(thrown));
    }
  }

  /** A channel that does not listen to its signal must not hold up its place. */
  async #within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = new AbortController();
    const late = new ChannelError("unknown", "The network did not answer in time.");
    const cancel = this.#clock.after(ms, () => deadline.abort(late));
    const signal = AbortSignal.any([deadline.signal, this.#halt.signal]);
    const gone = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    gone.catch(() => undefined);
    try {
      return await Promise.race([work(signal), gone]);
    } finally {
      cancel();
    }
  }

  #rated(line: Line, lane: Lane, place: string, ms: number): void {
    const now = this.#clock.now();
    lane.freeAt = Math.max(lane.freeAt, now + ms);
    line.rated = [
      ...line.rated.filter((one) => one.at > now - RATED_WITHIN_MS && one.place !== place),
      { place, at: now },
    ];
    if (line.rated.length >= RATED_PLACES) line.pausedUntil = Math.max(line.pausedUntil, now + ms);
  }

  #lineOf(messenger: string): Line {
    let line = this.#lines.get(messenger);
    if (line === undefined)
      this.#lines.set(messenger, (line = { nextAt: 0, pausedUntil: 0, lanes: new Map(), rated: [] }));
    return line;
  }

  #laneOf({ lanes }: Line, name: string): Lane {
    let lane = lanes.get(name);
    if (lane === undefined) {
      if (lanes.size >= MAX_PLACES) {
        const now = this.#clock.now();
        for (const [key, one] of lanes) if (one.busy === undefined && one.freeAt <= now) lanes.delete(key);
      }
      lanes.set(name, (lane = { freeAt: 0, busy: undefined }));
    }
    return lane;
  }
}

const LATER: SpeakResult = { ok: false, kind: "later", error: "The place is busy." };

async function callOf(channel: Channel, call: SpeakCall, signal: AbortSignal): Promise<SpeakResult> {
  switch (call.op) {
    case "create":
      return { ok: true, id: (await channel.create(call.place, call.content, call.key, signal)).id };
    case "file": {
      if (channel.sendFile === undefined) throw new ChannelError("refused", "The network takes no files.");
      return { ok: true, id: (await channel.sendFile(call.place, call.file, call.key, signal)).id };
    }
    case "edit":
      await channel.edit(call.place, call.id, call.content, signal);
      return { ok: true };
    case "find": {
      const found = (await channel.find?.(call.place, call.key, call.since, signal)) ?? "unknown";
      return typeof found === "string" ? { ok: true, found } : { ok: true, id: found.id };
    }
  }
}

function failureOf(failure: ChannelError) {
  const { kind, retryAfterMs } = failure;
  const error = errorText(failure);
  return { ok: false, kind, error, ...(retryAfterMs !== undefined && { retryAfterMs }) } as const;
}

/** The bytes of a stream; undefined: there are more than `maxBytes`, and the rest was not read. */
async function readUpTo(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const reader = stream.getReader();
  const stop = () => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", stop, { once: true });
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) break;
      size += value.length;
      if (size > maxBytes) {
        stop();
        return undefined;
      }
      pieces.push(value);
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
  return concat(pieces);
}

/** What is no error of a channel may have come from anywhere: nobody knows what was done. */
function asChannelError(thrown: unknown): ChannelError {
  if (thrown instanceof ChannelError) return thrown;
  const isOurs = PerdureError.is(thrown) && (thrown.code === "not_allowed" || thrown.code === "bad_input");
  return new ChannelError(isOurs ? "unsent" : "unknown", errorText(thrown), { cause: thrown });
}
