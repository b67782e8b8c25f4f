import { PerdureError } from "../../base/error.ts";
import { callControl, refusal, streamPath, streamUrl, subscriptionUrl, type ControlOptions } from "./control.ts";
import { reporter, UNREACHED } from "../retry.ts";
import { createPump } from "./pump.ts";

/** A subscription of a Durable Streams server. Make one for each agent of a session: its lease is one for all streams. */
interface WakeSubscription extends ControlOptions {
  /** The server: `http://host:4437`. */
  readonly baseUrl: string | URL;
  readonly id: string;
  /** What wakes: paths or addresses of streams. They need not exist yet. */
  readonly streams: readonly string[];
  /** Where wakes are posted to … */
  readonly webhook?: string | URL;
  /** … or the stream that tells workers to come and claim. It is created. */
  readonly wakeStream?: string;
  /** How long a wake is one runner's without a heartbeat: 1 s to 10 min. Default 30 s. */
  readonly leaseTtlMs?: number;
  /** Whether a subscription of the same id that is made otherwise is replaced. Default: that is a `conflict`. */
  readonly replace?: boolean;
}

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_CHECK_MS = 30_000;
/** Where the streams are that are only there to ask for a wake. */
const REQUESTS = "perdure-wake-requests";

/**
 * Ensures that the subscription exists. Servers keep subscriptions in memory: a restart loses them, and a new one knows nothing
 * of earlier writes, so it is woken once at once.
 * @throws PerdureError `conflict` when there is another one of this id, `bad_input` when the server refuses it, `disconnected`
 *   when it does not answer.
 */
export async function ensureWakeSubscription(subscription: WakeSubscription): Promise<{ created: boolean }> {
  const { baseUrl, id, wakeStream } = subscription;
  if ((subscription.webhook === undefined) === (wakeStream === undefined)) {
    throw new PerdureError("bad_config", "A subscription needs either a webhook or a wakeStream.");
  }
  if (wakeStream !== undefined) await createStream(subscription, streamUrl(baseUrl, streamPath(wakeStream)));
  const url = subscriptionUrl(baseUrl, id);
  const body = {
    type: wakeStream === undefined ? "webhook" : "pull-wake",
    streams: [...subscription.streams.map(streamPath), requestStream(id)],
    ...(wakeStream === undefined
      ? { webhook: { url: String(subscription.webhook) } }
      : { wake_stream: streamPath(wakeStream) }),
    lease_ttl_ms: subscription.leaseTtlMs ?? DEFAULT_LEASE_MS,
  };
  let answer = await callControl(subscription, url, { method: "PUT", body });
  if (answer.status === 409 && subscription.replace === true) {
    await callControl(subscription, url, { method: "DELETE" });
    answer = await callControl(subscription, url, { method: "PUT", body });
  }
  if (answer.status !== 200 && answer.status !== 201) throw refusal(answer, `The subscription "${id}"`);
  if (answer.status === 201) await requestWake(subscription);
  return { created: answer.status === 201 };
}

/** Has a subscription of `ensureWakeSubscription` woken once, as if something had been written to its streams. */
export async function requestWake(
  subscription: ControlOptions & { readonly baseUrl: string | URL; readonly id: string },
): Promise<void> {
  const url = streamUrl(subscription.baseUrl, requestStream(subscription.id));
  await createStream(subscription, url);
  const answer = await callControl(subscription, url, { method: "POST", body: { type: "wake" } });
  if (answer.status >= 300) throw refusal(answer, `The request for a wake of "${subscription.id}"`);
}

/** A subscription that is looked after. */
export interface KeptSubscription extends Disposable {
  /** Resolves when it is there for the first time. */
  readonly ready: Promise<void>;
  /** Looks now. True: it was gone and is there again. */
  check(): Promise<boolean>;
  stop(): void;
}

/**
 * Recreates the subscription if it is gone, every `everyMs` (default 30 s): a server that forgets one says nothing. Wakes it once
 * at the start, because a process that died may have left work.
 */
export function keepWakeSubscription(
  options: WakeSubscription & { readonly everyMs?: number; readonly onError?: (error: unknown) => void },
): KeptSubscription {
  const check = async () => (await ensureWakeSubscription(options)).created;
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
  // Who awaits it learns of it; nobody must.
  ready.catch(() => {});
  let isThere = false;
  const pump = createPump({
    poll: async () => {
      try {
        if (!(await check()) && !isThere) await requestWake(options);
      } catch (error) {
        if (isThere || PerdureError.is(error, "disconnected")) throw error;
        // What goes wrong at the start is told by `ready`.
        reject(error);
        return "done";
      }
      isThere = true;
      resolve();
      return { later: true, ms: options.everyMs ?? DEFAULT_CHECK_MS };
    },
    retry: UNREACHED,
    onError: reporter(options.onError),
  });
  pump.wake();
  const stop = () => {
    void pump.dispose(0);
    resolve();
  };
  return { ready, check, stop, [Symbol.dispose]: stop };
}

/** The stream whose writes mean nothing but: wake this subscription. */
function requestStream(id: string): string {
  return `${REQUESTS}/${id.replace(/[^\w.-]/g, "_")}`;
}

async function createStream(options: ControlOptions, url: string): Promise<void> {
  const given = typeof options.headers === "function" ? await options.headers() : options.headers;
  const headers = { ...given, "content-type": "application/json" };
  const answer = await callControl({ ...options, headers }, url, { method: "PUT" });
  if (answer.status >= 300 && answer.status !== 409) throw refusal(answer, `The stream ${url}`);
}
