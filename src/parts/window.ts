import type { LanguageModel, ModelMessage } from "ai";
import { BackgroundWork } from "../context/summary-ahead.ts";
import { BoundOutputs, outputBound } from "../context/bound-shown.ts";
import type { LiveState } from "../context/carried.ts";
import type { CompactionJob, CompactionOutcome } from "../context/compaction-job.ts";
import type { CompactionInfo, ContextReport, DraftCompaction } from "../wire/session-types.ts";
import { Compactor } from "../context/compactor.ts";
import { LearnedFactors } from "../context/learned.ts";
import { limitsOf, type ModelLimits } from "../context/model-limits.ts";
import { type OverflowPolicy, overflowPolicy } from "../context/overflow.ts";
import { usable } from "../context/token-budget.ts";
import { TokenCounters } from "../context/token-counters.ts";
import { unitsOfRequest } from "../context/units.ts";
import { BEGINNING, ContextReader, type ContextView } from "../context/view.ts";
import { PerdureError } from "../base/error.ts";
import { waitingText } from "../message/told-line.ts";
import { loadedKeys } from "../memory/loaded.ts";
import { findPrice } from "../ledger/prices.ts";
import type { SessionSettings } from "../session/session.ts";
import { openAgentRuns } from "../store/agent-run.ts";
import { type CompactionRow, listCompactions, readCompaction, readCompactionAt } from "../store/compaction.ts";
import { readMessage, readMessageAt } from "../store/message.ts";
import { ownerIdOf, readSession } from "../store/session.ts";
import { listInbox } from "../turn/intake/inbox.ts";
import { jobNow, measureNow, type RequestNow } from "../turn/step/make-job.ts";
import { contextOf, nodesUp } from "../turn/step/step-run.ts";
import {
  assemble,
  classify,
  type ContextWindow,
  type SentRequest,
  shownApart,
  type StepParts,
} from "../turn/step/parts.ts";
import { nextRequest } from "../turn/step/prepare.ts";
import { nameOf } from "../model/call.ts";
import type { ContextState } from "../wire/session-frames.ts";
import { sessionOfRun } from "./runs/run-views.ts";
import type { Sql } from "../port.ts";
import { findOnPath } from "../store/search.ts";
import { contextReport, type MessageSource } from "../context/context-report.ts";
import { boundedOutputs, leftOutOutputs, summarised } from "../context/left-out.ts";
import type { UIMessage } from "../message/types.ts";
import { splitBlocks } from "../memory/render.ts";

/** Whole requests are as long as the windows of models. */
const KEPT_REQUESTS = 4;
const KEPT_STATES = 100;

/** A text to be applied: one that `compact({ preview: true })` returned, changed or not. */
export type AppliedCompaction = Pick<DraftCompaction, "summary" | "messageId"> & { readonly parts?: number | null };

/** Keeps the conversations of a `Think` within the windows of its models, and says what fills them. */
export class ThinkContext implements ContextWindow {
  readonly #parts: StepParts;
  readonly reader: ContextReader;
  readonly background: BackgroundWork;
  readonly counters: TokenCounters;
  readonly learned: LearnedFactors;
  readonly #bound = new BoundOutputs();
  #compactor: Compactor | undefined;
  /** The last requests of the sessions that were used last. */
  readonly #sent = new Map<string, SentRequest>();
  readonly #states = new Map<string, ContextState>();

  constructor(parts: StepParts) {
    const { host, policy } = parts;
    this.#parts = parts;
    this.reader = new ContextReader(host);
    this.counters = new TokenCounters(
      (model) => policy.countTokens(model),
      (model, error) => host.emit("chat:counter:failed", { model, error }),
      (model) => this.learned.countOf(model),
    );
    this.learned = new LearnedFactors(host, (model) => this.counters.rowOf(model));
    this.background = new BackgroundWork({
      keepAwake: (work) => void host.keepAwake(work),
      ready: (session) => this.ready(session),
      failed: (error) => parts.chat.agent.failed(error),
    });
  }

  get compactor(): Compactor {
    if (this.#compactor === undefined) {
      const { host } = this.#parts;
      this.#compactor = new Compactor(host, (row) => this.#told(row));
      if (!host.blank) this.#compactor.closeOpen();
    }
    return this.#compactor;
  }

  policy(): OverflowPolicy | undefined {
    return overflowPolicy(this.#parts.policy.contextOverflow);
  }

  limits(model: string): ModelLimits {
    return limitsOf(this.#parts.policy.modelLimits, model);
  }

  bounded(model: string, messages: readonly ModelMessage[]): ModelMessage[] {
    const policy = this.policy();
    if (policy === undefined) return [...messages];
    const sourceOf = (one: ModelMessage) => this.#parts.messages.sourceOf(one)?.id;
    return this.#bound.of(messages, outputBound(this.limits(model), policy), sourceOf);
  }

  original(message: ModelMessage): ModelMessage {
    return this.#bound.originalOf(message);
  }

  async summariser(): Promise<LanguageModel | undefined> {
    return this.#parts.policy.getCompactionModel();
  }

  async settings(session: string): Promise<SessionSettings> {
    return this.#parts.sessions.of(session).settings;
  }

  live(session: string): LiveState {
    const { host, policy, chat, book, background } = this.#parts;
    const owner = ownerIdOf(host, session);
    const queued = listInbox(chat).filter((item) => item.session === session);
    const loaded = loadedKeys(host, owner);
    return {
      runs: openAgentRuns(host)
        .filter((run) => ownerIdOf(host, sessionOfRun(run) ?? session) === owner)
        .map(({ runId, className, preview }) => ({
          ...{ id: runId, name: className },
          ...(preview !== null && { task: preview }),
        })),
      background: background
        .list(session)
        .map(({ toolCallId, toolName, input }) => ({ call: toolCallId, tool: toolName, input })),
      approvals: book
        .pendingApprovals()
        .filter(({ messageId }) => readMessage(host, messageId)?.session === owner)
        .map(({ toolCallId, tool, input }) => ({
          ...{ call: toolCallId, tool, input },
        })),
      queued: queued.flatMap(({ messages }) => messages).map(({ id, parts }) => ({ id, text: waitingText(parts) })),
      loaded: loaded.map(({ label, key }) => `${label}: ${key}`),
      ...policy.getLiveState(),
    };
  }

  sent(request: SentRequest): void {
    const { session, model, usage, maxOutputTokens } = request;
    keepNewest(this.#sent, session, request, KEPT_REQUESTS);
    const limits = this.limits(model);
    const units = () => this.counters.weigh(model, (count) => unitsOfRequest(request, count));
    const tokens = usage ? usage.input + usage.output : Math.round(this.learned.of(model) * units());
    const state = {
      ...{ tokens, usable: usable(limits, maxOutputTokens), window: limits.window, model },
      estimated: usage === undefined,
    };
    keepNewest(this.#states, session, state, KEPT_STATES);
    this.#changed(session);
  }

  /** What is told about the window of a session has changed. */
  #changed(session: string): void {
    this.#parts.chat.output.sessions?.({ kind: "context", session });
  }

  /** How full the window is, as far as it is known without work. */
  state(session: string): ContextState | null {
    const known = this.#states.get(session) ?? this.#stateOf(session);
    if (known !== undefined) keepNewest(this.#states, session, known, KEPT_STATES);
    return known ?? null;
  }

  /** By the last call, which may be of an earlier life, and what was compacted since. */
  #stateOf(session: string): ContextState | undefined {
    const { host } = this.#parts;
    if (host.blank) return undefined;
    const owner = ownerIdOf(host, session);
    const [call] = this.#parts.ledger.list({ session: owner, purpose: "turn", limit: 1 });
    if (call === undefined || call.input === null) return undefined;
    const limits = this.limits(call.model);
    const [row] = listCompactions(host, { session }, 1);
    const later = row?.status === "done" && (row.endedAt ?? 0) >= (call.settledAt ?? call.startedAt);
    const tokens = (later ? row.tokensAfter : undefined) ?? call.input + (call.output ?? 0);
    return { tokens, usable: usable(limits), window: limits.window, model: call.model, estimated: later };
  }

  /** Lets a summary made ahead count, if one waits and no turn of the session runs; else the turn does it. Never throws. */
  ready(session: string): void {
    const { host } = this.#parts;
    if (this.#parts.chat.turnIn(session) !== undefined) return;
    const prepared = this.background.take(session);
    if (prepared === undefined) return;
    const publish = async () => {
      const job = { ...prepared.job, view: () => this.#view(session) };
      if (this.compactor.publish({ ...prepared, job }).ok) await this.#renew(session);
    };
    void host.keepAwake(
      publish().catch((thrown: unknown) => {
        if (!this.background.closed) this.#parts.chat.agent.failed(thrown);
      }),
    );
  }

  /** Renders the context blocks of a session anew. */
  async #renew(session: string): Promise<void> {
    await (await this.#parts.sessions.ready(session)).blocks.refreshSystemPrompt();
  }

  /** Summarises now. @throws PerdureError `bad_state` when it cannot be done, with the reason. */
  async compact(session: string, focus: string | undefined): Promise<CompactionInfo> {
    const made = await this.compactor.run(await this.#job(session, focus));
    const info = this.#info(made);
    await this.#renew(session);
    return info;
  }

  /** Clears old outputs of tools now; undefined when that is not worth it. @throws PerdureError `bad_state` */
  async prune(session: string): Promise<CompactionInfo | undefined> {
    const row = this.compactor.prune(await this.#job(session, undefined));
    return row && toInfo(this.#parts.host, row, true);
  }

  /** What a summary would say. Nothing is stored. @throws PerdureError `bad_state`, `call_failed` */
  async preview(session: string, focus: string | undefined): Promise<DraftCompaction> {
    return this.compactor.draft(await this.#job(session, focus));
  }

  /** Makes a summary of a text that somebody wrote or changed. @throws PerdureError `bad_state` */
  async apply(session: string, { summary, messageId, parts = null }: AppliedCompaction): Promise<CompactionInfo> {
    const job = await this.#job(session, undefined);
    const info = this.#info(this.compactor.apply(job, { summary, messageId, parts }));
    await this.#renew(session);
    return info;
  }

  /** Takes back the compaction in effect. @throws PerdureError `not_found`, `bad_state`, `limit` */
  async undo(id: string, session?: string): Promise<CompactionInfo> {
    const { host } = this.#parts;
    const row = readCompaction(host, id);
    if (row === undefined) throw new PerdureError("not_found", `There is no compaction ${id}.`);
    const where = session ?? row.session;
    this.#idle(where);
    const measure = await measureNow(this, await this.#now(where));
    const undone = this.compactor.undo(id, this.#view(where), measure);
    await this.#renew(where);
    return toInfo(host, undone, false);
  }

  /** The compactions on the way of a session, newest first. */
  list(session: string, limit: number): CompactionInfo[] {
    const { host } = this.#parts;
    if (host.blank) return [];
    // Closes what an earlier life left.
    void this.compactor;
    return compactionsOn(host, session, () => this.#view(session), limit);
  }

  /** What fills the window: of the last request, or of the next one when none was made in this life. */
  async report(session: string): Promise<ContextReport> {
    const { host, policy, messages: known } = this.#parts;
    const sent = this.#sent.get(session) ?? (await this.#planned(session));
    const { model, instructions, tools, messages, usage, maxOutputTokens } = sent;
    const limits = this.limits(model);
    const factor = this.learned.of(model);
    const count = this.counters.of(model);
    const view = this.#view(session);
    const overflow = this.policy();
    const most = overflow === undefined ? Number.POSITIVE_INFINITY : outputBound(limits, overflow).one;
    const pins = new Set(view.pinned.map(({ message }) => message.id));
    const sourceOf = (message: ModelMessage) => known.sourceOf(this.#bound.originalOf(message));
    const pairs = messages.map((message) => ({
      ...{ sent: message, whole: this.#bound.originalOf(message), id: sourceOf(message)?.id },
    }));
    return contextReport({
      ...{ model, instructions, tools, messages, usage, limits, reservedOutput: maxOutputTokens, factor, count },
      price: findPrice(policy.prices, model),
      blocks: splitBlocks(typeof instructions === "string" ? instructions : ""),
      sourceOf: (message) => toSource(sourceOf(message), pins, view.compaction),
      leftOut: [
        ...summarised(summariesOf(host, view.compaction), factor, (seq) => readMessageAt(host, seq)?.id),
        ...leftOutOutputs(view, most, count),
        ...boundedOutputs(pairs, count),
      ],
    });
  }

  async #planned(session: string): Promise<SentRequest> {
    const { model, instructions, tools } = await nextRequest(this.#parts, session);
    const { base } = contextOf(this.#parts.chat, this.reader, session, 0);
    const messages = this.bounded(nameOf(model), await assemble(this.#parts, base, tools));
    return {
      ...{ session, model: nameOf(model), instructions, tools, messages },
      ...{ maxOutputTokens: undefined, usage: undefined },
    };
  }

  #told(row: CompactionRow): void {
    const { session, status, tokensAfter, tokensBefore } = row;
    if (status === "done" || status === "undone") {
      this.#sent.delete(session);
      const before = this.#states.get(session);
      const tokens = status === "done" ? tokensAfter : tokensBefore;
      if (before !== undefined)
        this.#states.set(session, { ...before, tokens: tokens ?? before.tokens, estimated: true });
    }
    this.#changed(session);
  }

  #info(made: CompactionOutcome): CompactionInfo {
    if (!made.ok) throw new PerdureError("bad_state", made.error);
    return toInfo(this.#parts.host, made.row, true);
  }

  #view(session: string): ContextView {
    return this.reader.read(nodesUp(this.#parts.chat, session, 0), session);
  }

  /** What a turn has sent must not change while it runs, but by the turn itself. */
  #idle(session: string): void {
    if (this.#parts.chat.turnIn(session) === undefined) return;
    throw new PerdureError("bad_state", "A turn of this session is running. Ask again when it has ended.");
  }

  async #now(session: string): Promise<RequestNow> {
    const next = await nextRequest(this.#parts, session);
    const policy = this.policy();
    const own = policy === undefined ? Number.POSITIVE_INFINITY : policy.threshold * policy.maxInputTokens;
    return {
      ...next,
      bound: Math.min(usable(this.limits(nameOf(next.model))), own),
      // A turn that has begun meanwhile goes on with what it had read, and the next one has the summary.
      view: () => this.#view(session),
      shown: (messages) => shownApart(this.#parts, messages, next.tools),
    };
  }

  async #job(session: string, focus: string | undefined): Promise<CompactionJob> {
    this.#idle(session);
    const { host, ledger } = this.#parts;
    return jobNow(this, {
      ...(await this.#now(session)),
      ...{ session, trigger: "manual", open: false, focus, signal: new AbortController().signal, turn: undefined },
      whole: () => this.reader.whole(() => nodesUp(this.#parts.chat, session, 0), session),
      books: {
        ...{ host, ledger, payers: undefined, turn: undefined, step: 0 },
        classify: (error) => classify(this.#parts, error),
      },
    });
  }
}

/** Puts an entry last, and lets the oldest go. */
function keepNewest<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const old of map.keys()) {
    if (map.size <= most) return;
    map.delete(old);
  }
}

/** How many are looked through. */
const MAX_LISTED = 500;
/** How far up a session is looked through. */
const MAX_WAY = 100_000;

/** A row as it is told. */
function toInfo(db: Sql, row: CompactionRow, inEffect: boolean): CompactionInfo {
  const { id, session, kind, status, trigger, parts, summary, carried, focus, model } = row;
  const { tokensBefore, tokensAfter, leftOut, error, createdAt, endedAt } = row;
  return {
    ...{ id, session, kind, status, trigger, parts, summary, carried, focus, model, inEffect },
    ...{ messageId: readMessageAt(db, row.at)?.id ?? null },
    ...{ tokensBefore, tokensAfter, leftOut, error, createdAt, endedAt },
  };
}

/** The compactions of messages that a session goes through, newest first. */
function compactionsOn(db: Sql, session: string, shown: () => ContextView, limit: number): CompactionInfo[] {
  const leaf = readSession(db, session)?.leaf ?? null;
  const rows = listCompactions(db, {}, MAX_LISTED);
  if (leaf === null || rows.length === 0) return [];
  const ats = [...new Set(rows.map(({ at }) => at))];
  const onPath = new Set(findOnPath(db, leaf, ats, MAX_WAY).found);
  const view = shown();
  const seqs = new Set(view.nodes.flatMap(({ seq, last }) => [seq, last]));
  const counts = ({ status, kind, seq, at }: CompactionRow) =>
    status === "done" && (kind === "prune" ? seqs.has(at) : seq === view.compaction?.seq);
  const found = rows.filter(({ at, session: of }) => onPath.has(at) || (of === session && at === 0));
  return found.slice(0, limit).map((row) => toInfo(db, row, counts(row)));
}

/** How many summaries back it is said what each made shorter. */
const MAX_SUMMARIES = 50;

function toSource(
  source: UIMessage | undefined,
  pins: ReadonlySet<string>,
  compaction: CompactionRow | undefined,
): MessageSource | undefined {
  if (source === undefined || source === BEGINNING) return undefined;
  if (source.id.startsWith("compaction-")) return { kind: "summary", carried: compaction?.carried ?? "" };
  return { id: source.id, ...(pins.has(source.id) && { kind: "pinned" }) };
}

/** The summary in effect, and those that it took in. */
function summariesOf(host: Sql, newest: CompactionRow | undefined): CompactionRow[] {
  const rows: CompactionRow[] = [];
  let row = newest;
  while (row !== undefined && rows.length < MAX_SUMMARIES) {
    rows.push(row);
    row = row.prior === null ? undefined : readCompactionAt(host, row.prior);
  }
  return rows;
}
