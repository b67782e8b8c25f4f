import { chat, type AnyTextAdapter } from "@tanstack/ai";
import type { MessageCollection } from "./config.ts";
import { PerdureError } from "../../base/error.ts";
import type { AgentMessage, SummaryRecord } from "../contract.ts";
import { rowsOf, type RowCollection, type RowOptions } from "../log/rows.ts";
import { linkSignals } from "../../base/abort.ts";
import { conversation, coverOf, isCovered, latestCover, type PlacedMessage } from "./history.ts";

interface SummarizeOptions {
  /** Writes it. */
  readonly adapter: AnyTextAdapter;
  /** From how many messages on that no summary covers. 100 by default. */
  readonly threshold?: number;
  /** How many of the latest messages stay as they are. 20 by default. */
  readonly windowSize?: number;
  readonly signal?: AbortSignal;
  /** For the write of the summary. */
  readonly fence?: RowOptions;
}

const DEFAULT_THRESHOLD = 100;
const DEFAULT_KEPT = 20;

const INSTRUCTIONS =
  "Summarize the conversation below for the assistant that will carry it on. Keep facts, decisions, names, numbers, " +
  "and what is still open. Write only the summary.";

/**
 * Writes a summary of an agent's older messages, when there are enough. The messages stay; `getContextMessages` shows the summary
 * in their place. It ends with a whole turn, and its id derives from there: of two processes that summarize the same, one row
 * remains.
 * @returns the summary; undefined when there was not enough, or somebody else has written it.
 * @throws what the model throws; PerdureError `call_failed` when it gave no text, `cancelled` when `signal` aborted.
 */
export async function summarizeOldMessages(
  agentName: string,
  collections: {
    readonly messages: MessageCollection;
    readonly summaries: RowCollection<SummaryRecord>;
  },
  options: SummarizeOptions,
): Promise<SummaryRecord | undefined> {
  const messages = rowsOf(collections.messages);
  const summaries = rowsOf(collections.summaries);
  await Promise.all([messages.ready(), summaries.ready()]);
  const covered = latestCover(agentName, summaries.all());
  const open = conversation(agentName, messages.all()).filter(({ anchor }) => !isCovered(anchor, covered));
  if (open.length <= (options.threshold ?? DEFAULT_THRESHOLD)) return undefined;
  const old = wholeTurns(open, open.length - (options.windowSize ?? DEFAULT_KEPT));
  const last = old.at(-1);
  if (last === undefined) return undefined;
  const content = await summarize(old, options);
  const coveringUpTo = coverOf(last.anchor);
  const summary: SummaryRecord = {
    id: `summary:${agentName}:${coveringUpTo}`,
    agentName,
    createdAt: new Date().toISOString(),
    coveringUpTo,
    content,
  };
  return (await summaries.insert(summary, options.fence)) ? summary : undefined;
}

/** At most the first `count` messages, without the beginning of a turn whose end is behind them. */
function wholeTurns(placed: readonly PlacedMessage[], count: number): readonly PlacedMessage[] {
  let end = Math.max(0, count);
  const next = placed[end];
  while (end > 0 && next !== undefined && placed[end - 1]?.anchor.id === next.anchor.id) end--;
  return placed.slice(0, end);
}

async function summarize(old: readonly PlacedMessage[], { adapter, signal }: SummarizeOptions): Promise<string> {
  const abortController = new AbortController();
  const unlink = linkSignals([signal], abortController);
  try {
    const transcript = old.map(({ message }) => `${speaker(message)}: ${message.content}`).join("\n\n");
    const content = await chat({
      adapter,
      systemPrompts: [INSTRUCTIONS],
      messages: [{ role: "user", content: transcript }],
      abortController,
      stream: false,
    });
    // After an abort chat() returns what it had so far.
    if (signal?.aborted === true) throw new PerdureError("cancelled", "The summary was cancelled.");
    if (content.trim() === "") throw new PerdureError("call_failed", "The model wrote an empty summary.");
    return content;
  } finally {
    unlink();
  }
}

function speaker({ role, actorId, toolCalls }: AgentMessage): string {
  const calls = (toolCalls ?? []).map(({ name, arguments: text }) => `${name}(${text})`);
  return calls.length === 0 ? `${role} (${actorId})` : `${role} (${actorId}) calls ${calls.join(", ")}`;
}
