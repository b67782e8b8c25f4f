import { EvalFlags, JSException, JSValueHandle, QuickJS, type QuickJSOptions } from "quickjs-wasi";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { CompiledEngine, Image } from "../message.ts";
import { bootGuest, guestSideNames, type HostSide } from "./boot-guest.ts";
import { loadEngine } from "./engine.ts";
import { CODE_FILE, type Shape } from "./source.ts";
import type { ModuleSource } from "./module-source.ts";

/** With the thread's stack of 8 MB this gives the guest an error that it can catch, before the thread overflows. */
const GUEST_STACK_BYTES = 256 * 1_024;
const IMAGE_LEVEL = 1;
/** A bound for what an image may unpack to. */
const IMAGE_SLACK_MB = 16;

/** The engine is out of memory while the host works in it. */
export class GuestMemoryError extends Error {}

/** Where to find things in an image. */
export interface Tokens {
  readonly side: readonly number[];
  readonly main: number | null;
}

export interface GuestVmOptions {
  readonly engine: CompiledEngine | undefined;
  readonly memoryMB: number;
  readonly host: HostSide;
  readonly modules: ModuleSource;
  /** Asked again and again while the guest computes. True ends what it does. */
  readonly interrupted: () => boolean;
}

type SideName = (typeof guestSideNames)[number];

/**
 * One engine with one guest. Methods may throw a `JSException` (the guest's own), a {@link GuestMemoryError}, or what the machine
 * throws; after the last, do not use the engine again.
 */
export class GuestVm {
  readonly #vm: QuickJS;
  readonly #side: ReadonlyMap<SideName, JSValueHandle>;
  #main: JSValueHandle | undefined;

  private constructor(vm: QuickJS, side: ReadonlyMap<SideName, JSValueHandle>, main: JSValueHandle | undefined) {
    this.#vm = vm;
    this.#side = side;
    this.#main = main;
  }

  /** A fresh guest. `config` is what `bootGuest` reads. */
  static async create(options: GuestVmOptions, config: string): Promise<GuestVm> {
    const vm = await QuickJS.create(await engineOptions(options));
    const host = hostFunctions(vm, options.host);
    const boot = vm.evalCode(`(${bootGuest.toString()})`, "bridge.js", EvalFlags.STRICT);
    const args = Object.entries(host).map(([name, run]) => vm.newFunction(name, run));
    const side = vm.callFunction(boot, vm.undefined, ...args, checked(vm, vm.newString(config)));
    const functions = new Map(guestSideNames.map((name) => [name, side.getProp(name)]));
    for (const handle of [boot, side, ...args]) handle.dispose();
    return new GuestVm(vm, functions, undefined);
  }

  /** The guest that was put to rest in an image. */
  static async restore(
    options: GuestVmOptions,
    image: Pick<Image, "bytes" | "packed">,
    tokens: Tokens,
  ): Promise<GuestVm> {
    const most = (options.memoryMB + IMAGE_SLACK_MB) << 20;
    const raw = image.packed ? inflateRawSync(image.bytes, { maxOutputLength: most }) : image.bytes;
    const vm = await QuickJS.restore(QuickJS.deserializeSnapshot(raw), await engineOptions(options));
    for (const [name, run] of Object.entries(hostFunctions(vm, options.host))) vm.registerHostCallback(name, run);
    const side = new Map(guestSideNames.map((name, index) => [name, vm.importHandle(tokens.side[index] ?? 0)]));
    return new GuestVm(vm, side, tokens.main === null ? undefined : vm.importHandle(tokens.main));
  }

  /** Compiles the code in every frame of the shape, and runs nothing. Throws what the engine says to it. */
  check(shape: Shape): void {
    for (const code of [...shape.checks, shape.run]) {
      this.#vm.evalCode(code, CODE_FILE, EvalFlags.STRICT | EvalFlags.COMPILE_ONLY).dispose();
    }
  }

  /** Whether {@link check} has nothing to say. */
  compiles(shape: Shape): boolean {
    try {
      this.check(shape);
      return true;
    } catch (thrown) {
      if (thrown instanceof JSException) return false;
      throw thrown;
    }
  }

  /** Starts what the guest is here for; {@link outcome} is what comes of it. Only after {@link check}. */
  begin(shape: Shape, isExpression: boolean): void {
    const run = this.#vm.evalCode(shape.run, CODE_FILE, EvalFlags.STRICT);
    this.#setMain(isExpression ? this.#callSide("begin", run) : this.#vm.callFunction(run, this.#vm.undefined));
    run.dispose();
  }

  /** Calls a function that stayed. */
  invoke(path: string, args: string): void {
    this.#setMain(this.#callSide("invoke", this.#text(path), this.#text(args)));
  }

  /** Runs what is ready, until nothing is or `over` says so. */
  drain(over: () => boolean): void {
    const engine = this.#vm._getExports();
    while (!over() && engine.qjs_is_job_pending() !== 0) {
      if (engine.qjs_execute_pending_job() < 0) new JSValueHandle(this.#vm, engine.qjs_get_exception()).dispose();
    }
  }

  /** What the guest was here for, when it is known: its value or what it threw. Dispose it. */
  outcome(): { readonly ok: boolean; readonly value: JSValueHandle } | undefined {
    const main = this.#main;
    if (main === undefined) return undefined;
    if (!main.isPromise) return { ok: true, value: main.dup() };
    const state = main.promiseState;
    if (state === 0) return undefined;
    return { ok: state === 1, value: new JSValueHandle(this.#vm, this.#vm._getExports().qjs_promise_result(main.ptr)) };
  }

  answer(call: number, ok: boolean, text: string | undefined): void {
    const value = text === undefined ? this.#vm.undefined : this.#text(text);
    this.#callSide("answer", this.#vm.newNumber(call), ok ? this.#vm.true : this.#vm.false, value).dispose();
  }

  fire(timer: number): void {
    this.#callSide("fire", this.#vm.newNumber(timer)).dispose();
  }

  /** The JSON of a value. `tooLong` is asked before it is copied out. */
  encode(how: "encode" | "keep", value: JSValueHandle, tooLong: (length: number) => boolean): string | undefined {
    const text = this.#callSide(how, value);
    if (!text.isString || tooLong(text.length)) return undefined;
    return text.consume((handle) => handle.toString());
  }

  /** Name, message and stack of what was thrown, as JSON. */
  explain(thrown: JSValueHandle): string {
    return this.#callSide("explain", thrown).consume((handle) => handle.toString());
  }

  get memoryBytes(): number {
    return this.#vm._getMemory().buffer.byteLength;
  }

  /** Only between calls. Packing takes longer than all the rest, and makes a fifth of it. */
  image(packed: boolean): { readonly image: Omit<Image, "meta">; readonly tokens: Tokens } {
    const tokens: Tokens = {
      side: guestSideNames.map((name) => this.#vm.exportHandle(this.#of(name))),
      main: this.#main === undefined ? null : this.#vm.exportHandle(this.#main),
    };
    const raw = QuickJS.serializeSnapshot(this.#vm.snapshot());
    // A plain array: a Buffer would take its whole pool along.
    const bytes = packed ? new Uint8Array(deflateRawSync(raw, { level: IMAGE_LEVEL })) : raw;
    return { image: { bytes, packed }, tokens };
  }

  /** Forgets what the guest was here for. */
  rest(): void {
    this.#setMain(undefined);
  }

  /** Only between calls. */
  dispose(): void {
    this.#vm.dispose();
  }

  #setMain(main: JSValueHandle | undefined): void {
    this.#main?.dispose();
    this.#main = main;
  }

  #of(name: SideName): JSValueHandle {
    const handle = this.#side.get(name);
    if (handle === undefined) throw new Error(`The bridge has no ${name}.`);
    return handle;
  }

  #callSide(name: SideName, ...args: JSValueHandle[]): JSValueHandle {
    const result = this.#vm.callFunction(this.#of(name), this.#vm.undefined, ...args);
    for (const arg of args) arg.dispose();
    return result;
  }

  #text(text: string): JSValueHandle {
    return checked(this.#vm, this.#vm.newString(text));
  }
}

async function engineOptions(options: GuestVmOptions): Promise<QuickJSOptions> {
  const { wasm, extensions } = options.engine ?? (await loadEngine(options.memoryMB));
  return {
    wasm,
    extensions: [...extensions],
    memoryLimit: options.memoryMB << 20,
    maxStackSize: GUEST_STACK_BYTES,
    timezoneOffset: 0,
    interruptHandler: options.interrupted,
    moduleLoader: options.modules,
    // The engine's own messages go nowhere: by default they are printed.
    wasi: (memory) => ({
      fd_write: (_fd: number, list: number, count: number, written: number) => {
        const view = new DataView(memory.buffer);
        let bytes = 0;
        for (let index = 0; index < count; index++) bytes += view.getUint32(list + index * 8 + 4, true);
        view.setUint32(written, bytes, true);
        return 0;
      },
    }),
  };
}

type EngineFunction = (...args: JSValueHandle[]) => JSValueHandle;

/** What the guest's side may call. Arguments are read by their real type, so no guest code runs. */
function hostFunctions(vm: QuickJS, host: HostSide): Record<keyof HostSide, EngineFunction> {
  const text = (handle: JSValueHandle | undefined): string => (handle?.isString === true ? handle.toString() : "");
  const count = (handle: JSValueHandle | undefined): number => (handle?.isNumber === true ? handle.toNumber() : -1);
  const nothing =
    (work: (...args: (JSValueHandle | undefined)[]) => void): EngineFunction =>
    (...args) => {
      work(...args);
      return vm.undefined;
    };
  return {
    call: nothing((id, namespace, name, args) => host.call(count(id), text(namespace), text(name), text(args))),
    log: nothing((level, line) => host.log(text(level), text(line))),
    setTimer: nothing((id, ms, repeats) =>
      host.setTimer(count(id), count(ms), repeats?.isBool === true && repeats.toBoolean()),
    ),
    clearTimer: nothing((id) => host.clearTimer(count(id))),
  };
}

function checked(vm: QuickJS, handle: JSValueHandle): JSValueHandle {
  if (vm._getExports().qjs_is_exception(handle.ptr) !== 0) throw new GuestMemoryError("out of memory");
  return handle;
}
