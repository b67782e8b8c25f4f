import { errorText, PerdureError } from "../../base/error.ts";
import type { Clock } from "../../base/time.ts";
import { cutText } from "../../message/cut-value.ts";
import type { Json } from "../sandbox/sandbox.ts";
import type { ExtensionHook } from "./manifest.ts";
import {
  type CallFacts,
  callSnapshot,
  type ChunkFacts,
  chunkSnapshot,
  MAX_TEXT_BYTES,
  type ResultFacts,
  resultSnapshot,
  type StepFacts,
  stepSnapshot,
  type TurnFacts,
  turnSnapshot,
} from "./snapshot.ts";
import { type ExtensionTurnConfig, readTurnConfig } from "./turn-config.ts";
import { type ExtensionVm, faultOf } from "./vm.ts";

/** An extension that fails so often in a row is not told of anything any more. */
const MAX_FAILURES = 3;
/** What an extension that was loaded may add to the system prompt, in bytes. */
const MAX_ADDED_BYTES = 8_000;
/** How long the turn waits for one extension, waiting behind its own tool calls included. */
const PATIENCE_MS = 5_000;
/** Chunks are told together, when so many are there or so much time has passed. */
const BATCH_CHUNKS = 64;
const BATCH_MS = 250;
/** Chunks that wait while an extension is busy; more are left out. */
const MAX_WAITING = 512;

/** An extension that listens. */
export interface Listener {
  readonly name: string;
  readonly hooks: readonly ExtensionHook[];
  readonly vm: ExtensionVm;
  /** `code`: the app declares it, and its words are the app's. */
  readonly from: "code" | "loaded";
  /** Failures in a row. */
  failures: number;
  /** Why it is not told of anything any more. */
  off: string | undefined;
}

/** What {@link ExtensionHooks} needs. */
interface HookOptions {
  /** In load order. */
  listeners(): readonly Listener[];
  readonly clock: Clock;
  /** A hook failed. Must not throw. */
  failed(error: PerdureError): void;
  /** Keeps the agent in memory while chunks are told. */
  keepAwake<T>(work: Promise<T>): Promise<T>;
}

/** Tells extensions of what happens in a turn, in load order. Their failures are reported only. Free if nobody listens. */
export class ExtensionHooks {
  readonly #options: HookOptions;
  #chunks: Json[] = [];
  #left = 0;
  #cancel: (() => void) | undefined;
  #telling: Promise<void> | undefined;

  constructor(options: HookOptions) {
    this.#options = options;
  }

  /** Whether anybody listens. */
  listens(hook: ExtensionHook): boolean {
    return this.#of(hook).length > 0;
  }

  /** What the extensions want changed; later ones see and win over earlier ones. Never rejects. */
  async beforeTurn(facts: TurnFacts): Promise<ExtensionTurnConfig | undefined> {
    const listeners = this.#of("beforeTurn");
    if (listeners.length === 0) return undefined;
    const tools = new Set(Object.keys(facts.tools));
    let changed: ExtensionTurnConfig = {};
    for (const listener of listeners) {
      const snapshot = turnSnapshot({ ...facts, system: changed.system ?? facts.system });
      const value = await this.#tell(listener, "beforeTurn", snapshot);
      const { config, refused } = readTurnConfig(value, tools);
      if (refused.length > 0) {
        const what = refused.slice(0, 5).join(", ");
        this.#options.failed(failure(listener.name, "beforeTurn", `it may not set ${what} to that; the rest counts`));
      }
      const system = changed.system ?? facts.system;
      const said = config.system === undefined ? {} : { system: systemAfter(listener, system, config.system) };
      changed = { ...changed, ...config, ...said };
    }
    return changed;
  }

  /** Never rejects, and decides nothing. */
  async beforeToolCall(facts: CallFacts): Promise<void> {
    await this.#watch("beforeToolCall", () => callSnapshot(facts));
  }

  /** Never rejects. */
  async afterToolCall(facts: ResultFacts): Promise<void> {
    await this.#watch("afterToolCall", () => resultSnapshot(facts));
  }

  /** Never rejects. */
  async onStepFinish(facts: StepFacts): Promise<void> {
    this.#flush();
    await this.#watch("onStepFinish", () => stepSnapshot(facts));
  }

  /** Takes a piece of the model's stream and returns at once: it is told later, with others. Never throws. */
  onChunk(facts: ChunkFacts): void {
    if (!this.listens("onChunk")) return;
    if (this.#chunks.length >= MAX_WAITING) {
      this.#left++;
      return;
    }
    this.#chunks.push(chunkSnapshot(facts));
    if (this.#chunks.length >= BATCH_CHUNKS) this.#flush();
    else this.#cancel ??= this.#options.clock.after(BATCH_MS, () => this.#flush());
  }

  /** Resolves when all chunks that have come are told. */
  async idle(): Promise<void> {
    this.#flush();
    while (this.#telling !== undefined) await this.#telling;
  }

  #of(hook: ExtensionHook): Listener[] {
    return this.#options.listeners().filter(({ hooks, off }) => off === undefined && hooks.includes(hook));
  }

  async #watch(hook: ExtensionHook, snapshot: () => Json): Promise<void> {
    const listeners = this.#of(hook);
    if (listeners.length === 0) return;
    const told = snapshot();
    for (const listener of listeners) await this.#tell(listener, hook, told);
  }

  #flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#telling !== undefined || this.#chunks.length === 0) return;
    this.#telling = this.#options
      .keepAwake(this.#tellChunks())
      // Nobody waits for it, and the life that it could be told to may be over.
      .catch(() => {})
      .finally(() => (this.#telling = undefined));
  }

  async #tellChunks(): Promise<void> {
    // One batch after the other: what comes meanwhile is told with the next.
    while (this.#chunks.length > 0) {
      const chunks = this.#chunks.splice(0, BATCH_CHUNKS);
      const left = this.#left;
      this.#left = 0;
      if (left > 0) chunks.push({ type: "left-out", count: left });
      for (const listener of this.#of("onChunk")) await this.#tell(listener, "onChunk", { chunks });
    }
  }

  async #tell(listener: Listener, hook: ExtensionHook, snapshot: Json): Promise<unknown> {
    const stop = new AbortController();
    const late = Promise.withResolvers<"late">();
    const cancel = this.#options.clock.after(PATIENCE_MS, () => {
      stop.abort();
      late.resolve("late");
    });
    // Asked before: a tool that ends in the meantime was what the hook waited for.
    const { busy } = listener.vm;
    try {
      const result = await Promise.race([listener.vm.hook(hook, snapshot, stop.signal), late.promise]);
      if (result !== "late" && result.status === "ok") {
        listener.failures = 0;
        return result.value;
      }
      const why = result === "late" ? `it took longer than ${PATIENCE_MS} ms` : faultOf(result);
      if (busy && stop.signal.aborted) this.#options.failed(failure(listener.name, hook, "a tool of it was running"));
      else this.#note(listener, hook, why ?? "it failed");
    } catch (thrown) {
      this.#note(listener, hook, errorText(thrown));
    } finally {
      cancel();
    }
    return undefined;
  }

  #note(listener: Listener, hook: ExtensionHook, why: string): void {
    this.#options.failed(failure(listener.name, hook, why));
    if (++listener.failures < MAX_FAILURES) return;
    listener.off = `Its hooks failed ${MAX_FAILURES} times in a row, last ${hook}: ${why}`;
  }
}

/** The system prompt as a `beforeTurn` wants it. Loaded code takes nothing away: its words are appended, marked and bounded. */
function systemAfter({ name, from }: Listener, before: string, wanted: string): string {
  if (from === "code") return wanted;
  const shown = cutText(before, MAX_TEXT_BYTES);
  const added = (wanted.startsWith(shown) ? wanted.slice(shown.length) : wanted).trim();
  if (added === "") return before;
  const mark = `extension ${name}`;
  // Nobody who does not know it can end it: the name has letters, digits, _ and - alone.
  const inside = added.replaceAll("<", "‹");
  return `${before}\n\n<${mark}>\n${cutText(inside, MAX_ADDED_BYTES)}\n</${mark}>`;
}

function failure(name: string, hook: ExtensionHook, why: string): PerdureError {
  return new PerdureError("call_failed", `The hook ${hook} of the extension "${name}" failed: ${why}`);
}
