import { PerdureError, errorText } from "../../base/error.ts";
import { checkValue, standardSchema } from "../log/schema.ts";
import type { PumpOutcome } from "../worker/pump.ts";
import { asError, isUnwritable, nextDelay, persist } from "../retry.ts";
import { settleUntold, tell, type CallItem, type CallParts } from "./call-parts.ts";
import { queuedTicket, sameJson, type CallRow } from "./call-row.ts";
import type { Holding } from "./holding.ts";
import type { ToolLike, ToolRun } from "./types.ts";

/** Stores the latest of many values, one write at a time, so news that outpace the store do not pile up. */
class LatestValue {
  readonly #store: (value: unknown) => Promise<void>;
  #next: { value: unknown } | undefined;
  #working: Promise<void> | undefined;

  /** @param store must not reject. */
  constructor(store: (value: unknown) => Promise<void>) {
    this.#store = store;
  }

  /** Resolves when this value, or a later one, is stored. */
  put(value: unknown): Promise<void> {
    this.#next = { value };
    this.#working ??= this.#work();
    return this.#working;
  }

  /** Forgets what was not begun, and waits for what was. */
  async end(): Promise<void> {
    this.#next = undefined;
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let value = this.#take(); value !== undefined; value = this.#take()) await this.#store(value.value);
    // In the same breath as the last look: what came in between would be forgotten.
    this.#working = undefined;
  }

  #take(): { value: unknown } | undefined {
    const next = this.#next;
    this.#next = undefined;
    return next;
  }
}

/** What a try came to. `fatal`: another one would come to the same. */
type Tried = { readonly result: unknown } | { readonly error: Error; readonly fatal: boolean };

/** One call from its claim until it is settled, through all tries. A result that could not be written never reruns the tool. */
export class CallRun<TRow extends object> {
  readonly #parts: CallParts<TRow>;
  readonly #item: CallItem<TRow>;
  readonly #holding: Holding;
  #attempt: number;

  constructor(parts: CallParts<TRow>, item: CallItem<TRow>, holding: Holding, attempt: number) {
    this.#parts = parts;
    this.#item = item;
    this.#holding = holding;
    this.#attempt = attempt;
  }

  /** Tries once. `later` with a time: it has failed and is to be tried again then, still under the same claim. */
  async try(disposing: AbortSignal): Promise<PumpOutcome> {
    const parts = this.#parts;
    const holding = this.#holding;
    const { row } = this.#item;
    if (holding.stopped === "taken" && holding.ours) return this.giveBack();
    const unfollow = parts.parent.follow(this.#item, () => holding.cancel());
    if (holding.stopped !== undefined || disposing.aborted) {
      // Nothing is begun that nobody waits for any more.
      unfollow();
      return holding.stopped === undefined ? this.giveBack() : this.#settle(() => this.#stopped(), disposing);
    }
    const tried = await this.#execute(AbortSignal.any([holding.signal, disposing]));
    unfollow();
    if ("result" in tried) return this.#settle(() => this.#complete(tried.result), disposing);
    if (holding.stopped === "cancelled" || !holding.ours) return this.#settle(() => this.#stopped(), disposing);
    if (disposing.aborted || holding.stopped !== undefined) return this.giveBack();
    const { error, fatal } = tried;
    const delay = fatal || parts.retry === undefined ? undefined : nextDelay(parts.retry, this.#attempt, error);
    if (delay === undefined) return this.#settle(() => this.#fail(error), disposing);
    await tell(parts, row, () => parts.callbacks.onRetry?.(row, error, this.#attempt));
    this.#attempt++;
    await this.#noteAttempt();
    return { later: true, ms: delay };
  }

  /** Somebody else may do it: it was not finished here. */
  async giveBack(): Promise<PumpOutcome> {
    try {
      await this.#holding.giveBack();
    } catch (error) {
      this.#parts.report(error, this.#item.row);
    }
    return { later: true };
  }

  async #execute(signal: AbortSignal): Promise<Tried> {
    const { row, call } = this.#item;
    const tool = this.#parts.tools.get(call.name);
    const implementation = this.#parts.implementations[call.name];
    if (tool === undefined || typeof implementation !== "function") {
      return { error: unknownTool(call.name), fatal: true };
    }
    const news = new LatestValue((value) => this.#storeProgress(value));
    let fatal = true;
    try {
      const args = await checkValue(
        tool.inputSchema,
        call.args,
        `The arguments of the tool "${call.name}" are not valid`,
      );
      fatal = false;
      const run: ToolRun<TRow> = {
        signal,
        idempotencyKey: this.#item.id,
        attempt: this.#attempt,
        progress: (value) => news.put(value),
        row,
      };
      const result = await implementation(args, run);
      fatal = true;
      const checked = (await describesTicket(tool, call))
        ? result
        : await checkValue(
            tool.outputSchema,
            result,
            `The result of the tool "${call.name}" is not what its outputSchema says`,
          );
      return { result: asJson(checked, call.name) };
    } catch (thrown) {
      return { error: asError(thrown), fatal };
    } finally {
      await news.end();
    }
  }

  /** Makes sure that what came of the call is written, then lets go of it. */
  async #settle(write: () => Promise<PumpOutcome>, disposing: AbortSignal): Promise<PumpOutcome> {
    const outcome = await persist(write, disposing, (error) => this.#parts.report(error, this.#item.row));
    try {
      await this.#holding.end();
    } catch (error) {
      this.#parts.report(error, this.#item.row);
    }
    return outcome ?? "done";
  }

  async #complete(result: unknown): Promise<PumpOutcome> {
    const holding = this.#holding;
    const parts = this.#parts;
    const { row } = this.#item;
    const { callbacks, writer } = parts;
    for (;;) {
      if (holding.stopped === "cancelled") return this.#late(result);
      if (!holding.ours) return this.#dropped();
      const conditions = parts.parent.conditions(this.#item);
      if (await parts.parent.isCancelled(this.#item)) return this.#late(result);
      if (writer === undefined) {
        await callbacks.onComplete?.(row, result);
        return "done";
      }
      let written: boolean;
      try {
        written = await holding.write((draft) => {
          draft.status = "completed";
          draft.result = result;
          draft.error = undefined;
        }, conditions);
      } catch (error) {
        // Another try would come to the same, and whoever waits for the result would wait for ever.
        if (isUnwritable(error)) return this.#fail(error);
        throw error;
      }
      if (written) {
        await tell(parts, row, () => callbacks.onComplete?.(row, result));
        return "done";
      }
      // Not written: the answer has changed just now, which may have been its end; or the call is not ours any more.
      if (!holding.cancelled && sameJson(conditions, parts.parent.conditions(this.#item))) return this.#dropped();
    }
  }

  async #fail(error: Error): Promise<PumpOutcome> {
    const holding = this.#holding;
    const parts = this.#parts;
    const { row } = this.#item;
    if (parts.writer === undefined) {
      if (parts.callbacks.onError === undefined) await settleUntold(parts, this.#item.id, "failed", error);
      else await parts.callbacks.onError(row, error);
      return "done";
    }
    const written = await holding.write((draft) => {
      draft.status = "failed";
      draft.error = errorText(error);
    });
    if (!written) return this.#stopped();
    await tell(parts, row, () => parts.callbacks.onError?.(row, error));
    return "done";
  }

  /** A result that nobody waits for any more. */
  async #late(result: unknown): Promise<PumpOutcome> {
    const { lateResults, callbacks, writer } = this.#parts;
    const { row, id } = this.#item;
    if (typeof lateResults === "function") await lateResults(row, result);
    if (lateResults !== "store") return this.#cancelled();
    if (writer === undefined) {
      await callbacks.onComplete?.(row, result);
      return "done";
    }
    // Also in a row that somebody else has cancelled, but in no other.
    if (!this.#holding.ours) {
      await writer.update(id, (draft) => (draft.status === "cancelled" ? void (draft.result = result) : false));
    }
    return this.#cancelled((draft) => void (draft.result = result));
  }

  /** It was stopped from outside and has come to nothing. */
  async #stopped(): Promise<PumpOutcome> {
    return this.#holding.stopped === "cancelled" ? this.#cancelled() : this.#dropped();
  }

  async #cancelled(also: (draft: CallRow) => void = () => {}): Promise<PumpOutcome> {
    const { callbacks, writer } = this.#parts;
    const { row } = this.#item;
    if (writer === undefined) {
      if (callbacks.onCancelled === undefined) await settleUntold(this.#parts, this.#item.id, "cancelled");
      else await callbacks.onCancelled(row);
      return "done";
    }
    await this.#holding.write((draft) => {
      draft.status = "cancelled";
      also(draft);
    });
    await tell(this.#parts, row, () => callbacks.onCancelled?.(row));
    return "done";
  }

  #dropped(): PumpOutcome {
    const { row, id } = this.#item;
    const text = `What this process did for the tool call "${id}" does not count: it was settled or taken over elsewhere.`;
    this.#parts.report(new PerdureError("fenced", text), row);
    return { later: true };
  }

  async #noteAttempt(): Promise<void> {
    if (this.#item.call.attempt === undefined) return;
    try {
      await this.#holding.write((draft) => void (draft.attempt = this.#attempt - 1));
    } catch (error) {
      this.#parts.report(error, this.#item.row);
    }
  }

  async #storeProgress(value: unknown): Promise<void> {
    const parts = this.#parts;
    const holding = this.#holding;
    const { row, call } = this.#item;
    try {
      const news = asJson(value, call.name);
      if (parts.writer === undefined || (await holding.write((draft) => void (draft.progress = news)))) {
        await parts.callbacks.onProgress?.(row, value);
      }
    } catch (error) {
      parts.report(error, row);
    }
  }
}

/** The error of a call that nobody here can execute. */
export function unknownTool(name: string): PerdureError {
  return new PerdureError("not_found", `There is no tool "${name}" here.`);
}

/** Whether a background tool's schema describes the immediate answer; then nothing is known about the final result. */
async function describesTicket(tool: ToolLike, { id, isAsync }: CallRow): Promise<boolean> {
  if (isAsync !== true || tool.outputSchema === undefined) return false;
  return checkValue(tool.outputSchema, queuedTicket(id), "").then(
    () => standardSchema(tool.outputSchema) !== undefined,
    () => false,
  );
}

/** What every backend would make of it. */
function asJson(value: unknown, tool: string): unknown {
  if (value === undefined) return undefined;
  try {
    const text: unknown = JSON.stringify(value);
    if (typeof text === "string") return JSON.parse(text);
  } catch (error) {
    throw new PerdureError("bad_input", `The result of the tool "${tool}" is not JSON: ${errorText(error)}.`);
  }
  throw new PerdureError("bad_input", `The result of the tool "${tool}" is not JSON: it is a ${typeof value}.`);
}
