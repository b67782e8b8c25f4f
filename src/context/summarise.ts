import type { CompactionKind } from "../store/compaction.ts";
import type { Cut } from "./cut.ts";
import type { Measure } from "./measure.ts";
import { callsTools, DEFAULT_SERIALISE_LIMITS, type SerialiseLimits, serialiseMessage } from "./serialise.ts";
import { shorterPrompt, type SummaryPrompt, summaryPrompt, WORK_HEADING } from "./summary-prompt.ts";

/** What came of asking a model for a summary. */
export type SummaryAnswer =
  | { readonly kind: "text"; readonly text: string }
  /** What it was sent is too long for it. */
  | { readonly kind: "overflow" }
  /** It cannot be had; `error` says why, for a person. */
  | { readonly kind: "failed"; readonly error: string };

/** Asks the model that summarises. Must not throw, but for the reason of the signal. */
export type AskSummary = (prompt: SummaryPrompt & { readonly maxOutputTokens: number }) => Promise<SummaryAnswer>;

/** What is to be summarised, and by whom. */
export interface SummaryJob {
  readonly cut: Pick<Cut, "covered">;
  /** There are older messages that were not read. */
  readonly more: boolean;
  readonly prior: string | undefined;
  readonly focus: string | undefined;
  readonly instructions: string | undefined;
  readonly ask: AskSummary;
  readonly measure: Pick<Measure, "text">;
  /** The most that the model which summarises can be sent, in tokens. */
  readonly room: number;
  /** The length of summary that is aimed at, in tokens. */
  readonly length: number;
}

/** A summary, and whether a model wrote it. */
export type Summary =
  | { readonly kind: Exclude<CompactionKind, "prune">; readonly text: string }
  | { readonly kind: "failed"; readonly error: string };

/** How a request is made smaller that was too long: what share of the messages stays, and how much of each. */
interface Rung {
  readonly share: number;
  readonly limits: SerialiseLimits;
}

const WHOLE: Rung = { share: 1, limits: DEFAULT_SERIALISE_LIMITS };
/** First as it is; then without the oldest; then shorter too; then what is hardly more than a look. */
const RUNGS: readonly Rung[] = [
  WHOLE,
  { share: 0.6, limits: DEFAULT_SERIALISE_LIMITS },
  { share: 0.6, limits: { values: 500, texts: 2_000 } },
  { share: 0.3, limits: { values: 200, texts: 500 } },
];
/** Sizes are estimates: a request that is filled to more than this share is read in two. */
const SAFE_SHARE = 0.9;
/** The most requests that a conversation is read in. What is left then has to fit into the last one. */
const MAX_PIECES = 6;
/** How often a model is asked again because it was sent too much. */
const MAX_OVERFLOWS = 3;
/** How often a summary that is too long is made shorter. */
const MAX_SHORTER = 2;
/** A summary may be this much longer than what was aimed at. */
const LENGTH_TOLERANCE = 1.5;
/** Models think before they write; what they may say is more than what is aimed at. */
const OUTPUT_SHARE = 3;
const WORDS_PER_TOKEN = 0.7;
/** Of what the user said, when no model can summarise it. */
const TRUNCATED_TEXT = 200;
const MAX_TRUNCATED = 30;

/**
 * Asks for a summary. What is too long for one request is read in several, each with the summary of those before: so
 * nothing is left out. If the model says itself that it was sent too much, the oldest messages are left out, then all are
 * shortened, at most three times; then there is no model in it: only what the user said first is told. If the model cannot
 * be had, it fails: nothing is made up.
 */
export async function summarise(job: SummaryJob): Promise<Summary> {
  let left = job;
  for (let piece = 1; piece < MAX_PIECES; piece++) {
    const { covered } = left.cut;
    const count = fitting(left);
    if (count === 0 || count === covered.length) break;
    const first = { ...left, cut: { covered: covered.slice(0, count) } };
    const read = await askOnce(first, toRequest(first, WHOLE));
    if (read.kind === "failed") return read;
    if (read.kind === "overflow") break;
    left = { ...left, more: false, prior: read.text, cut: { covered: covered.slice(count) } };
  }
  return summariseRest(left);
}

async function summariseRest(job: SummaryJob): Promise<Summary> {
  let overflows = 0;
  for (const rung of RUNGS) {
    const request = toRequest(job, rung);
    // What is known not to fit is not sent.
    if (!fits(job, request)) continue;
    const read = await askOnce(job, request);
    if (read.kind === "failed") return read;
    if (read.kind === "text") return { kind: "summary", text: read.text };
    if (++overflows >= MAX_OVERFLOWS) break;
  }
  return { kind: "truncate", text: truncated(job) };
}

async function askOnce(job: SummaryJob, request: SummaryPrompt): Promise<SummaryAnswer> {
  const answer = await job.ask({ ...request, maxOutputTokens: job.length * OUTPUT_SHARE });
  if (answer.kind !== "text") return answer;
  const text = answer.text.trim();
  if (text === "") return { kind: "failed", error: "The model wrote an empty summary." };
  return { kind: "text", text: await shortened(job, text) };
}

/** How many of the oldest messages fit into one request, with all that belongs around them. */
function fitting(job: SummaryJob): number {
  const room = SAFE_SHARE * job.room;
  if (fits({ ...job, room }, toRequest(job, WHOLE))) return job.cut.covered.length;
  const { system, prompt } = toRequest({ ...job, cut: { covered: job.cut.covered.slice(0, 1) } }, WHOLE);
  let size = job.measure.text(system) + job.measure.text(prompt);
  let count = size <= room ? 1 : 0;
  for (const { node, parts } of count === 0 ? [] : job.cut.covered.slice(1)) {
    size += job.measure.text(serialiseMessage(node.message, parts, WHOLE.limits)) + job.measure.text("\n");
    if (size > room) break;
    count++;
  }
  return count;
}

function fits({ measure, room }: SummaryJob, { system, prompt }: SummaryPrompt): boolean {
  return measure.text(system) + measure.text(prompt) <= room;
}

function toRequest(job: SummaryJob, { share, limits }: Rung): SummaryPrompt {
  const items: string[] = [];
  for (const { node, parts } of job.cut.covered) {
    const text = serialiseMessage(node.message, parts, limits);
    if (text !== "") items.push(text);
  }
  const dropped = items.length - Math.max(1, Math.ceil(items.length * share));
  return summaryPrompt({
    items: dropped > 0 ? items.slice(dropped) : items,
    dropped: Math.max(0, dropped),
    more: job.more,
    prior: job.prior,
    focus: job.focus,
    style: isWork(job) ? "work" : "conversation",
    instructions: job.instructions,
    words: Math.round(job.length * WORDS_PER_TOKEN),
  });
}

/** Once there was work, the notes keep its form. */
function isWork({ cut, prior }: SummaryJob): boolean {
  return (prior?.includes(WORK_HEADING) ?? false) || cut.covered.some(({ node }) => callsTools(node.message));
}

async function shortened(job: SummaryJob, first: string): Promise<string> {
  let text = first;
  for (let i = 0; i < MAX_SHORTER && job.measure.text(text) > job.length * LENGTH_TOLERANCE; i++) {
    const request = shorterPrompt(text, Math.round(job.length * WORDS_PER_TOKEN));
    if (job.measure.text(request.prompt) > job.room) return text;
    const answer = await job.ask({ ...request, maxOutputTokens: job.length * OUTPUT_SHARE });
    const shorter = answer.kind === "text" ? answer.text.trim() : "";
    if (shorter === "" || shorter.length >= text.length) return text;
    text = shorter;
  }
  return text;
}

/** What can be said without a model: the summary so far, and the beginnings of what the user said. */
function truncated({ cut, prior, more }: SummaryJob): string {
  const said = cut.covered.flatMap(({ node, parts }) => {
    if (node.message.role !== "user") return [];
    const text = parts.map((part) => (part.type === "text" ? part.text : "")).join(" ");
    const line = text.replace(/\s+/g, " ").trim();
    const cutLine = line.length > TRUNCATED_TEXT ? `${line.slice(0, TRUNCATED_TEXT)}…` : line;
    return line === "" ? [] : [`- ${cutLine} (message ${node.message.id})`];
  });
  const left = said.length - MAX_TRUNCATED;
  const list = [...(left > 0 ? [`- (${left} older ones)`] : []), ...said.slice(-MAX_TRUNCATED)];
  const ids = cut.covered.map(({ node }) => node.message.id);
  const range = `${ids.length} messages, ${ids[0] ?? ""} to ${ids.at(-1) ?? ""}, ${more ? "and all before them, " : ""}were left out without a summary.`;
  return [prior, range, list.length === 0 ? undefined : `The user had said:\n${list.join("\n")}`]
    .filter((text) => text !== undefined)
    .join("\n\n");
}
