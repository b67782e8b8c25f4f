import type { MessageCollection } from "./config.ts";
import type { ModelMessage } from "@tanstack/ai";
import type { AgentMessage, SummaryRecord } from "../contract.ts";
import { rowsOf, type RowCollection } from "../log/rows.ts";
import { byPlace } from "./message.ts";

interface HistoryCollections {
  readonly messages: MessageCollection;
  readonly summaries?: RowCollection<SummaryRecord> | undefined;
}

/** How many of the latest messages a model is shown. */
export const DEFAULT_WINDOW = 50;

/** A message, and where its turn stands in the conversation. */
export interface PlacedMessage {
  readonly message: AgentMessage;
  /** The message that gives the whole turn its place: the first that the agent wrote in it. */
  readonly anchor: AgentMessage;
}

/**
 * What a model is shown of an agent's conversation: the summaries, the latest `windowSize` messages that they do not cover, then
 * what is still to be answered. The same rows give the same result in every process: order is log order, never a clock (without a
 * log: `createdAt` and `id`).
 *
 * A turn (messages, tool calls with results, the answer) stays together. Left out: messages given up, turns without an answer,
 * and requests and replies between agents, which are in the tool calls.
 */
export async function getContextMessages(
  agentName: string,
  collections: HistoryCollections,
  windowSize: number = DEFAULT_WINDOW,
): Promise<ModelMessage[]> {
  const messages = rowsOf(collections.messages);
  const summaries = collections.summaries === undefined ? undefined : rowsOf(collections.summaries);
  await Promise.all([messages.ready(), summaries?.ready()]);
  return contextOf(agentName, messages.all(), summaries?.all() ?? [], { windowSize });
}

interface ContextOptions {
  readonly windowSize: number;
  /** The messages that are answered now, others wait. All that wait by default. */
  readonly pending?: readonly AgentMessage[];
}

/** The pure part of {@link getContextMessages}. */
export function contextOf(
  agentName: string,
  rows: readonly AgentMessage[],
  summaries: readonly SummaryRecord[],
  options: ContextOptions,
): ModelMessage[] {
  const { windowSize } = options;
  const covered = latestCover(agentName, summaries);
  const past = conversation(agentName, rows).filter((placed) => !isCovered(placed.anchor, covered));
  const recent = past.slice(Math.max(0, past.length - windowSize)).map(({ message }) => message);
  const pending = (options.pending ?? rows.filter((row) => isWaiting(agentName, row))).toSorted(byPlace);
  return [
    ...ownSummaries(agentName, summaries).map((summary) => userMessage(`[Summary] ${summary.content}`)),
    ...fromFirstUser(recent.map((row) => modelMessage(agentName, row))),
    ...pending.map((row) => modelMessage(agentName, row)),
  ];
}

/** The answered turns of an agent's conversation, in order. */
export function conversation(agentName: string, rows: readonly AgentMessage[]): PlacedMessage[] {
  const mine = rows.filter((row) => belongs(agentName, row)).toSorted(byPlace);
  const anchors = new Map<string, AgentMessage>();
  const answered = new Set<string>();
  for (const row of mine) {
    if (!isOwn(agentName, row) || row.generationId === undefined) continue;
    const turn = row.generationId;
    if (!anchors.has(turn)) anchors.set(turn, row);
    if (isAnswer(row)) answered.add(turn);
  }
  const placed: PlacedMessage[] = [];
  for (const message of mine) {
    if (isWaiting(agentName, message)) continue;
    const turn = message.generationId;
    if (isOwn(agentName, message) && turn !== undefined && !answered.has(turn)) continue;
    placed.push({ message, anchor: (turn === undefined ? undefined : anchors.get(turn)) ?? message });
  }
  return placed.toSorted(
    (a, b) =>
      byPlace(a.anchor, b.anchor) ||
      Number(isOwn(agentName, a.message)) - Number(isOwn(agentName, b.message)) ||
      byPlace(a.message, b.message),
  );
}

/** Where a summary that ends with this message ends. */
export function coverOf(anchor: AgentMessage): string {
  return anchor.seq === undefined ? anchor.createdAt : String(anchor.seq);
}

/** Whether a summary that ends at `cover` covers the turn. */
export function isCovered(anchor: AgentMessage, cover: string | undefined): boolean {
  if (cover === undefined) return false;
  return anchor.seq === undefined ? anchor.createdAt <= cover : anchor.seq <= Number(cover);
}

/** Where an agent's latest summary ends. */
export function latestCover(agentName: string, summaries: readonly SummaryRecord[]): string | undefined {
  return ownSummaries(agentName, summaries).at(-1)?.coveringUpTo;
}

/** In the order of what they cover. */
function ownSummaries(agentName: string, summaries: readonly SummaryRecord[]): SummaryRecord[] {
  return summaries.filter((summary) => summary.agentName === agentName).toSorted(byCover);
}

function byCover(a: SummaryRecord, b: SummaryRecord): number {
  const [x, y] = [Number(a.coveringUpTo), Number(b.coveringUpTo)];
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return a.coveringUpTo < b.coveringUpTo ? -1 : 1;
}

/** Whether a message is to be answered by the agent. */
export function isWaiting(agentName: string, row: AgentMessage): boolean {
  return row.targetAgent === agentName && !row.processed;
}

/** Whether a message is part of what the agent's model has said or was told. */
function belongs(agentName: string, row: AgentMessage): boolean {
  if (row.error !== undefined) return false;
  if (row.actorId === agentName) return row.role !== "user" || row.requestId === undefined;
  return row.targetAgent === agentName && row.inReplyTo === undefined;
}

/** Whether the agent's model, or one of its tools, said it. */
function isOwn(agentName: string, row: AgentMessage): boolean {
  return row.actorId === agentName && (row.role === "assistant" || row.role === "tool");
}

function isAnswer(row: AgentMessage): boolean {
  return row.role === "assistant" && (row.toolCalls?.length ?? 0) === 0;
}

/** A message as the agent's model sees it: all that others wrote is from the user. */
function modelMessage(agentName: string, row: AgentMessage): ModelMessage {
  if (!isOwn(agentName, row)) return userMessage(row.role === "system" ? `[System] ${row.content}` : row.content);
  if (row.role === "tool") return { role: "tool", content: row.content, toolCallId: row.toolCallId ?? "" };
  const calls = (row.toolCalls ?? []).map((call) => ({
    id: call.id,
    type: "function" as const,
    function: { name: call.name, arguments: call.arguments },
  }));
  if (calls.length === 0) return { role: "assistant", content: row.content };
  return { role: "assistant", content: row.content === "" ? null : row.content, toolCalls: calls };
}

function userMessage(content: string): ModelMessage {
  return { role: "user", content };
}

/** A window may begin inside a turn; a model must not see results of tools without their calls. */
function fromFirstUser(messages: ModelMessage[]): ModelMessage[] {
  const first = messages.findIndex((message) => message.role === "user");
  return first === -1
    ? messages.filter((message) => message.role === "assistant" && message.toolCalls === undefined)
    : messages.slice(first);
}
