import { PerdureError, errorText } from "../../base/error.ts";
import type { DurableStreamsWakePayload } from "./wake-payload.ts";
import type { DurableStreamsWebhookAdapter, WebhookExecutionMode } from "./webhook-adapter.ts";

/** What `handleDurableStreamsWake` needs to know. */
export interface HandleWakeOptions {
  /** The delivery. Its body must not have been read: the signature is over its bytes. */
  readonly request: Request;
  readonly adapter: DurableStreamsWebhookAdapter;
  readonly mode?: WebhookExecutionMode;
  /**
   * Does the work: `runWithLifecycle(wake, adapter, …, { signal })`. May take as long as it likes; `signal` aborts when
   * the request's time is nearly over. What it throws is reported and has the work tried again.
   */
  readonly run: (wake: DurableStreamsWakePayload, context: { readonly signal: AbortSignal }) => Promise<unknown>;
  /** Keeps the process alive for work that goes on behind the answer, where a platform needs to be asked. */
  readonly waitUntil?: (work: Promise<unknown>) => void;
  /** Told what `run` threw, unless that was that others have the work. Must not throw. Default: the console. */
  readonly onError?: (error: unknown) => void;
}

const DEFAULT_REQUEST_MS = 25_000;
/** The part of a request's time that is kept for the end of the work: the last write and the last callback. */
const ENDING_SHARE = 0.2;
const MAX_ENDING_MS = 2_000;

/**
 * Answers a delivery of a Durable Streams server. Never throws. What is not the server's, or no wake, is answered with
 * 401 or 400 and runs nothing; a wake that this process runs, or has ended, is answered with 200 and not run again.
 *
 * It never answers `{"done":true}`: the server would take that for the end of whatever wake is current by then.
 * Runs end by callback only.
 */
export async function handleDurableStreamsWake(options: HandleWakeOptions): Promise<Response> {
  const { request, adapter } = options;
  if (request.method !== "POST") return answer(405, { error: "Wakes are posted." });
  let wake: DurableStreamsWakePayload;
  try {
    wake = await adapter.verify(request);
  } catch (error) {
    return answer(statusOf(error), { error: errorText(error) });
  }
  if (adapter.isKnown(wake)) return answer(200, { done: false, duplicate: true });
  const mode = options.mode ?? adapter.mode;
  return mode.type === "ack-immediate" ? runBehind(options, wake, mode.status ?? 202) : runWithin(options, wake, mode);
}

function runBehind(options: HandleWakeOptions, wake: DurableStreamsWakePayload, status: number): Response {
  const work = doWork(options, wake, new AbortController().signal);
  options.waitUntil?.(work);
  return answer(status, { accepted: true });
}

async function runWithin(
  options: HandleWakeOptions,
  wake: DurableStreamsWakePayload,
  { maxRequestMs = DEFAULT_REQUEST_MS }: { readonly maxRequestMs?: number },
): Promise<Response> {
  const stop = new AbortController();
  const ending = Math.min(maxRequestMs * ENDING_SHARE, MAX_ENDING_MS);
  const timers: ReturnType<typeof setTimeout>[] = [];
  const work = doWork(options, wake, stop.signal);
  const outOfTime = new Promise<"late">((resolve) => {
    const reason = new PerdureError("timeout", `The request's ${maxRequestMs} ms are nearly over.`);
    timers.push(setTimeout(() => stop.abort(reason), maxRequestMs - ending));
    timers.push(setTimeout(() => resolve("late"), maxRequestMs));
  });
  const outcome = await Promise.race([work, outOfTime]);
  for (const timer of timers) clearTimeout(timer);
  if (outcome === "late") options.waitUntil?.(work);
  if (outcome === "failed") return answer(500, { done: false, error: "The work of this wake has failed." });
  return answer(200, outcome === "over" && !stop.signal.aborted ? { ok: true } : { done: false });
}

/** Runs the work and reports what it throws. Never rejects. */
async function doWork(
  { run, onError = (error) => console.error(error) }: HandleWakeOptions,
  wake: DurableStreamsWakePayload,
  signal: AbortSignal,
): Promise<"over" | "failed"> {
  try {
    await run(wake, { signal });
    return "over";
  } catch (error) {
    // Others have the work, or it was told to stop: neither is a failure.
    if (PerdureError.is(error, "fenced") || (signal.aborted && error === signal.reason)) return "over";
    onError(error);
    return "failed";
  }
}

function statusOf(error: unknown): number {
  if (PerdureError.is(error, "not_allowed")) return 401;
  if (PerdureError.is(error, "too_large")) return 413;
  if (PerdureError.is(error, "disconnected")) return 503;
  return 400;
}

function answer(status: number, body: object): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
}
