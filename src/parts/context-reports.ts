import type { ModelMessage } from "ai";
import type { OutputBound } from "../context/bound-shown.ts";
import { contextReport, type MessageSource } from "../context/context-report.ts";
import type { ContextReport } from "../wire/session-types.ts";
import { boundedOutputs, leftOutOutputs, summarised } from "../context/left-out.ts";
import type { ModelLimits } from "../context/model-limits.ts";
import { BEGINNING, type ContextView } from "../context/view.ts";
import type { CountText } from "../context/text-units.ts";
import type { UIMessage } from "../message/types.ts";
import type { Sql } from "../port.ts";
import { splitBlocks } from "../memory/render.ts";
import type { Price } from "../ledger/prices.ts";
import { type CompactionRow, readCompactionAt } from "../store/compaction.ts";
import { readMessageAt } from "../store/message.ts";
import type { SentRequest } from "../turn/step/parts.ts";

/** How many summaries back it is said what each made shorter. */
const MAX_SUMMARIES = 50;

/** A request, and what is known about it. */
interface ReportSource {
  readonly host: Sql;
  readonly sent: SentRequest;
  /** What the model is shown now. */
  readonly view: ContextView;
  readonly limits: ModelLimits;
  readonly factor: number;
  /** How long texts are for the model. */
  readonly count: CountText;
  readonly price: Price | undefined;
  /** How much of an output is shown; undefined: all. */
  readonly bound: OutputBound | undefined;
  /** The message before its outputs were bounded. */
  originalOf(message: ModelMessage): ModelMessage;
  /** The stored message that a message was made from, before it was bounded. */
  sourceOf(message: ModelMessage): UIMessage | undefined;
}

/** What fills the window, and what is not in it. */
export function reportOf(source: ReportSource): ContextReport {
  const { host, sent, view, limits, factor, count, price, bound } = source;
  const { model, instructions, tools, messages, usage, maxOutputTokens } = sent;
  const pins = new Set(view.pinned.map(({ message }) => message.id));
  const sourceOf = (message: ModelMessage) => source.sourceOf(source.originalOf(message));
  const pairs = messages.map((message) => ({
    ...{ sent: message, whole: source.originalOf(message), id: sourceOf(message)?.id },
  }));
  return contextReport({
    ...{ model, instructions, tools, messages, usage, limits, reservedOutput: maxOutputTokens, factor, count, price },
    blocks: splitBlocks(typeof instructions === "string" ? instructions : ""),
    sourceOf: (message) => toSource(sourceOf(message), pins, view.compaction),
    leftOut: [
      ...summarised(summariesOf(host, view.compaction), factor, (seq) => readMessageAt(host, seq)?.id),
      ...leftOutOutputs(view, bound?.one ?? Number.POSITIVE_INFINITY, count),
      ...boundedOutputs(pairs, count),
    ],
  });
}

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
