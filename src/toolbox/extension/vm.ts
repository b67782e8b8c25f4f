import { PerdureError } from "../../base/error.ts";
import { systemClock, type Clock } from "../../base/time.ts";
import { createEgress } from "../egress/egress.ts";
import { sharedQuickJsSandbox } from "../sandbox/quickjs/create.ts";
import type { Capabilities, Egress, Json, Limits, RunResult, Sandbox, SandboxSession } from "../sandbox/sandbox.ts";
import { BRIDGE, CALL_HOOK, CALL_TOOL, guestProgram } from "./guest.ts";
import { bridgeFunctions, type ExtensionBridge, functionsFor } from "./host-functions.ts";
import type { ExtensionManifest } from "./manifest.ts";

/** Above what the host's functions take, so that it is they who say what is too long. */
const CALL_BYTES = 4 << 20;
/** Memory of one extension. */
const MEMORY_MB = 32;
/** Running the source. No host function can be called meanwhile. */
const LOAD_LIMITS: Partial<Limits> = { cpuMs: 1_000, wallMs: 10_000, memoryMB: MEMORY_MB };
/** One call of a tool. */
export const TOOL_LIMITS: Partial<Limits> = {
  ...{ cpuMs: 5_000, wallMs: 30_000, memoryMB: MEMORY_MB, toolCalls: 200, toolBytes: CALL_BYTES, outputBytes: 1 << 20 },
};
/** One call of a hook, the host's answers included. */
const HOOK_LIMITS: Partial<Limits> = {
  ...{ cpuMs: 250, wallMs: 4_000, memoryMB: MEMORY_MB, toolCalls: 20, outputBytes: 1 << 17 },
};

/** The guest of one extension: made when it is first needed, and made anew when it was lost. */
export class ExtensionVm {
  readonly #sandbox: () => Promise<Sandbox>;
  readonly #program: string;
  readonly #can: Capabilities;
  readonly #toolLimits: Partial<Limits>;
  #opened: Promise<SandboxSession> | undefined;
  #closed = false;
  #ready = false;
  #working = 0;
  readonly #stop = new AbortController();

  constructor(sandbox: () => Promise<Sandbox>, program: string, can: Capabilities, toolLimits: Partial<Limits>) {
    this.#sandbox = sandbox;
    this.#program = program;
    this.#can = can;
    this.#toolLimits = toolLimits;
  }

  /** Whether the source has run: while it does, it may define things and nothing else. */
  get ready(): boolean {
    return this.#ready && !this.#closed;
  }

  /** Runs the source and says what it is. @throws PerdureError `bad_input`, `limit` (the source), `bad_config` (the sandbox) */
  async describe(): Promise<Json | undefined> {
    let described: Json | undefined;
    this.#opened = this.#open((value) => (described = value));
    await this.#opened;
    return described;
  }

  /** Never rejects for anything that the guest does. @throws PerdureError `bad_config`, `bad_input`, `limit` where it cannot be made */
  async tool(name: string, args: Json, signal?: AbortSignal): Promise<RunResult> {
    this.#working++;
    try {
      return await this.#call(CALL_TOOL, [name, args], this.#toolLimits, signal);
    } finally {
      this.#working--;
    }
  }

  /** A tool of it runs: hooks have to wait. */
  get busy(): boolean {
    return this.#working > 0;
  }

  hook(name: string, snapshot: Json, signal?: AbortSignal): Promise<RunResult> {
    return this.#call(CALL_HOOK, [name, snapshot], HOOK_LIMITS, signal);
  }

  /** Calls that are under way end. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stop.abort();
    const opened = this.#opened;
    this.#opened = undefined;
    const session = await opened?.catch(() => undefined);
    await session?.close();
  }

  async #call(name: string, args: readonly Json[], limits: Partial<Limits>, signal?: AbortSignal): Promise<RunResult> {
    if (this.#closed) throw new PerdureError("bad_state", "The extension is no longer loaded.");
    const opened = (this.#opened ??= this.#open(() => {}));
    const session = await opened;
    const stop = this.#stop.signal;
    const both = signal === undefined ? stop : AbortSignal.any([signal, stop]);
    const result = await session.call(name, args, { limits, signal: both });
    // What it ran in is gone, with what it had in memory.
    if (result.status === "crashed" && this.#opened === opened) this.#opened = undefined;
    return result;
  }

  async #open(described: (value: Json | undefined) => void): Promise<SandboxSession> {
    this.#ready = false;
    try {
      const sandbox = await this.#sandbox();
      if (sandbox.open === undefined) {
        throw new PerdureError(
          "bad_config",
          `The sandbox "${sandbox.kind}" cannot hold extensions. Use the QuickJS sandbox.`,
        );
      }
      const request = { language: "js", code: this.#program, can: this.#can, limits: LOAD_LIMITS } as const;
      const { session, result } = await sandbox.open(request);
      if (result.status === "ok") {
        this.#ready = true;
        described(result.value);
        return session;
      }
      await session.close();
      throw loadFailure(result);
    } catch (thrown) {
      this.#opened = undefined;
      throw thrown;
    }
  }
}

function loadFailure(result: RunResult): PerdureError {
  if (result.status === "error") {
    return new PerdureError("bad_input", `The source failed: ${result.error.name}: ${result.error.message}`);
  }
  if (result.status === "limit") {
    return new PerdureError(
      "limit",
      `The source did not load: ${result.message} Only define things in it; work in execute.`,
    );
  }
  const why = result.status === "crashed" ? result.message : "it was stopped";
  return new PerdureError("call_failed", `The source did not load: ${why}`);
}

/** What went wrong in a call, for the model and for logs; undefined when nothing did. */
export function faultOf(result: RunResult): string | undefined {
  switch (result.status) {
    case "ok":
      return undefined;
    case "error":
      return `${result.error.name}: ${result.error.message}`;
    case "limit":
      return result.message;
    case "aborted":
      return "It was stopped.";
    case "suspended":
      return "It cannot wait for a person.";
    case "crashed":
      return "What it ran in broke down. What it had in memory is gone; it can be called again.";
  }
}

/** What the guests of an agent are made of. */
export interface VmOptions {
  /** What extensions run in; `true`: the QuickJS sandbox that all agents of the process share. */
  readonly loader: Sandbox | true | (() => Sandbox | Promise<Sandbox>);
  readonly host?: { readonly clock: Clock };
  /** What the agent does for extensions. Asked whenever it is needed. */
  bridge?(): ExtensionBridge;
  /** The way out for an extension that may use these hosts. Default: `createEgress({ allow: hosts })`. */
  egress?(hosts: readonly string[], extension: string): Egress;
  /** What one call of a tool may use. Default: 5 s of computing, 30 s in all, 200 host calls, 1 MB of output. */
  readonly limits?: Partial<Omit<Limits, "memoryMB">>;
}

/**
 * An extension's guest, with the functions and network that its permissions allow: only while `isCurrent`, and not before its
 * source has run.
 */
export function makeVm(
  options: VmOptions,
  manifest: ExtensionManifest,
  source: string,
  { sends, isCurrent }: { readonly sends: number[]; readonly isCurrent: (vm: ExtensionVm) => boolean },
): ExtensionVm {
  const { loader, limits } = options;
  const sandbox = async (): Promise<Sandbox> => {
    if (loader === true) return sharedQuickJsSandbox();
    return typeof loader === "function" ? loader() : loader;
  };
  const bridge = () => options.bridge?.() ?? {};
  const standing = () => (vm.ready && isCurrent(vm) ? manifest : undefined);
  const functions = functionsFor(manifest, bridge());
  const clock = options.host?.clock ?? systemClock;
  const can: Capabilities = {
    ...(functions.length > 0 && {
      tools: { [BRIDGE]: bridgeFunctions(functions, { sends, manifest: standing, bridge, clock }) },
    }),
    ...(manifest.permissions?.network !== undefined && {
      network: networkOf(options, manifest, () => standing() !== undefined),
    }),
  };
  const vm: ExtensionVm = new ExtensionVm(sandbox, guestProgram(source, functions), can, { ...TOOL_LIMITS, ...limits });
  return vm;
}

function networkOf(options: VmOptions, { name, permissions }: ExtensionManifest, allowed: () => boolean): Egress {
  const hosts = permissions?.network ?? [];
  const make = () => options.egress?.(hosts, name) ?? createEgress({ allow: hosts });
  let made: Egress | undefined;
  return {
    fetch: async (url, request) => {
      if (!allowed()) throw new PerdureError("not_allowed", "This extension may not use the network now.");
      made ??= make();
      return made.fetch(url, request);
    },
    listen: async () => {
      throw new PerdureError("not_allowed", "Extensions have no sockets.");
    },
  };
}
