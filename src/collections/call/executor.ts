import type { Context } from "@tanstack/db";
import { PerdureError } from "../../base/error.ts";
import type { Approvals } from "../approval/approvals.ts";
import type { GenerationContract, ToolCallContract } from "../contract.ts";
import { queryRoot, watchQuery, type Move, type QueryRow, type Watch } from "../log/query.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";
import { createPump, type Pump, type PumpOutcome } from "../worker/pump.ts";
import { asError, reporter, UNREACHED } from "../retry.ts";
import { parentWatch, type CallItem, type CallParts } from "./call-parts.ts";
import type { CallRow } from "./call-row.ts";
import { CallRun, unknownTool } from "./call-run.ts";
import { mayBegin, refuse, takeCall, wornOut } from "./take-call.ts";
import type { ToolExecutionEffect, ToolExecutionOptions, ToolLike } from "./types.ts";

/** The gate that the option asks for. Without approvals nothing that needs one passes. */
function approvalGate(approvals: Approvals | "query" | undefined, actorId: string) {
  const asked = typeof approvals === "object" ? approvals : undefined;
  return {
    ready: asked?.ready ?? Promise.resolve(),
    /** Whether nobody has decided yet, and it is known that somebody was asked: there is nothing to do now. */
    waits: (id: string) => (asked === undefined ? approvals === undefined : asked.status(id) === "pending"),
    /** `go`, `wait`, or why it may not be executed. Asks for a decision where nobody has. */
    async ask(id: string, toolName: string): Promise<"go" | "wait" | PerdureError> {
      if (asked === undefined) return approvals === undefined ? "wait" : "go";
      let status = asked.status(id);
      if (status === "none") status = await asked.request(id, { actorId });
      if (status === "approved") return "go";
      return status === "denied" || status === "expired" ? refusal(asked, id, toolName, status) : "wait";
    },
    subscribe: (wake: () => void) => asked?.subscribe(wake) ?? (() => {}),
  };
}

function refusal(approvals: Approvals, id: string, toolName: string, status: "denied" | "expired"): PerdureError {
  if (status === "expired") {
    return new PerdureError("not_allowed", `Nobody allowed the call of the tool "${toolName}" in time.`);
  }
  const event = approvals.decision(id);
  const why = event?.reason === undefined ? "" : `: ${event.reason}`;
  return new PerdureError("not_allowed", `${event?.actorId ?? "Somebody"} did not allow the tool "${toolName}"${why}.`);
}

const CONCURRENCY = 8;
const DISPOSE_WAIT_MS = 10_000;

/**
 * Executes tool calls that are rows: watches a query, claims each call, runs its tool, and writes the outcome.
 *
 * - One executor at a time begins a call. On a log the claim is a conditional write, so that holds for executors that know
 *   nothing of each other; on other collections run only one executor.
 * - A finished call never runs again. One whose executor died between the work and the write of its result does, once `claims` or
 *   recovery notice: work is done at least once. Use `run.idempotencyKey`.
 * - What the tool throws is the call's failure. A failed write of a result is retried without running the tool again.
 *
 * @throws PerdureError `bad_config` for options that cannot work together.
 */
export function createToolExecutionEffect<
  const TTools extends readonly ToolLike[],
  TContext extends Context,
  TStored extends ToolCallContract = never,
  TGeneration extends GenerationContract = never,
>(options: ToolExecutionOptions<TTools, TContext, TStored, TGeneration>): ToolExecutionEffect {
  const { query, claims, callbacks } = { ...options, callbacks: options };
  const root = queryRoot(query);
  // Who writes results himself needs nobody else to. The rows of the collection are calls by `TStored`; from here on
  // only what calls have in common matters.
  const collection = options.collection ?? (options.onComplete === undefined ? root?.collection : undefined);
  const writer = collection === undefined ? undefined : rowsOf(collection as unknown as RowCollection<CallRow>);
  const reader = writer ?? (root === undefined ? undefined : rowsOf(root.collection as RowCollection<CallRow>));
  requireWorkable(options, writer);
  const generations =
    options.generations === undefined
      ? undefined
      : rowsOf(options.generations as unknown as RowCollection<GenerationContract>);
  const report = reporter(options.onProblem?.bind(options));
  const parts: CallParts<QueryRow<TContext>> = {
    tools: new Map(options.tools.map((tool) => [tool.name, tool])),
    implementations: options.implementations as unknown as CallParts<QueryRow<TContext>>["implementations"],
    writer,
    reader,
    claims,
    parent: parentWatch(generations, options.isCancelled?.bind(options), writer?.log),
    lateResults: (options.lateResults ?? "discard") as CallParts<QueryRow<TContext>>["lateResults"],
    retry: options.retry,
    callbacks: callbacks as CallParts<QueryRow<TContext>>["callbacks"],
    report: (error, row) => report(asError(error), row),
  };
  const asking = options.tools.find((tool) => tool.needsApproval === true);
  if (asking !== undefined && options.approvals === undefined) {
    const text = `The tool "${asking.name}" needs approval, and this executor has no "approvals": it never runs here.`;
    parts.report(new PerdureError("bad_config", `${text} Give "approvals: createApprovals({ … })".`));
  }
  return new Executor({
    parts,
    watch: (wake) => watchQuery(query, wake),
    callOf: (row) => callIn(row, root?.alias),
    gate: approvalGate(options.approvals, claims?.owner ?? "executor"),
    strict: options.strict ?? false,
    concurrency: options.concurrency ?? CONCURRENCY,
    disposeWaitMs: options.disposeWaitMs ?? DISPOSE_WAIT_MS,
    others: generations === undefined ? [] : [generations],
  });
}

interface Checked {
  readonly tools: readonly ToolLike[];
  readonly implementations: object;
  readonly onComplete?: unknown;
  readonly claims?: { readonly log: unknown };
}

function requireWorkable(options: Checked, writer: Rows<CallRow> | undefined): void {
  const bad = (text: string) => new PerdureError("bad_config", text);
  if (writer === undefined && options.onComplete === undefined) {
    const text = `Nobody would write the results: the query reads another query, not a collection.`;
    throw bad(`${text} Give "collection", or write them yourself in "onComplete".`);
  }
  if (options.claims !== undefined && options.claims.log !== writer?.log) {
    throw bad(`"claims" must be in the same log as "collection": their conditions are judged there.`);
  }
  for (const { name } of options.tools) {
    if (typeof (options.implementations as { [name: string]: unknown })[name] === "function") continue;
    throw bad(`The tool "${name}" has no implementation.`);
  }
}

interface ExecutorOptions<TRow extends object> {
  readonly parts: CallParts<TRow>;
  readonly watch: (wake: () => void) => Watch<TRow>;
  /** The call in a row of the query. */
  readonly callOf: (row: TRow) => ListedCall | undefined;
  readonly gate: ReturnType<typeof approvalGate>;
  readonly strict: boolean;
  readonly concurrency: number;
  readonly disposeWaitMs: number;
  /** Collections that must be there, too, before the first call is judged. */
  readonly others: readonly { ready(): Promise<void> }[];
}

/** A call as a query lists it. */
type ListedCall = CallRow & { readonly $hasPendingWrites?: boolean };

const NO_CALLS = `The rows of the query of a tool executor must have "id", "name" and "args": select them.`;

/** The call that a row is, or that it has under the name of the query's first collection. */
function callIn(row: object, alias = ""): ListedCall | undefined {
  const named = (row as { [name: string]: unknown })[alias];
  return [row, named].find(isCall);
}

function isCall(row: unknown): row is ListedCall {
  const { id, name } = (row ?? {}) as { id?: unknown; name?: unknown };
  return typeof id === "string" && typeof name === "string";
}

class Executor<TRow extends object> implements ToolExecutionEffect {
  readonly ready: Promise<void>;
  readonly #options: ExecutorOptions<TRow>;
  readonly #watch: Watch<TRow>;
  readonly #pump: Pump;
  /** Calls that are held here, those between two tries among them. */
  readonly #held = new Map<string, { readonly item: CallItem<TRow>; readonly run: CallRun<TRow> }>();
  readonly #running = new Set<string>();
  readonly #ends: (() => void)[] = [];
  #open = false;
  #sawNoCall = false;
  #disposal: Promise<void> | undefined;

  constructor(options: ExecutorOptions<TRow>) {
    this.#options = options;
    const { parts, gate } = options;
    this.#pump = createPump<CallItem<TRow>>({
      read: () => this.#items(),
      moves: () => this.#moves(),
      idOf: (item) => item.key,
      run: (item, { signal }) => this.#run(item, signal),
      isGone: (key) => this.#isGone(key),
      // A claim that could not be written is tried for again as long as there is the call.
      retry: UNREACHED,
      concurrency: options.concurrency,
      onError: (error) => parts.report(error),
    });
    const wake = () => this.#pump.wake();
    this.#watch = options.watch(wake);
    this.#ends.push(gate.subscribe(wake));
    if (parts.claims !== undefined) this.#ends.push(parts.claims.subscribe(wake));
    const sources = [
      parts.reader?.ready(),
      parts.claims?.ready,
      gate.ready,
      ...options.others.map((one) => one.ready()),
    ];
    this.ready = Promise.all([this.#watch.ready, ...sources]).then(() => {
      this.#open = true;
      wake();
    });
    this.ready.catch(() => {});
  }

  get disposed(): boolean {
    return this.#disposal !== undefined;
  }

  async idle(): Promise<void> {
    await this.ready;
    await this.#pump.idle();
  }

  dispose(): Promise<void> {
    this.#disposal ??= this.#end();
    return this.#disposal;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #end(): Promise<void> {
    for (const end of this.#ends) end();
    await this.#pump.dispose(this.#options.disposeWaitMs);
    // What is between two tries runs nowhere: somebody else may have it.
    const waiting = [...this.#held.entries()].filter(([key]) => !this.#running.has(key));
    await Promise.all(waiting.map(([, { run }]) => run.giveBack()));
    await this.#watch.dispose();
  }

  /** What is to be done now. */
  *#items(): Iterable<CallItem<TRow>> {
    // Before everything that was there is here, a call that is over may look as if it were not.
    if (!this.#open) return;
    for (const { item } of this.#held.values()) yield item;
    for (const row of this.#watch.each()) {
      const call = this.#options.callOf(row);
      if (call === undefined) {
        this.#reportNoCall(row);
        continue;
      }
      const item = this.#itemOf(row, call);
      if (item !== undefined && !this.#held.has(item.key)) yield item;
    }
  }

  /** Once for all of them: it may be the query that does not select what a call is, or one row of many. */
  #reportNoCall(row: TRow): void {
    if (this.#sawNoCall) return;
    this.#sawNoCall = true;
    this.#options.parts.report(new PerdureError("bad_config", NO_CALLS), row);
  }

  /** What has come and gone, under the names that executions have. */
  #moves(): Move<CallItem<TRow>>[] {
    return this.#watch.moves().flatMap(({ to, row }) => {
      const call = this.#options.callOf(row);
      if (call === undefined) return [];
      const attempt = call.attempt ?? this.#options.parts.reader?.get(call.id)?.attempt ?? 0;
      return [{ to, row: { key: `${call.id}:${attempt}`, id: call.id, row, call, attempt } }];
    });
  }

  #itemOf(row: TRow, call: ListedCall): CallItem<TRow> | undefined {
    const { parts, strict, gate } = this.#options;
    if (!strict && !parts.tools.has(call.name)) return undefined;
    // An optimistic row may be refused yet; an optimistic edit is not what the others see.
    if (call.$hasPendingWrites === true) return undefined;
    const stored = parts.reader?.get(call.id);
    if (stored === undefined && parts.writer !== undefined) return undefined;
    const known = stored ?? call;
    if (!mayBegin(known, parts.claims !== undefined)) return undefined;
    if ((known.needsApproval ?? call.needsApproval) === true && gate.waits(call.id)) return undefined;
    const attempt = known.attempt ?? 0;
    return { key: `${call.id}:${attempt}`, id: call.id, row, call, attempt };
  }

  /** Whether the confirmed row has left the state in which it was executed: only then may it be begun again. */
  #isGone(key: string): boolean {
    if (this.#held.has(key)) return false;
    const { parts } = this.#options;
    // Nobody to ask: rather never twice than never.
    if (parts.reader === undefined) return false;
    const end = key.lastIndexOf(":");
    const row: ListedCall | undefined = parts.reader.get(key.slice(0, end));
    // On no log, rows show what was not confirmed yet, and may be taken back.
    if (row?.$hasPendingWrites === true) return false;
    if (row === undefined || !mayBegin(row, parts.claims !== undefined)) return true;
    return String(row.attempt ?? 0) !== key.slice(end + 1);
  }

  /** Whether somebody has asked for a call again before its last execution had come to its end. */
  #wasPutBack(id: string): boolean {
    const { writer } = this.#options.parts;
    // Elsewhere rows may lag behind what was written: rather never twice than never.
    const row = writer?.log === undefined ? undefined : writer.get(id);
    return row !== undefined && mayBegin(row, false);
  }

  async #run(item: CallItem<TRow>, disposing: AbortSignal): Promise<PumpOutcome> {
    this.#running.add(item.key);
    try {
      const outcome = await this.#work(item, disposing);
      return outcome === "done" && this.#wasPutBack(item.id) ? { later: true } : outcome;
    } finally {
      this.#running.delete(item.key);
    }
  }

  async #work(item: CallItem<TRow>, disposing: AbortSignal): Promise<PumpOutcome> {
    const run = this.#held.get(item.key)?.run ?? (await this.#begin(item));
    if (!(run instanceof CallRun)) return run;
    this.#held.set(item.key, { item, run });
    const outcome = await run.try(disposing);
    const again = typeof outcome === "object" && outcome.ms !== undefined;
    if (!again) this.#held.delete(item.key);
    return outcome;
  }

  async #begin(item: CallItem<TRow>): Promise<CallRun<TRow> | PumpOutcome> {
    const { parts, gate } = this.#options;
    const { call, id } = item;
    if (!parts.tools.has(call.name)) return refuse(parts, item, "failed", unknownTool(call.name));
    const stored = parts.reader?.get(id);
    if ((stored?.needsApproval ?? call.needsApproval) === true) {
      const answer = await gate.ask(id, call.name);
      if (answer === "wait") return { later: true };
      if (answer !== "go") return refuse(parts, item, "failed", answer);
    }
    const { retry } = parts;
    if (retry?.maxAttempts !== undefined && item.attempt >= retry.maxAttempts) {
      return refuse(parts, item, "failed", wornOut(id, item.attempt));
    }
    if (await parts.parent.isCancelled(item)) {
      return refuse(parts, item, "cancelled", new PerdureError("cancelled", "Its answer was cancelled."));
    }
    return takeCall(parts, item);
  }
}
