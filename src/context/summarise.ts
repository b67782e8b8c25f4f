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
  | {
      readonly kind: Exclude<CompactionKind, "prune">;
      readonly text: string;
      /** How many messages nobody has read for it. The text says so too. */
      readonly leftOut?: number;
    }
  | { readonly kind: "failed"; readonly error: string };

type Covered = Cut["covered"][number];

/** How much of each thing is shown: what is too long to be read in all pieces together is shown shorter. */
const SHORTEST: SerialiseLimits = { values: 200, texts: 500 };
const LIMITS: readonly SerialiseLimits[] = [DEFAULT_SERIALISE_LIMITS, { values: 500, texts: 2_000 }, SHORTEST];
/** Sizes are estimates: a request that is filled to more than this share is read in two. */
const SAFE_SHARE = 0.9;
/** The most requests that a conversation is read in. What is more than that is left out, and the summary says so. */
export const MAX_PIECES = 40;
/** How often a model may say that it was sent too much. Each time it gets half of that. */
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
 * nothing is left out. If the model says itself that it was sent too much, it gets smaller pieces, three times at most;
 * then there is no model in the rest: only what the user said first is told. What is more than {@link MAX_PIECES} requests
 * is shown shorter, then its middle is left out, and the summary names it. If the model cannot be had, it fails: nothing
 * is made up.
 */
export async function summarise(job: SummaryJob): Promise<Summary> {
  let { prior, room } = job;
  const { covered, gap, limits } = withinReach(job);
  // The oldest is the last: there may be ever so many.
  const waiting = covered.toReversed();
  let lost = gap?.messages ?? [];
  let overflows = 0;
  let asked = 0;
  while (waiting.length > 0 && asked < MAX_PIECES + MAX_OVERFLOWS) {
    const frame = job.measure.text(toText(toRequest(job, prior, [])));
    const piece = take(job, waiting, SAFE_SHARE * room - frame, limits);
    lost = [...lost, ...piece.lost];
    if (piece.taken.length === 0) break;
    const request = toRequest(job, prior, withGap(piece, gap));
    const read = await askOnce(job, request);
    asked++;
    if (read.kind === "failed") return read;
    if (read.kind === "text") {
      prior = read.text;
      continue;
    }
    waiting.push(...piece.taken.toReversed());
    if (++overflows >= MAX_OVERFLOWS) break;
    room = Math.min(room, job.measure.text(toText(request))) / 2;
  }
  const summed = asked > overflows && prior !== undefined;
  if (waiting.length > 0 || !summed) {
    const unread = [...lost, ...waiting].toSorted((a, b) => a.node.seq - b.node.seq);
    return { kind: "truncate", text: truncated(unread, prior), leftOut: messagesIn(unread).length };
  }
  const leftOut = messagesIn(lost);
  const text = [prior, ...missingNote(leftOut), ...(limits === LIMITS[0] ? [] : [SHORTENED])].join("\n\n");
  return { kind: "summary", text, ...(leftOut.length > 0 && { leftOut: leftOut.length }) };
}

const SHORTENED = "[All that this is a summary of was read in a shortened form: there was too much of it.]";

function missingNote(ids: readonly string[]): string[] {
  if (ids.length === 0) return [];
  const range = ids.length === 1 ? `Message ${ids[0] ?? ""} was` : `${messageRange(ids)} were`;
  return [`[${range} too much to be read, and left out of this summary. Search the conversation for what is there.]`];
}

function messageRange(ids: readonly string[]): string {
  return `${ids.length} messages, ${ids[0] ?? ""} to ${ids.at(-1) ?? ""},`;
}

/** What is read of all that is covered: everything, if need be in a shorter form, or all but its middle. */
interface Reach {
  readonly covered: readonly Covered[];
  readonly limits: SerialiseLimits;
  /** What is left out, and what stands behind it. */
  readonly gap: { readonly messages: readonly Covered[]; readonly before: Covered | undefined } | undefined;
}

function withinReach(job: SummaryJob): Reach {
  const { covered } = job.cut;
  const frame = job.measure.text(toText(toRequest(job, job.prior, []))) + LENGTH_TOLERANCE * job.length;
  const piece = Math.max(0, SAFE_SHARE * job.room - frame);
  let sizes: number[] = [];
  for (const limits of LIMITS) {
    sizes = covered.map((one) => job.measure.text(serialise(one, limits)));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    // Pieces are not filled to the brim: a message is not divided for that.
    if (total <= (MAX_PIECES * piece) / 2 || piece === 0) return { covered, limits, gap: undefined };
  }
  let first = 0;
  for (let size = 0; first < covered.length; first++) {
    size += sizes[first] ?? 0;
    if (size > piece) break;
  }
  let behind = covered.length;
  for (let size = 0; behind > first; behind--) {
    size += sizes[behind - 1] ?? 0;
    if (size > (MAX_PIECES * piece) / 2) break;
  }
  const gap = { messages: covered.slice(first, behind), before: covered[behind] };
  return { covered: [...covered.slice(0, first), ...covered.slice(behind)], limits: SHORTEST, gap };
}

interface Taken {
  readonly texts: string[];
  readonly taken: Covered[];
  /** What is too long for any request. */
  readonly lost: Covered[];
}

/** Takes the oldest that fit into one request. What is too long by itself is divided, then shortened. */
function take(job: SummaryJob, waiting: Covered[], room: number, limits: SerialiseLimits): Taken {
  const piece: Taken = { texts: [], taken: [], lost: [] };
  let size = 0;
  for (let next = waiting.at(-1); next !== undefined; next = waiting.at(-1)) {
    let text = serialise(next, limits);
    let more = job.measure.text(text) + job.measure.text("\n");
    if (size + more > room) {
      if (piece.taken.length > 0) break;
      const half = Math.ceil(next.parts.length / 2);
      if (half < next.parts.length) {
        const [node, parts] = [next.node, next.parts];
        waiting.splice(-1, 1, { node, parts: parts.slice(half) }, { node, parts: parts.slice(0, half) });
        continue;
      }
      text = serialise(next, SHORTEST);
      more = job.measure.text(text) + job.measure.text("\n");
    }
    waiting.pop();
    if (size + more > room) {
      piece.lost.push(next);
      continue;
    }
    piece.taken.push(next);
    size += more;
    if (text !== "") piece.texts.push(text);
  }
  return piece;
}

function withGap({ texts, taken }: Taken, gap: Reach["gap"]): string[] {
  const at = gap?.before === undefined ? -1 : taken.indexOf(gap.before);
  if (gap === undefined || at === -1) return texts;
  return [`[${messagesIn(gap.messages).length} messages before these are not shown here]`, ...texts];
}

function serialise({ node, parts }: Covered, limits: SerialiseLimits): string {
  return serialiseMessage(node.message, parts, limits);
}

/** Says what was left out, and for whom that is to be found. */
export function leftOutNote(ids: readonly string[]): string {
  const range = ids.length === 1 ? `Message ${ids[0] ?? ""} was` : `${messageRange(ids)} were`;
  return `[${range} left out without a summary. Search the conversation for what is there.]`;
}

/** The ids of messages, each once. */
export function messagesIn(covered: readonly Covered[]): string[] {
  return [...new Set(covered.map(({ node }) => node.message.id))];
}

function toText({ system, prompt }: SummaryPrompt): string {
  return system + prompt;
}

async function askOnce(job: SummaryJob, request: SummaryPrompt): Promise<SummaryAnswer> {
  const answer = await job.ask({ ...request, maxOutputTokens: job.length * OUTPUT_SHARE });
  if (answer.kind !== "text") return answer;
  const text = answer.text.trim();
  if (text === "") return { kind: "failed", error: "The model wrote an empty summary." };
  return { kind: "text", text: await shortened(job, text) };
}

function toRequest(job: SummaryJob, prior: string | undefined, items: readonly string[]): SummaryPrompt {
  return summaryPrompt({
    ...{ items, prior, focus: job.focus, instructions: job.instructions },
    style: isWork(job) ? "work" : "conversation",
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
function truncated(covered: readonly Covered[], prior: string | undefined): string {
  const said = covered.flatMap(({ node, parts }) => {
    if (node.message.role !== "user") return [];
    const text = parts.map((part) => (part.type === "text" ? part.text : "")).join(" ");
    const line = text.replace(/\s+/g, " ").trim();
    const cutLine = line.length > TRUNCATED_TEXT ? `${line.slice(0, TRUNCATED_TEXT)}…` : line;
    return line === "" ? [] : [`- ${cutLine} (message ${node.message.id})`];
  });
  const left = said.length - MAX_TRUNCATED;
  const list = [...(left > 0 ? [`- (${left} older ones)`] : []), ...said.slice(-MAX_TRUNCATED)];
  const range = `${messageRange(messagesIn(covered))} were left out without a summary.`;
  return [prior, range, list.length === 0 ? undefined : `The user had said:\n${list.join("\n")}`]
    .filter((text) => text !== undefined)
    .join("\n\n");
}
