import { createHash } from "node:crypto";
import { PerdureError } from "../../../../base/error.ts";
import { resolveLimits } from "../../limits.ts";
import type { CallAnswerInSandbox, Limits, Probe, RunRequest, RunResult, SandboxSession } from "../../sandbox.ts";
import type { QuickJsOptions } from "../create.ts";
import type { LaneAnswer, Used, ToLane } from "../message.ts";
import { rewriteImports } from "../rewrite-imports.ts";
import { engineHash, loadEngine } from "./engine.ts";
import { hostFunctions } from "./host-functions.ts";
import { LanePool, type LentLane } from "../../lane-pool.ts";
import { checkAnswers, type LaneRunEnd, runInLane } from "./lane-run.ts";
import { processLane, threadLane } from "./lane.ts";
import { toResult } from "./run-result.ts";
import { seal, unseal } from "./seal.ts";
import { QuickJsSession, type RunPlan } from "./session.ts";

const DEFAULT_LANES = 4;
const DEFAULT_WARM = 1;
const RUNS_PER_LANE = 2_000;
const DEFAULT_IDLE_MS = 30_000;
const NOTHING_USED: Used = { cpuMs: 0, toolCalls: 0, outputBytes: 0 };
/** Without a key of its own a snapshot is protected against damage, not against those who can write to its place. */
const OPEN_KEY = "perdure.snapshot";

/** The part of esbuild that is used. */
interface Compiler {
  transform(code: string, options: Record<string, unknown>): Promise<{ readonly code: string }>;
}

const JSX = /<\/|\/>/;
const UNSUPPORTED = /not supported in strip-only mode/;

/** JavaScript, or what to tell the model. */
type Compiled = { readonly ok: true; readonly code: string } | { readonly ok: false; readonly message: string };

/** The sandbox behind `createQuickJsSandbox`. */
export class QuickJsSandbox {
  readonly #options: QuickJsOptions;
  readonly #pool: LanePool<ToLane>;
  readonly #key: Uint8Array;
  #disposed = false;

  constructor(options: QuickJsOptions) {
    this.#options = options;
    const wrap = options.wrapProcess;
    this.#pool = new LanePool({
      max: options.lanes?.max ?? DEFAULT_LANES,
      warm: options.lanes?.warm ?? DEFAULT_WARM,
      idleMs: options.lanes?.idleMs ?? DEFAULT_IDLE_MS,
      runsPerLane: RUNS_PER_LANE,
      open: (events) => (options.host === "process" ? processLane(events, wrap) : threadLane(events)),
    });
    this.#key = createHash("sha256")
      .update(options.snapshotKey ?? OPEN_KEY)
      .digest();
  }

  async probe(): Promise<Probe> {
    try {
      const engine = await engineHash();
      const result = await this.run({ language: "js", code: "return 6 * 7" });
      if (result.status === "ok" && result.value === 42) {
        return { ok: true, detail: `QuickJS ${engine.slice(0, 12)} in a ${this.#options.host ?? "thread"}` };
      }
      const why = "message" in result ? result.message : result.status;
      return { ok: false, missing: `The engine does not run here: ${why}` };
    } catch (thrown) {
      return { ok: false, missing: thrown instanceof Error ? thrown.message : String(thrown) };
    }
  }

  async run(request: RunRequest): Promise<RunResult> {
    const began = performance.now();
    const end = await this.start(request, false);
    return this.#resultOf(end, began, this.limitsOf(request.limits));
  }

  async resume(
    snapshot: Uint8Array,
    answers: readonly CallAnswerInSandbox[],
    request: Omit<RunRequest, "code" | "language">,
  ): Promise<RunResult> {
    const began = performance.now();
    const sealed = unseal(this.#key, await engineHash(), snapshot);
    const parked = new Map(sealed.parked.map((call) => [call.call, call]));
    checkAnswers(answers, parked);
    for (const { call } of answers) parked.delete(call);
    const limits = this.limitsOf({ ...sealed.limits, ...request.limits });
    const { functions } = hostFunctions(request.can);
    const end = await this.execute({
      job: { type: "resume", image: sealed.image, answers: answers.map(toLaneAnswer), modules: request.modules ?? {} },
      functions,
      limits,
      used: sealed.used,
      nextCall: sealed.nextCall,
      parked,
      mayPark: true,
      signal: request.signal,
      onLog: request.onLog,
    });
    return this.#resultOf(end, began, limits);
  }

  async open(request: RunRequest): Promise<{ session: SandboxSession; result: RunResult }> {
    const began = performance.now();
    const limits = this.limitsOf(request.limits);
    const end = await this.start(request, true);
    const result = await this.#resultOf(end, began, limits);
    const session = new QuickJsSession(
      this,
      request,
      limits,
      result.status === "ok" ? end.stays : undefined,
      end.nextCall,
    );
    return { session, result };
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    await this.#pool.dispose();
  }

  /** How many lanes there are, busy or not. */
  get laneCount(): number {
    return this.#pool.size;
  }

  limitsOf(given: Partial<Limits> | undefined): Limits {
    return resolveLimits(this.#options.limits, given);
  }

  /** Starts code in a fresh guest, once more with its types compiled away where they cannot be stripped. */
  async start(request: RunRequest, keep: boolean): Promise<LaneRunEnd> {
    const { language, code } = request;
    if (language !== "js" && language !== "ts") {
      throw new PerdureError("bad_input", `This sandbox runs js and ts, not ${language}.`);
    }
    const { functions, world } = hostFunctions(request.can);
    const plan = (how: "js" | "ts", text: string): RunPlan => ({
      job: {
        type: "start",
        language: how,
        code: text,
        input: JSON.stringify(request.input ?? null),
        modules: request.modules ?? {},
        world,
        keep,
      },
      functions,
      limits: this.limitsOf(request.limits),
      used: NOTHING_USED,
      nextCall: 0,
      parked: new Map(),
      mayPark: !keep,
      signal: request.signal,
      onLog: request.onLog,
    });
    const end = await this.execute(plan(language, code));
    if (end.outcome.status !== "untyped") return end;
    const compiled = await compileTypes(code, end.outcome.message);
    if (compiled.ok) return this.execute(plan("js", compiled.code));
    return { ...end, outcome: { status: "error", name: "SyntaxError", message: compiled.message } };
  }

  /** Waits for a lane and runs the plan in it. Never rejects. */
  async execute(plan: RunPlan): Promise<LaneRunEnd> {
    const nothing = {
      logs: [],
      used: plan.used,
      nextCall: plan.nextCall,
      parked: [],
      image: undefined,
      stays: undefined,
    };
    if (this.#disposed) return { ...nothing, outcome: { status: "crashed", message: "The sandbox was disposed of." } };
    if (isAborted(plan.signal)) return { ...nothing, outcome: { status: "aborted" } };
    try {
      // The first time, the engine is compiled while the lane starts.
      const loading = this.#options.host === "process" ? undefined : loadEngine(plan.limits.memoryMB);
      loading?.catch(() => undefined);
      const lane = await this.#pool.acquire(plan.signal, undefined);
      const engine = await this.#orGiveBack(lane, loading);
      return await runInLane(this.#pool, lane, { mayPark: false, ...plan, engine });
    } catch (thrown) {
      if (isAborted(plan.signal)) return { ...nothing, outcome: { status: "aborted" } };
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      return { ...nothing, outcome: { status: "crashed", message } };
    }
  }

  async #orGiveBack<T>(lane: LentLane<ToLane>, awaited: Promise<T> | undefined): Promise<T | undefined> {
    try {
      return await awaited;
    } catch (thrown) {
      this.#pool.release(lane, "reuse");
      throw thrown;
    }
  }

  async #resultOf(end: LaneRunEnd, began: number, limits: Limits): Promise<RunResult> {
    const { image, used, nextCall, parked } = end;
    if (image === undefined) return toResult(end, began);
    const engine = await engineHash();
    return toResult(end, began, seal(this.#key, { engine, limits, used, nextCall, parked, image }));
  }
}

function toLaneAnswer({ call, value, error }: CallAnswerInSandbox): LaneAnswer {
  if (error !== undefined) return { call, error };
  return value === undefined ? { call } : { call, value: JSON.stringify(value) };
}

/** Asked anew each time: the signal may have changed since. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** Compiles what has more than types (enums, namespaces, JSX), where esbuild is installed. Never throws. */
async function compileTypes(code: string, stripError: string): Promise<Compiled> {
  // Plain mistakes are told as they are.
  if (!UNSUPPORTED.test(stripError) && !JSX.test(code)) return { ok: false, message: stripError };
  const compiler = await loadCompiler();
  if (compiler === undefined) {
    const hint = "Only types that can be removed are allowed here: no enums, namespaces, parameter properties or JSX.";
    return { ok: false, message: `${stripError}. ${hint}` };
  }
  try {
    const { code: compiled } = await compiler.transform(`async function $body() {\n${rewriteImports(code)}\n}`, {
      loader: JSX.test(code) ? "tsx" : "ts",
      target: "es2023",
      tsconfigRaw: "{}",
      sourcefile: "code.ts",
      logLevel: "silent",
    });
    return { ok: true, code: `${compiled}\nreturn $body();` };
  } catch (thrown) {
    return { ok: false, message: compileError(thrown) ?? stripError };
  }
}

async function loadCompiler(): Promise<Compiler | undefined> {
  try {
    return (await import("esbuild")) as unknown as Compiler;
  } catch {
    return undefined;
  }
}

function compileError(thrown: unknown): string | undefined {
  const errors = (
    thrown as { errors?: readonly { text?: string; location?: { line?: number; column?: number } | null }[] }
  ).errors;
  const first = errors?.[0];
  if (first?.text === undefined) return undefined;
  const { line, column } = first.location ?? {};
  return line === undefined ? first.text : `${first.text} (line ${line - 1}, column ${(column ?? 0) + 1})`;
}
