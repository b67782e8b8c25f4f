import { promisify } from "node:util";
import { deflateRaw } from "node:zlib";
import type { Json, Limits, RunRequest, RunResult, SandboxSession } from "../../sandbox.ts";
import type { Image } from "../message.ts";
import { hostFunctions } from "./host-functions.ts";
import type { LaneRunEnd, LaneRunOptions } from "./lane-run.ts";
import { toResult } from "./run-result.ts";

/** An image is packed, in the background, when nobody has called for so long. */
const PACK_AFTER_MS = 2_000;
const pack = promisify(deflateRaw);

/** What is left of a run's options when the lane is known. */
export type RunPlan = Omit<LaneRunOptions, "mayPark"> & { readonly mayPark?: boolean };

/** What a session needs of its sandbox. */
interface Lanes {
  limitsOf(given: Partial<Limits>): Limits;
  execute(plan: RunPlan): Promise<LaneRunEnd>;
}

/** A guest that stays. Between calls it is an image in memory, without a lane; a cut call changes nothing. One call at a time. */
export class QuickJsSession implements SandboxSession {
  readonly #sandbox: Lanes;
  readonly #request: RunRequest;
  readonly #limits: Limits;
  #image: Promise<Image | undefined>;
  /** The number of the next host call of the image: the guest counts on from call to call. */
  #nextCall: number;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;
  #packing: NodeJS.Timeout | undefined;

  constructor(
    sandbox: Lanes,
    request: RunRequest,
    limits: Limits,
    image: Promise<Image | undefined> | undefined,
    nextCall: number,
  ) {
    this.#sandbox = sandbox;
    this.#request = request;
    this.#limits = limits;
    this.#image = image ?? Promise.resolve(undefined);
    this.#nextCall = nextCall;
    this.#packLater();
  }

  async call(
    name: string,
    args: readonly Json[],
    options: { readonly limits?: Partial<Limits>; readonly signal?: AbortSignal } = {},
  ): Promise<RunResult> {
    const before = this.#last;
    const result = before.then(async () => this.#call(name, args, options));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#packing);
    await this.#last;
    this.#image = Promise.resolve(undefined);
  }

  async #call(
    name: string,
    args: readonly Json[],
    options: { readonly limits?: Partial<Limits>; readonly signal?: AbortSignal },
  ): Promise<RunResult> {
    const began = performance.now();
    clearTimeout(this.#packing);
    const image = await this.#image;
    if (this.#closed || image === undefined) {
      const message = this.#closed ? "The session is closed." : "The source did not load, so it has no functions.";
      return { status: "error", error: { name: "Error", message }, logs: [], stats: { ms: 0, toolCalls: 0 } };
    }
    // The guest's memory was laid out under the limit of its source: less would not hold it.
    const limits = this.#sandbox.limitsOf({ ...this.#limits, ...options.limits, memoryMB: this.#limits.memoryMB });
    const end = await this.#sandbox.execute({
      job: { type: "invoke", image, path: name, args: JSON.stringify(args), modules: this.#request.modules ?? {} },
      functions: hostFunctions(this.#request.can).functions,
      limits,
      used: { cpuMs: 0, toolCalls: 0, outputBytes: 0 },
      nextCall: this.#nextCall,
      parked: new Map(),
      signal: options.signal,
      onLog: this.#request.onLog,
    });
    if (end.stays !== undefined) {
      this.#image = end.stays.then((next) => {
        if (next !== undefined) this.#nextCall = end.nextCall;
        return next ?? image;
      });
    }
    this.#packLater();
    return toResult(end, began);
  }

  #packLater(): void {
    if (this.#closed) return;
    this.#packing = setTimeout(() => void this.#pack(this.#image), PACK_AFTER_MS).unref();
  }

  /** Makes an idle session small. A call that has come meanwhile wins. */
  async #pack(held: Promise<Image | undefined>): Promise<void> {
    const image = await held;
    if (image === undefined || image.packed) return;
    const bytes = new Uint8Array(await pack(image.bytes, { level: 1 }));
    if (this.#image === held) this.#image = Promise.resolve({ ...image, bytes, packed: true });
  }
}
