import type { Part, UIMessage } from "../message/types.ts";
import type { CompactFunction } from "../session/session.ts";
import type { CompactionEnd, CompactionRow } from "../store/compaction.ts";
import type { CompactionTrigger } from "../wire/session-types.ts";
import { joinFiles, type LiveState, renderCarried, saidInto, touchedFiles, type TouchedFile } from "./carried.ts";
import { type Cut, cutAt, findCut, tailBudget } from "./cut.ts";
import { type Measure, measureAll } from "./measure.ts";
import { isLeftOut, project, type ContextView } from "./view.ts";
import { serialiseMessage } from "./serialise.ts";
import { withLeftOut } from "./sections.ts";
import { type AskSummary, leftOutNote, messagesIn, type Summary } from "./summarise.ts";
import type { OutputRules } from "./superseded.ts";
import { joinCovered, renderWords, type SaidWords, type TellWords, wordsBudget } from "./user-words.ts";
import { unitsOfText } from "./text-units.ts";

/** The model that summarises. */
interface Summariser {
  /** `provider/modelId` */
  readonly model: string;
  /** The most that it can be sent, in its own tokens. */
  readonly room: number;
  /** How long texts are for it. Default: as for the model that answers. */
  readonly measure?: Pick<Measure, "text"> | undefined;
  ask(prompt: Parameters<AskSummary>[0], signal: AbortSignal): ReturnType<AskSummary>;
  /** What the agent is told about itself. */
  readonly instructions?: string | undefined;
}

/** One compaction that is to be made. */
export interface CompactionJob extends OutputRules {
  readonly session: string;
  readonly trigger: CompactionTrigger;
  /** The turn that it is for: its number, its id, and how many of its model calls are settled. */
  readonly turn?: { readonly seq: number; readonly id: string; readonly step: number } | undefined;
  /** The model call that was too long. */
  readonly call?: string | undefined;
  readonly focus?: string | undefined;
  /** The last message is an answer that is still being written. */
  readonly open: boolean;
  /** What the model is shown now. Asked again before anything is committed. */
  view(): ContextView;
  /** The same, with what was left out only because there was no summary of it. Default: the same. */
  readonly whole?: (() => ContextView) | undefined;
  readonly measure: Measure;
  readonly summariser: Summariser;
  readonly own?: CompactFunction | undefined;
  live(): LiveState;
  readonly signal: AbortSignal;
}

/** What came of it. `tried`: a row says so. */
export type CompactionOutcome =
  | { readonly ok: true; readonly row: CompactionRow }
  | { readonly ok: false; readonly error: string; readonly tried: boolean };

/** A summary that waits to be published. */
export interface Prepared {
  readonly seq: number;
  readonly job: CompactionJob;
  readonly prior: number | null;
  readonly at: number;
  readonly parts: number | null;
  readonly kind: "summary" | "truncate";
  readonly text: string;
  /** What was summarised, as it was then. */
  readonly covered: Cut["covered"];
  /** How many messages nobody has read for it. */
  readonly leftOut?: number | undefined;
}

/** Why a summary counts for nothing: what it was made of is not what the model reads any more. */
export const OTHER_WAY = "The conversation has gone another way since.";

/** A compaction is kept only if the request is this much shorter with it. */
const MUST_SHRINK_TO = 0.8;

/** How long a request with this view is. */
export function sizeOf(view: ContextView, measure: Measure): number {
  return measure.fixed + measureAll(project(view), measure);
}

/** The same once something is left out of it. */
export function sizeAfter(view: ContextView, measure: Measure): number {
  return sizeOf(view, measure) + (measure.added ?? 0);
}

/** What a summary is made of: what is shown, and what was left out of that only because there was no summary of it. */
export function wholeOf(job: CompactionJob, shown: ContextView): ContextView {
  return isLeftOut(shown.compaction) ? (job.whole?.() ?? shown) : shown;
}

/** The shortest summary that there could be: if that does not help, none does. */
export const LEAST = { kind: "summary", text: "-" } as const;

/** Where the conversation is cut for a job. What was left out is summarised up to where it was, if that is enough. */
export function cutFor(job: CompactionJob, view: ContextView, shown: ContextView): Cut | undefined {
  const { measure, open } = job;
  const left = leftOutIn(shown, view);
  const same = left && cutAt(view, left.at, left.parts);
  if (same !== undefined && endOf(job, view, same, LEAST).problem === undefined) return same;
  const tail = tailBudget(measure.usable, sizeOf(view, measure) - measure.fixed);
  return findCut(view, measure, tail, open);
}

/** What is left out of what is shown, and stands in this view all the same. */
function leftOutIn({ compaction }: ContextView, view: ContextView): CompactionRow | undefined {
  return compaction === undefined || compaction.seq === view.compaction?.seq ? undefined : compaction;
}

/** What was left out and is covered by a summary up to here: it counts no more when the summary does. */
export function replacedBy(shown: ContextView, view: ContextView, { at }: Cut): CompactionRow | undefined {
  const left = leftOutIn(shown, view);
  const place = (seq: number) => view.nodes.findIndex((node) => node.seq === seq || node.last === seq);
  // One that stands behind it counts for others whose way goes through that message.
  return left !== undefined && place(left.at) >= place(at) ? left : undefined;
}

/** The cut behind a message that somebody named. */
export function placeOf(view: ContextView, messageId: string): Cut | undefined {
  const node = view.nodes.find(({ message }) => message.id === messageId);
  return node && cutAt(view, node.last, null);
}

/** What was said, and up to which message, if that was said too. */
export type Found = Summary & { readonly toMessageId?: string };

/** Why there is no summary: the app wants none. */
export const AS_IT_IS = "onCompaction left it as it is.";

/** Asks the app for a summary. @throws what it throws. */
export async function askOwn(job: CompactionJob, compact: CompactFunction, view: ContextView): Promise<Found> {
  const said = await compact(project(view), { focus: job.focus, signal: job.signal });
  if (said === null || said === undefined) return { kind: "failed", error: AS_IT_IS };
  if (typeof said === "string") return { kind: "summary", text: said.trim() };
  const { summary, toMessageId } = said;
  return { kind: "summary", text: summary.trim(), ...(toMessageId !== undefined && { toMessageId }) };
}

/** What would be stored, and why it must not be. */
export function endOf(
  job: CompactionJob,
  view: ContextView,
  cut: Cut,
  { kind, text, leftOut }: Pick<Prepared, "kind" | "text" | "leftOut">,
): { end: CompactionEnd; problem: string | undefined } {
  const { measure } = job;
  const prior = view.compaction;
  const before = prior === undefined ? [] : (JSON.parse(prior.files) as TouchedFile[]);
  const files = joinFiles(
    before,
    cut.covered.flatMap(({ parts }) => touchedFiles(parts)),
  );
  const split = cut.parts === null ? undefined : cut.covered.at(-1)?.node.message;
  const said = split === undefined ? [] : saidInto(split, cut.parts ?? 0);
  const old = sizeOf(view, measure);
  const words = wordsOf(job, prior, cut);
  const carried = renderCarried(
    { ...job.live(), files, said },
    tellWords(words, cut, measure, old, { summary: text, files: new Set(files.map(({ path }) => path)) }),
  );
  const end: CompactionEnd = {
    ...{ kind, at: cut.at, parts: cut.parts, summary: text, carried, calls: "[]", files: JSON.stringify(files) },
    ...{ pins: JSON.stringify(cut.pins.map(({ seq }) => seq)), tokensAfter: null, leftOut: leftOut ?? null },
    words: JSON.stringify(words),
  };
  const row = { ...end, id: "cmp_00000000-0000-0000-0000-000000000000" } as CompactionRow;
  const size = sizeAfter({ ...view, compaction: row, pinned: cut.pins, nodes: cut.rest }, measure);
  const tokensAfter = Math.round(size);
  const problem = problemOf(text, old, size, measure.usable);
  return { end: { ...end, tokensAfter }, problem };
}

/** Whether what is covered is still what was summarised. */
export function isSame(before: Cut["covered"], now: Cut["covered"]): boolean {
  return (
    before.length === now.length &&
    before.every(({ node, parts }, i) => {
      const other = now[i];
      if (other === undefined || node.seq !== other.node.seq) return false;
      // The bytes of files may have been moved elsewhere meanwhile: nobody reads those for a summary.
      return node.message === other.node.message || readOf(node.message, parts) === readOf(node.message, other.parts);
    })
  );
}

const ALL = { values: Number.POSITIVE_INFINITY, texts: Number.POSITIVE_INFINITY };

function readOf(message: UIMessage, parts: readonly Part[]): string {
  return serialiseMessage(message, parts, ALL);
}

const knownWords = new WeakMap<
  CompactionJob,
  { readonly prior: CompactionRow | undefined; readonly covered: Cut["covered"]; readonly words: readonly SaidWords[] }
>();

/** What was said in all that is covered. It is asked before a summary is made and after, and costs the whole conversation. */
function wordsOf(job: CompactionJob, prior: CompactionRow | undefined, { covered }: Cut): readonly SaidWords[] {
  const known = knownWords.get(job);
  if (known?.prior === prior && known?.covered !== undefined && isSame(known.covered, covered)) return known.words;
  const words = joinCovered(wordsIn(prior), covered);
  knownWords.set(job, { prior, covered, words });
  return words;
}

function wordsIn(prior: CompactionRow | undefined): SaidWords[] {
  return prior === undefined ? [] : (JSON.parse(prior.words) as SaidWords[]);
}

/** What is shown anyway is not told twice. */
const SAMPLE = "What a text of so many characters is for the model. ".repeat(8);

function tellWords(
  words: readonly SaidWords[],
  cut: Cut,
  measure: Measure,
  old: number,
  told: Pick<TellWords, "summary" | "files">,
): string {
  const skip = new Set(cut.pins.flatMap(({ pinned, message }) => (pinned ? [] : [message.id])));
  const split = cut.parts === null ? undefined : cut.covered.at(-1)?.node.message;
  for (const part of split?.parts.slice(0, cut.parts ?? 0) ?? [])
    if (part.type === "steering-message") skip.add(part.id);
  const brief = new Set(cut.pins.map(({ message }) => message.id));
  // Without the model's factor: what one life has learned and another not must not change the text.
  const tokensOfUnit = measure.text(SAMPLE) / unitsOfText(SAMPLE);
  const size = Math.round((old - measure.fixed) / tokensOfUnit);
  return renderWords(words, { ...wordsBudget(measure.usable, size), skip, brief, ...told });
}

function problemOf(text: string, before: number, after: number, usable: number): string | undefined {
  if (text === "") return "The summary is empty.";
  if (after >= MUST_SHRINK_TO * before) {
    return `It would not help: about ${Math.round(before)} tokens would become ${Math.round(after)}.`;
  }
  if (after > usable) return `It would not be enough: ${Math.round(after)} tokens are left, and ${usable} fit.`;
  return undefined;
}

/**
 * What to leave out of a refused request when no summary can be had: what a summary would cover, or, if that is not less than
 * what was sent, all but the user's last message and the last step.
 * @param why there is no summary, for a person.
 * @returns undefined when nothing would make it shorter.
 */
export function planTruncation(
  job: CompactionJob,
  tight: boolean,
  why: string,
): { readonly cut: Cut; readonly end: CompactionEnd } | undefined {
  const { measure, open } = job;
  const shown = job.view();
  const view = wholeOf(job, shown);
  const size = sizeOf(shown, measure);
  const usual = () => findCut(view, measure, tailBudget(measure.usable, size - measure.fixed), open);
  // The last step has not been read yet: it stays, whatever else goes.
  const least = () => findCut(view, { ...measure, usable: 0 }, 0, false);
  for (const find of tight ? [least] : [usual, least]) {
    const cut = find();
    if (cut === undefined) continue;
    const ids = messagesIn(cut.covered);
    const text = withLeftOut(view.compaction?.summary ?? "", [leftOutNote(ids)]);
    const { end } = endOf(job, view, cut, { kind: "truncate", text, leftOut: ids.length });
    if ((end.tokensAfter ?? size) < Math.round(size)) return { cut, end: { ...end, error: toPerson(why, ids.length) } };
  }
  return undefined;
}

function toPerson(why: string, count: number): string {
  const what = count === 1 ? "One message was" : `${count} messages were`;
  return `The provider refused the conversation as too long, and there is no summary of it. ${why} ${what} left out of what the model reads; nothing was deleted. A summary is tried again when the next turn begins.`;
}
