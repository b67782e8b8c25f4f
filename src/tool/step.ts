import { PerdureError } from "../base/error.ts";
import { decodeJson } from "../base/json.ts";
import { newId } from "../base/id.ts";
import type { AgentHost } from "../port.ts";
import { allowToGoOn, type CallAttempt, insertToolStep, readToolStep } from "../store/tool-step.ts";
import { toPlainJson } from "./plain-json.ts";

/** What a step returns, as JSON. More belongs into a file, and its name into the step. */
const MAX_STEP_CHARS = 256 * 1024;
/** The most steps of one call. */
const MAX_STEPS = 1_000;
const MAX_NAME_CHARS = 200;

/** What the work of a step is told. */
export interface StepContext {
  /** The same each time this step of this call runs: a step that a crash cut runs again, and services deduplicate by it. */
  readonly idempotencyKey: string;
  /** Aborts when the turn is stopped, or the tool has run out of time. */
  readonly signal: AbortSignal;
}

/**
 * Does part of a tool's work and stores the result before it returns. When the tool runs again after a crash, a finished step
 * returns what was stored; one that was cut runs again, with the same key. Results are JSON, the first time too. What `work`
 * throws is thrown, and the step may be tried again.
 * @throws PerdureError `bad_input` for an empty or used name, and for a result that is not JSON; `limit` for one that is too
 *   large, and for too many steps; `bad_state` when the call has ended
 */
export type ToolStep = <T>(name: string, work: (step: StepContext) => T | Promise<T>) => Promise<T>;

/** A step where nobody stores it: it runs. For tools that other engines run too: `{ step = runStep }`. */
export const runStep: ToolStep = async (_name, work) =>
  work({ idempotencyKey: newId("step"), signal: new AbortController().signal });

/** Steps of a call that cannot be run again as it is, such as one inside of another: they run, and nothing is stored. */
export function passingSteps(callKey: string, signal: AbortSignal): ToolStep {
  const names = new StepNames();
  return (name, work) => names.use(name, signal, async () => work({ idempotencyKey: keyOf(callKey, name), signal }));
}

/** Steps of a call that are stored. @param callKey the call's own idempotency key */
export function storedSteps(
  host: Pick<AgentHost, "sql" | "tx" | "durable">,
  call: CallAttempt,
  callKey: string,
  signal: AbortSignal,
): ToolStep {
  const names = new StepNames();
  const store = (name: string, result: string | null) => {
    if (!host.tx(() => insertToolStep(host, call, name, result))) throw ended(name);
  };
  return <T>(name: string, work: (step: StepContext) => T | Promise<T>) =>
    names.use(name, signal, async () => {
      const known = readToolStep(host, call, name);
      // What the work returned, as JSON; only its type got lost on the way.
      if (known !== undefined) return decodeJson(known.result) as T;
      if (!host.tx(() => allowToGoOn(host, call))) throw ended(name);
      const result = encode(await work({ idempotencyKey: keyOf(callKey, name), signal }), name);
      store(name, result);
      // The next one must not be begun, nor anybody be told, before this one survives.
      await host.durable();
      return decodeJson(result) as T;
    });
}

/** The names of one run of a tool. */
class StepNames {
  readonly #used = new Set<string>();

  async use<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (typeof name !== "string" || name === "" || name.length > MAX_NAME_CHARS) {
      throw new PerdureError("bad_input", `The name of a step must be a string of 1 to ${MAX_NAME_CHARS} characters.`);
    }
    if (this.#used.has(name)) {
      throw new PerdureError(
        "bad_input",
        `The step "${name}" was already used in this call. Give each step its own name, such as "${name}-2".`,
      );
    }
    if (this.#used.size >= MAX_STEPS) {
      throw new PerdureError("limit", `A call may have at most ${MAX_STEPS} steps. Do more in each.`);
    }
    signal.throwIfAborted();
    this.#used.add(name);
    try {
      return await work();
    } catch (thrown) {
      // It is not done, so it may be tried again.
      this.#used.delete(name);
      throw thrown;
    }
  }
}

function keyOf(callKey: string, name: string): string {
  // Ids of calls may have any characters, so what stands behind the last # is the name.
  return `${callKey}#${name.replaceAll(/[%#]/g, encodeURIComponent)}`;
}

function encode(value: unknown, name: string): string | null {
  if (value === undefined) return null;
  const json = JSON.stringify(toPlainJson(value, `What the step "${name}" returned`));
  if (json.length <= MAX_STEP_CHARS) return json;
  throw new PerdureError(
    "limit",
    `The result of the step "${name}" has ${json.length} characters as JSON; the limit is ${MAX_STEP_CHARS}. ` +
      "Write it to a file and return its name.",
  );
}

function ended(name: string): PerdureError {
  return new PerdureError("bad_state", `The step "${name}" was not stored: its call has ended.`);
}
