import { PerdureError } from "../../base/error.ts";
import type { Capabilities, Json, Limits, RunResult, Sandbox, SandboxSession } from "../sandbox/sandbox.ts";
import { CALL_HOOK, CALL_TOOL } from "./guest.ts";

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

  constructor(
    sandbox: () => Promise<Sandbox>,
    program: string,
    can: Capabilities,
    toolLimits: Partial<Limits> = TOOL_LIMITS,
  ) {
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
