import { PerdureError } from "../../base/error.ts";
import { fieldOf } from "./control.ts";

/** What a Durable Streams server posts to a webhook. */
export interface DurableStreamsWakePayload {
  readonly subscription_id: string;
  /** The same when the delivery is tried again. */
  readonly wake_id: string;
  /** Grows with each wake of the subscription, as long as the server remembers it. */
  readonly generation: number;
  readonly streams: readonly DurableStreamsWakeStream[];
  readonly callback_url: string;
  /** Good for one hour. */
  readonly callback_token: string;
}

/** A stream of a wake. */
export interface DurableStreamsWakeStream {
  readonly path: string;
  readonly link_type: "glob" | "explicit";
  /** Up to here it was consumed. */
  readonly acked_offset: string;
  /** Up to here it goes. */
  readonly tail_offset: string;
  readonly has_pending: boolean;
}

/**
 * Reads the body of a delivery.
 * @throws PerdureError `bad_input` that names the first field that is not as it must be.
 */
export function parseWakePayload(body: string): DurableStreamsWakePayload {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new PerdureError("bad_input", "The wake is no JSON.");
  }
  const generation = fieldOf(value, "generation");
  if (!Number.isSafeInteger(generation) || Number(generation) < 1) throw missing("generation", "a whole number from 1");
  const streams = fieldOf(value, "streams");
  if (!Array.isArray(streams)) throw missing("streams", "a list");
  return {
    subscription_id: text(value, "subscription_id"),
    wake_id: text(value, "wake_id"),
    generation: Number(generation),
    streams: streams.map(readStream),
    callback_url: url(text(value, "callback_url")),
    callback_token: text(value, "callback_token"),
  };
}

/** Reads a stream of a wake, also of the answer to a claim. */
export function readStream(value: unknown): DurableStreamsWakeStream {
  const link_type = fieldOf(value, "link_type") === "glob" ? "glob" : "explicit";
  return {
    path: text(value, "path"),
    link_type,
    acked_offset: text(value, "acked_offset"),
    tail_offset: text(value, "tail_offset"),
    has_pending: fieldOf(value, "has_pending") === true,
  };
}

function text(value: unknown, name: string): string {
  const found = fieldOf(value, name);
  if (typeof found !== "string" || found === "") throw missing(name, "a text");
  return found;
}

function url(value: string): string {
  if (!/^https?:\/\//.test(value) || !URL.canParse(value)) throw missing("callback_url", "an http address");
  return value;
}

function missing(name: string, what: string): PerdureError {
  return new PerdureError(
    "bad_input",
    `The wake has no "${name}" that is ${what}. Is this a Durable Streams delivery?`,
  );
}
