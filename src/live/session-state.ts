import { firstChars } from "../message/cut-value.ts";
import type { AgentHost } from "../port.ts";
import { type CompactionRow, doneAt, pinsOf, readCompactionAt } from "../store/compaction.ts";
import { type MarkedMessage, markedUp, readMessageAt } from "../store/message.ts";
import { readSessionLine } from "../store/session.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type { BackgroundCall } from "../turn/step/background-note.ts";
import {
  type BackgroundState,
  type CompactionMark,
  type SessionState,
  type SessionStateFrame,
  TOLD_COMPACTIONS,
  TOLD_SUMMARY_LENGTH,
} from "../wire/session-frames.ts";

/** How far up the newest compaction and pins are looked for. */
const STRETCH = 1_000;

/** What a session's clients are told of it, but for what changes with every turn. */
export type SessionMarks = Pick<SessionStateFrame, "session" | "compactions" | "pins">;

/** How things stand in a session. Costs the same however long the conversation is. */
export function readMarks(chat: Conversations, session: string): SessionMarks {
  const { host } = chat;
  const { leaf } = chat.transcripts.of(session);
  const marked = leaf === null ? [] : markedUp(host, leaf, STRETCH);
  const ids = new Map(marked.map(({ seq, id }) => [seq, id]));
  const idOf = (seq: number) => ids.get(seq) ?? readMessageAt(host, seq)?.id;
  const { rows, covering } = compactionsOn(host, marked);
  const pins = covering === undefined ? [] : (pinsOf(host, covering) ?? []).flatMap((seq) => idOf(seq) ?? []);
  const near = marked.filter(({ pinned }) => pinned === 1).map(({ id }) => id);
  return {
    session: describe(host, session),
    compactions: rows.flatMap(({ row, active }) => toMark(row, idOf(row.at), active)),
    pins: [...new Set([...pins, ...near.reverse()])],
  };
}

/** A call as those are told of it who see its part in the conversation. */
export function toBackgroundState(call: BackgroundCall): BackgroundState {
  const { toolCallId, messageId, toolName, startedAt, progress } = call;
  return { toolCallId, messageId, toolName, startedAt, ...(progress !== undefined && { progress }) };
}

function describe(host: AgentHost, id: string): SessionState {
  const row = host.blank ? undefined : readSessionLine(host, id);
  const viewOf = row?.viewOf ?? undefined;
  const named = viewOf === undefined ? row : readSessionLine(host, viewOf);
  const { name = null, namedBy = null } = named ?? {};
  return { id, name, namedBy, ...(viewOf !== undefined && { viewOf }) };
}

/** Those that count on the way up, oldest first: the ones that stand near, and what the first of them was made from. */
function compactionsOn(host: AgentHost, marked: readonly MarkedMessage[]) {
  const place = new Map(marked.map(({ seq }, i) => [seq, i]));
  const heightOf = ({ at }: CompactionRow) => place.get(at) ?? Infinity;
  const near = doneAt(host, [...place.keys()]).sort((a, b) => heightOf(b) - heightOf(a) || a.seq - b.seq);
  const covering = near.findLast(({ kind }) => kind !== "prune");
  const rows = near.slice(-TOLD_COMPACTIONS);
  for (let [row] = rows; row !== undefined && row.prior !== null && rows.length < TOLD_COMPACTIONS;) {
    row = readCompactionAt(host, row.prior);
    if (row?.status === "done") rows.unshift(row);
  }
  // Outputs that are left out further up are covered.
  const counts = (row: CompactionRow) =>
    row.kind === "prune" && (covering === undefined || heightOf(row) <= heightOf(covering));
  return { covering, rows: rows.map((row) => ({ row, active: row === covering || counts(row) })) };
}

function toMark(row: CompactionRow, at: string | undefined, active: boolean): CompactionMark[] {
  if (at === undefined) return [];
  const { id, parts, kind, trigger, tokensBefore, tokensAfter, createdAt } = row;
  const summary = firstChars(row.summary ?? "", TOLD_SUMMARY_LENGTH);
  const told = { id, at, kind, trigger, tokensBefore, tokensAfter, createdAt, summary, active };
  return [parts === null ? told : { ...told, parts }];
}
