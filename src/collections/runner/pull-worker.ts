import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { linkSignals } from "../link-signals.ts";
import type { AckMode } from "./acks.ts";
import type { ControlOptions } from "./control.ts";
import { streamPath, streamUrl } from "./control.ts";
import { pause } from "../timer.ts";
import type { RunnerSession } from "./lifecycle.ts";
import type { PullWake } from "./pull-adapter.ts";
import { pullWakeAdapter } from "./pull-adapter.ts";
import { runWithLifecycle } from "./run.ts";
import { ensureWakeSubscription } from "./subscription.ts";

/** What `runPullWakeWorker` needs to know. */
export interface PullWakeWorkerOptions extends ControlOptions {
  readonly baseUrl: string | URL;
  readonly subscriptionId: string;
  /** What wakes: paths or addresses of streams. The same for all workers of the subscription. */
  readonly streams: readonly string[];
  /** The stream that wakes are told on. Default: one that is named after the subscription. */
  readonly wakeStream?: string;
  readonly leaseTtlMs?: number;
  /** This worker's name, for people. Default: a new one. */
  readonly worker?: string;
  readonly acks?: AckMode;
  /** Does the work of a wake, and ends it with `session.complete`. What it throws has the work tried again. */
  readonly run: (session: RunnerSession<PullWake>) => Promise<unknown>;
  /** Ends the worker, like `stop`. */
  readonly signal?: AbortSignal;
  /** Told of each failure of `run` and of each outage. Must not throw. Default: the console. */
  readonly onError?: (error: unknown) => void;
}

/** A worker that runs until it is stopped. */
export interface PullWakeWorker extends AsyncDisposable {
  /** Resolves when it has ended. */
  readonly done: Promise<void>;
  /** Takes nothing more, tells what runs to stop, and waits for it. */
  stop(): Promise<void>;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** A look without having been told, in case a wake was never told. */
const LOOK_MS = 35_000;

/**
 * Claims and runs the wakes of a pull-wake subscription, which it creates, and creates again when the server has
 * forgotten it. Of several workers of one subscription, one has its work at a time.
 */
export function runPullWakeWorker(options: PullWakeWorkerOptions): PullWakeWorker {
  const end = new AbortController();
  const unlink = linkSignals([options.signal], end);
  const done = new PullWorker(options, end.signal).work().finally(unlink);
  const stop = async () => {
    end.abort(new PerdureError("bad_state", "The worker was stopped."));
    await done;
  };
  return { done, stop, [Symbol.asyncDispose]: stop };
}

class PullWorker {
  private readonly options: PullWakeWorkerOptions;
  private readonly signal: AbortSignal;
  private readonly wakeStream: string;
  private readonly report: (error: unknown) => void;
  /** Up to where wakes were heard; undefined: not yet known. */
  private heard: string | undefined;

  constructor(options: PullWakeWorkerOptions, signal: AbortSignal) {
    this.options = options;
    this.signal = signal;
    this.wakeStream = options.wakeStream ?? `perdure-wakes/${options.subscriptionId.replace(/[^\w.-]/g, "_")}`;
    this.report = options.onError ?? ((error) => console.error(error));
  }

  async work(): Promise<void> {
    const { options, signal } = this;
    const adapter = pullWakeAdapter({ ...options, worker: options.worker ?? newId("worker") });
    const wake = { subscription_id: options.subscriptionId };
    let delay = FIRST_RETRY_MS;
    while (!signal.aborted) {
      let began = false;
      try {
        // Before the claim: a wake that is told behind it must be heard.
        this.heard ??= await this.tail();
        await runWithLifecycle(wake, adapter, (session) => ((began = true), options.run(session)), { signal });
        delay = FIRST_RETRY_MS;
      } catch (error) {
        if (signal.aborted) return;
        if (began) this.report(error);
        const isFenced = PerdureError.is(error, "fenced");
        if (!began && !isFenced && !PerdureError.is(error, "not_found")) this.report(error);
        if (!began && !isFenced) {
          this.heard = undefined;
          if (PerdureError.is(error, "not_found") && (await this.create())) continue;
          await pause(delay, signal);
          delay = Math.min(delay * 2, MAX_RETRY_MS);
        } else if (!(await this.told())) await pause(delay, signal);
      }
    }
  }

  private async create(): Promise<boolean> {
    const { options, wakeStream } = this;
    try {
      await ensureWakeSubscription({ ...options, id: options.subscriptionId, wakeStream });
      return true;
    } catch (error) {
      this.report(error);
      return false;
    }
  }

  /** Where the stream of wakes ends. @throws PerdureError `not_found` when there is none. */
  private async tail(): Promise<string> {
    const response = await this.request("HEAD", "");
    if (response.status === 404) throw new PerdureError("not_found", "There is no stream of wakes yet.");
    const offset = response.headers.get("stream-next-offset");
    if (!response.ok || offset === null) {
      throw new PerdureError("disconnected", `The stream of wakes answered ${response.status}.`);
    }
    return offset;
  }

  /** Waits until a wake is told, or for a while. False: it could not listen. */
  private async told(): Promise<boolean> {
    try {
      const query = `?offset=${encodeURIComponent(this.heard ?? "-1")}&live=long-poll`;
      const response = await this.request("GET", query, AbortSignal.timeout(LOOK_MS));
      await response.text();
      const offset = response.headers.get("stream-next-offset");
      if (!response.ok || offset === null) this.heard = undefined;
      else this.heard = offset;
      return response.ok;
    } catch {
      this.heard = undefined;
      return false;
    }
  }

  private async request(method: string, query: string, signal?: AbortSignal): Promise<Response> {
    const { headers, baseUrl } = this.options;
    const given = typeof headers === "function" ? await headers() : (headers ?? {});
    const url = `${streamUrl(baseUrl, streamPath(this.wakeStream))}${query}`;
    const signals = signal === undefined ? [this.signal] : [this.signal, signal];
    return (this.options.fetch ?? fetch)(url, { method, headers: given, signal: AbortSignal.any(signals) });
  }
}
