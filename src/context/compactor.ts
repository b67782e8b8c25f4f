import { errorText, PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import type { AgentHost } from "../port.ts";
import { contextCompacted } from "../memory/lifecycle.ts";
import {
  type CompactionEnd,
  type CompactionRow,
  compactionsOfTurn,
  failCompaction,
  failOpenCompactions,
  finishCompaction,
  forgetFailedCompactions,
  readCompaction,
  readCompactionAt,
  redoTruncation,
  startCompaction,
  undoCompaction,
} from "../store/compaction.ts";
import type { CompactionTrigger, DraftCompaction } from "../wire/session-types.ts";
import { ownerIdOf } from "../store/session.ts";
import {
  AS_IT_IS,
  askOwn,
  type CompactionJob,
  type CompactionOutcome,
  cutFor,
  endOf,
  type Found,
  isSame,
  LEAST,
  OTHER_WAY,
  placeOf,
  planTruncation,
  type Prepared,
  replacedBy,
  sizeAfter,
  sizeOf,
  wholeOf,
} from "./compaction-job.ts";
import { type Cut, cutAt } from "./cut.ts";
import type { Measure } from "./measure.ts";
import { summarise } from "./summarise.ts";
import { isMuchOf, joined, planPrune, planSuperseded, pruneBounds, type PrunePlan, withPlan } from "./prune.ts";
import type { ContextView } from "./view.ts";

/** When clearing outputs makes this much room, there is no summary. */
const PRUNE_IS_ENOUGH = 0.7;
/** Why compactions have failed that nobody saw the end of. */
export const CUT_OFF = "It was cut off: the process ended before it did.";
/** Why others have: nobody wanted them any more, or the agent was about to stop. */
export const STOPPED = "It was stopped.";
/** How many rows back those that failed are kept, and how much of what they would have said. */
const KEPT_FAILURES = 200;
const KEPT_TEXT = 2_000;
/** A turn has no more summaries made ahead than this, and none when it has had as many for other reasons. */
const MAX_AHEAD = 2;
/** How often a turn tries again what a crash cut off: it may be the cause. */
const MAX_CUT_OFF = 3;
/** How many summaries a turn may ask for before the window fills again, and how many may fail, for all reasons. */
const MAX_AT_ONCE = 2;
const MAX_IN_VAIN = 2;
/** How often the same step leaves out more, after a provider has refused what was left. */
const MAX_TRUNCATIONS = 2;

/** The length of a summary, in tokens and as a share of what a request may hold. */
const MAX_SUMMARY_TOKENS = 2_500;
const SUMMARY_SHARE = 0.08;
const MIN_SUMMARY_TOKENS = 200;

type Host = Pick<AgentHost, "sql" | "tx" | "clock" | "emit">;

/** What is told of compactions, after it is stored. Must not throw. */
type CompactionTold = (row: CompactionRow) => void;

/** Makes compactions. One is committed only if the request shrinks and fits; otherwise its row says why, and nothing changes. */
export class Compactor {
  readonly #host: Host;
  readonly #told: CompactionTold;

  constructor(host: Host, told: CompactionTold = () => {}) {
    this.#host = host;
    this.#told = told;
  }

  /** At the start of a life: what an earlier one had begun has come to nothing. */
  closeOpen(): void {
    failOpenCompactions(this.#host, CUT_OFF, this.#host.clock.now());
  }

  /**
   * Whether a turn may be compacted for this reason (again). Not after one that failed in the same turn. After one that
   * was done the turn must have come further, and `max` is the most in all.
   */
  allowed(turn: { readonly seq: number; readonly step: number }, trigger: CompactionTrigger, max: number): boolean {
    const rows = compactionsOfTurn(this.#host, turn.seq).filter(({ kind }) => kind === "summary");
    const ended = rows.filter(({ error }) => error !== CUT_OFF && error !== STOPPED);
    const isFailed = ({ status }: CompactionRow) => status === "failed";
    if (ended.filter(isFailed).length >= MAX_IN_VAIN) return false;
    const isPast = ({ status, step }: CompactionRow) =>
      (status === "done" || status === "undone") && (step ?? 0) < turn.step;
    if (ended.slice(ended.findLastIndex(isPast) + 1).length >= MAX_AT_ONCE) return false;
    const ahead = trigger === "background";
    const isAlike = (row: CompactionRow) => ahead || familyOf(row.trigger) === familyOf(trigger);
    const made = ended.filter(isAlike);
    const most = ahead ? Math.min(max, MAX_AHEAD) : max;
    if (made.length >= most || rows.filter(isAlike).length - made.length >= MAX_CUT_OFF) return false;
    return !made.some((row) => isFailed(row) || (row.status === "done" && row.step === turn.step));
  }

  /**
   * Leaves out what a provider refused, when its summary has failed in this turn. At most twice per step: the second time only
   * what cannot be spared stays. One transaction, never throws. @returns undefined when nothing was done.
   */
  truncate(job: CompactionJob): CompactionRow | undefined {
    const { turn } = job;
    if (turn === undefined) return undefined;
    const rows = compactionsOfTurn(this.#host, turn.seq).filter(({ kind }) => kind !== "prune");
    const last = rows.at(-1);
    const before = rows.filter(({ kind, step }) => kind === "truncate" && step === turn.step).length;
    if (last === undefined || before >= MAX_TRUNCATIONS) return undefined;
    if (last.kind !== "truncate" && (last.status !== "failed" || last.error === AS_IT_IS)) return undefined;
    const why = rows.findLast(({ kind }) => kind === "summary")?.error ?? "";
    const planned = planTruncation(job, before > 0, why);
    if (planned === undefined) return undefined;
    const shown = job.view();
    const row = this.#host.tx(() => {
      const seq = this.#start(job, planned.cut, sizeOf(shown, job.measure), shown, "truncate");
      finishCompaction(this.#host, seq, planned.end, this.#host.clock.now());
      contextCompacted(this.#host, ownerIdOf(this.#host, job.session));
      return readCompactionAt(this.#host, seq);
    });
    if (row !== undefined) this.#done(row, job, { leftOut: row.leftOut ?? 0 });
    return row;
  }

  /** The whole procedure. Never throws. */
  async run(job: CompactionJob): Promise<CompactionOutcome> {
    // Whoever asked for a summary gets one.
    const clears = job.trigger !== "manual" && job.trigger !== "retry" && job.own === undefined;
    const pruned = clears ? this.#pruneInstead(job) : undefined;
    if (pruned !== undefined) return { ok: true, row: pruned };
    const prepared = await this.prepare(job);
    const made = "seq" in prepared ? this.publish(prepared) : prepared;
    if (made.ok || !clears || job.signal.aborted) return made;
    // Less than hoped for is better than nothing.
    const row = this.prune(job);
    return row === undefined ? made : { ok: true, row };
  }

  /** Leaves out old outputs of tools, and those that newer ones stand for, if that is worth it. @returns the row */
  prune(job: CompactionJob): CompactionRow | undefined {
    const view = job.view();
    const plan = planAll(job, view);
    const { minimum } = pruneBounds(job.measure.usable);
    return plan === undefined || plan.tokens < minimum ? undefined : this.#prune(job, view, plan);
  }

  /** Whether that much can be left out when it has to be that no summary is needed ahead of it. */
  canPrune(job: CompactionJob): boolean {
    const view = job.view();
    const plan = job.own === undefined ? planAll(job, view) : undefined;
    if (plan === undefined) return false;
    return sizeAfter(withPlan(view, plan), job.measure) <= PRUNE_IS_ENOUGH * sizeOf(view, job.measure);
  }

  /** Leaves out the outputs that newer ones stand for, if they are a large part of the request. @returns the row */
  tidy(job: CompactionJob): CompactionRow | undefined {
    const view = job.view();
    const plan = planSuperseded(view, job.measure, job);
    if (plan === undefined || !isMuchOf(plan, sizeOf(view, job.measure), job.measure.usable)) return undefined;
    return this.#prune(job, view, plan);
  }

  /** Leaves out outputs where that makes so much room that nothing has to be summarised: superseded ones first. */
  #pruneInstead(job: CompactionJob): CompactionRow | undefined {
    // What a provider says is too long, is not known to fit.
    if (job.trigger === "error") return undefined;
    const view = job.view();
    const isEnough = (plan: PrunePlan | undefined) =>
      plan !== undefined && sizeAfter(withPlan(view, plan), job.measure) <= PRUNE_IS_ENOUGH * job.measure.usable;
    const superseded = planSuperseded(view, job.measure, job);
    const plan = isEnough(superseded) ? superseded : planAll(job, view);
    return plan !== undefined && isEnough(plan) ? this.#prune(job, view, plan) : undefined;
  }

  #prune(job: CompactionJob, view: ContextView, plan: PrunePlan): CompactionRow | undefined {
    const before = sizeOf(view, job.measure);
    const after = sizeAfter(withPlan(view, plan), job.measure);
    if (after >= before) return undefined;
    const row = this.#host.tx(() => {
      const seq = this.#start(job, { at: plan.at, parts: null }, before, view, "prune");
      const nothing = { pins: "[]", files: "[]", summary: null, carried: null };
      const end: CompactionEnd = {
        ...{ ...nothing, kind: "prune", at: plan.at, parts: null },
        ...{ calls: JSON.stringify(plan.calls), tokensAfter: Math.round(after) },
      };
      finishCompaction(this.#host, seq, end, this.#host.clock.now());
      return readCompactionAt(this.#host, seq);
    });
    if (row !== undefined)
      this.#done(row, job, { superseded: plan.calls.filter(([, , by]) => by !== undefined).length });
    return row;
  }

  /** Gets a summary, which counts only when it is published. Never throws. */
  async prepare(job: CompactionJob): Promise<Prepared | Extract<CompactionOutcome, { ok: false }>> {
    const shown = job.view();
    const view = wholeOf(job, shown);
    const before = sizeOf(shown, job.measure);
    const cut = cutFor(job, view, shown);
    if (cut === undefined) return this.#not(job, view, before, NOTHING);
    const hopeless = endOf(job, view, cut, LEAST).problem;
    if (hopeless !== undefined) return this.#not(job, view, before, hopeless);
    const seq = this.#start(job, cut, before, shown, "summary");
    const row = readCompactionAt(this.#host, seq);
    if (row !== undefined) this.#told(row);
    try {
      const summary = await summaryFor(job, view, cut);
      job.signal.throwIfAborted();
      if (summary.kind === "failed") return this.#fail(seq, job, summary.error);
      const named = summary.toMessageId;
      const place = named === undefined ? cut : placeOf(view, named);
      if (place === undefined) {
        return this.#fail(seq, job, `onCompaction named message ${named ?? ""}, which is not shown to the model.`);
      }
      const { at, parts, covered } = place;
      const { kind, text, leftOut } = summary;
      return { seq, job, prior: view.compaction?.seq ?? null, at, parts, kind, text, covered, leftOut };
    } catch (thrown) {
      return this.#fail(seq, job, job.signal.aborted ? whyStopped(job.signal) : errorText(thrown));
    }
  }

  /** Lets a summary count, if it still fits the conversation and makes the request smaller. Never throws. */
  publish(prepared: Prepared): CompactionOutcome {
    const { seq, job } = prepared;
    try {
      const shown = job.view();
      const view = wholeOf(job, shown);
      if ((view.compaction?.seq ?? null) !== prepared.prior) return this.#fail(seq, job, "Another one came first.");
      const cut = cutAt(view, prepared.at, prepared.parts);
      if (cut === undefined || !isSame(prepared.covered, cut.covered)) return this.#fail(seq, job, OTHER_WAY);
      const { end, problem } = endOf(job, view, cut, prepared);
      if (problem !== undefined) return this.#fail(seq, job, problem, end);
      const replaced = replacedBy(shown, view, cut);
      this.#host.tx(() => {
        finishCompaction(this.#host, seq, end, this.#host.clock.now());
        if (replaced !== undefined) undoCompaction(this.#host, replaced.seq);
        contextCompacted(this.#host, ownerIdOf(this.#host, job.session));
      });
      const row = readCompactionAt(this.#host, seq);
      if (row?.status !== "done") return { ok: false, error: row?.error ?? "It is gone.", tried: true };
      this.#done(row, job, prepared.leftOut === undefined ? {} : { leftOut: prepared.leftOut });
      return { ok: true, row };
    } catch (thrown) {
      return this.#fail(seq, job, errorText(thrown));
    }
  }

  /** What a compaction would say, without making it. @throws PerdureError `bad_state` when there is nothing to compact. */
  async draft(job: CompactionJob): Promise<DraftCompaction> {
    const shown = job.view();
    const view = wholeOf(job, shown);
    const cut = cutFor(job, view, shown);
    if (cut === undefined) throw new PerdureError("bad_state", NOTHING);
    const summary = await summaryFor(job, view, cut);
    if (summary.kind === "failed") throw new PerdureError("call_failed", summary.error);
    const named = summary.toMessageId;
    const place = (named === undefined ? cut : placeOf(view, named)) ?? cut;
    const { end, problem } = endOf(job, view, place, { kind: summary.kind, text: summary.text });
    const covered = place.covered.at(-1)?.node.message.id ?? "";
    return {
      ...{ kind: summary.kind, summary: summary.text, messageId: covered, parts: place.parts, problem },
      ...{ tokensBefore: Math.round(sizeOf(view, job.measure)), tokensAfter: end.tokensAfter ?? 0 },
    };
  }

  /** Makes a compaction with a text that somebody wrote or changed. Never throws. */
  apply(job: CompactionJob, draft: Pick<DraftCompaction, "summary" | "messageId" | "parts">): CompactionOutcome {
    const shown = job.view();
    const view = wholeOf(job, shown);
    const node = view.nodes.find(({ message }) => message.id === draft.messageId);
    const cut = node && cutAt(view, draft.parts === null ? node.last : node.seq, draft.parts);
    if (cut === undefined) {
      const error = `Message ${draft.messageId} is not shown to the model any more: make a new preview.`;
      return { ok: false, error, tried: false };
    }
    const seq = this.#start(job, cut, sizeOf(shown, job.measure), shown, "summary");
    const { at, parts, covered } = cut;
    const text = draft.summary.trim();
    return this.publish({ seq, job, prior: view.compaction?.seq ?? null, at, parts, kind: "summary", text, covered });
  }

  /**
   * Takes back the compaction in effect; what was said since stays.
   * @throws PerdureError `not_found`; `bad_state` when it is not in effect; `limit` when the conversation would no longer fit.
   */
  undo(id: string, view: ContextView, measure: Measure): CompactionRow {
    const row = readCompaction(this.#host, id);
    if (row === undefined) throw new PerdureError("not_found", `There is no compaction ${id}.`);
    const inView = view.nodes.some(({ seq, last }) => seq === row.at || last === row.at);
    const counts = row.kind === "prune" ? inView : row.seq === view.compaction?.seq;
    if (row.status !== "done" || !counts) {
      throw new PerdureError("bad_state", "Only the compaction in effect can be undone. Undo the newer one first.");
    }
    const saved = row.tokensBefore - (row.tokensAfter ?? row.tokensBefore);
    const over = Math.ceil(sizeOf(view, measure) + saved - measure.usable);
    if (over > 0) {
      throw new PerdureError(
        "limit",
        `Without this compaction the conversation is about ${over} tokens too long for the model (${measure.usable} fit).`,
      );
    }
    this.#host.tx(() => {
      undoCompaction(this.#host, row.seq);
      if (row.prior !== null) redoTruncation(this.#host, row.prior);
    });
    const undone: CompactionRow = { ...row, status: "undone" };
    this.#told(undone);
    return undone;
  }

  /** Without asking a model. In a turn it is written down, so that it is not tried again and again. */
  #not(
    job: CompactionJob,
    view: ContextView,
    before: number,
    error: string,
  ): Extract<CompactionOutcome, { ok: false }> {
    if (job.turn === undefined) return { ok: false, error, tried: false };
    const at = view.nodes.at(-1)?.seq ?? view.compaction?.at ?? 0;
    return this.#fail(this.#start(job, { at, parts: null }, before, view, "summary"), job, error);
  }

  #start(
    job: CompactionJob,
    { at, parts }: Pick<Cut, "at" | "parts">,
    before: number,
    view: ContextView,
    kind: CompactionRow["kind"],
  ): number {
    return this.#host.tx(() =>
      startCompaction(this.#host, {
        ...{ id: newId("cmp"), session: job.session, at, parts, kind, trigger: job.trigger },
        ...{ turn: job.turn?.seq ?? null, step: job.turn?.step ?? null, call: job.call ?? null },
        ...{ prior: view.compaction?.seq ?? null, tokensBefore: Math.round(before), model: job.summariser.model },
        ...{ focus: job.focus ?? null, createdAt: this.#host.clock.now() },
      }),
    );
  }

  #fail(
    seq: number,
    job: CompactionJob,
    error: string,
    end?: CompactionEnd,
  ): Extract<CompactionOutcome, { ok: false }> {
    const why = { error, summary: end?.summary?.slice(0, KEPT_TEXT) ?? null, tokensAfter: end?.tokensAfter ?? null };
    this.#host.tx(() => {
      failCompaction(this.#host, seq, why, this.#host.clock.now());
      forgetFailedCompactions(this.#host, KEPT_FAILURES);
    });
    const row = readCompactionAt(this.#host, seq);
    if (row !== undefined) this.#told(row);
    const { session, trigger, turn } = job;
    this.#host.emit("chat:compaction:failed", {
      ...{ session, trigger, error },
      ...(turn !== undefined && { requestId: turn.id }),
    });
    return { ok: false, error, tried: true };
  }

  #done(row: CompactionRow, { turn }: CompactionJob, more: { leftOut?: number; superseded?: number }): void {
    this.#told(row);
    this.#host.emit("chat:context:compacted", {
      ...{ compactionId: row.id, session: row.session, kind: row.kind, trigger: row.trigger },
      ...{ tokensBefore: row.tokensBefore, tokensAfter: row.tokensAfter ?? 0 },
      ...more,
      ...(row.error !== null && { why: row.error }),
      ...(turn !== undefined && { requestId: turn.id }),
    });
  }
}

/** Gets the summary of a job: from the app if it has its own way, else from a model. @throws what the app throws. */
function summaryFor(job: CompactionJob, view: ContextView, cut: Cut): Promise<Found> {
  const { summariser, measure, focus, own } = job;
  if (own !== undefined) return askOwn(job, own, view);
  const share = Math.floor(SUMMARY_SHARE * measure.usable);
  return summarise({
    cut,
    prior: view.compaction?.summary ?? undefined,
    focus,
    instructions: summariser.instructions,
    ask: (prompt) => summariser.ask(prompt, job.signal),
    measure: summariser.measure ?? measure,
    room: summariser.room,
    reader: measure,
    length: Math.max(MIN_SUMMARY_TOKENS, Math.min(MAX_SUMMARY_TOKENS, share)),
  });
}

function whyStopped({ reason }: AbortSignal): string {
  return reason instanceof Error && reason.message === OTHER_WAY ? OTHER_WAY : STOPPED;
}

/** Reasons that are the same to a turn: what it would send is known to be too long. */
function familyOf(trigger: CompactionTrigger): CompactionTrigger {
  return trigger === "usage" || trigger === "proactive" ? "before" : trigger;
}

/** Outputs that newer ones stand for, and old ones beside them. */
function planAll(job: CompactionJob, view: ContextView): PrunePlan | undefined {
  const superseded = planSuperseded(view, job.measure, job);
  const rest = superseded === undefined ? view : withPlan(view, superseded);
  const old = planPrune(rest, job.measure, (tool) => job.keepAlways(tool));
  return joined(superseded, old);
}
const NOTHING = "There is nothing to summarise: everything left is needed as it is.";
