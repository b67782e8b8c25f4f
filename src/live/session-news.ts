import type { AgentHost, Socket } from "../port.ts";
import type { SessionChange } from "../session/session-ground.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import { encodeFrame } from "../wire/encode.ts";
import { closeCode, UNKNOWN_SESSION } from "../wire/close-code.ts";
import { wantsPages } from "../wire/history.ts";
import {
  type BackgroundState,
  type CompactionMark,
  type ContextState,
  type SessionState,
  type SessionStateFrame,
  TOLD_COMPACTIONS,
  TOLD_SUMMARY_LENGTH,
} from "../wire/session-frames.ts";
import type { Audience } from "./audience.ts";
import type { Resume } from "./resume.ts";
import { hasSession } from "../session/session-changes.ts";
import { firstChars } from "../message/cut-value.ts";
import { type CompactionRow, doneAt, pinsOf, readCompactionAt } from "../store/compaction.ts";
import { type MarkedMessage, markedUp, readMessageAt } from "../store/message.ts";
import { readSessionLine } from "../store/session.ts";
import type { BackgroundCall } from "../turn/step/background-note.ts";

/** What may be news to the clients of a session; `turn`: only how much the model reads has changed. */
type News = SessionChange | { readonly kind: "turn" };

/** So many sessions are remembered. */
const MAX_MARKS = 16;
/** What a list of sessions shows. */
const LISTED: ReadonlySet<News["kind"]> = new Set(["created", "renamed", "deleted", "switched"]);

/** Tells our own clients how things stand in the session that they are in, and moves them from one to another. */
export class SessionNews {
  readonly #chat: Conversations;
  readonly #audience: Audience;
  readonly #resume: () => Resume;
  readonly #context: (session: string) => ContextState | null;
  readonly #moved: (socket: Socket) => void;
  /** What turns do not change, of sessions with clients. */
  readonly #marks = new Map<string, SessionMarks>();
  /** What each client was told last. */
  readonly #told = new WeakMap<Socket, string>();
  #due: "none" | "state" | "list" = "none";
  /** Where those are who name no session. */
  #current: string;

  /**
   * @param context what the agent knows of the model's window. Must be quick, and must not throw.
   * @param moved is told who has gone to another session.
   */
  constructor(
    chat: Conversations,
    audience: Audience,
    resume: () => Resume,
    context: (session: string) => ContextState | null,
    moved: (socket: Socket) => void,
  ) {
    this.#chat = chat;
    this.#audience = audience;
    this.#resume = resume;
    this.#context = context;
    this.#moved = moved;
    this.#current = chat.transcripts.current;
  }

  /** A client has come to its session. */
  greet(socket: Socket): void {
    if (wantsPages(socket.uri)) this.#tell(socket, this.#frame(this.#audience.sessionOf(socket)));
  }

  /** Puts a client into another session, and gives it that conversation; undefined: whichever is the current one. */
  move(socket: Socket, session: string | undefined): void {
    if (!wantsPages(socket.uri)) this.#endStreams(socket, this.#audience.of(socket).session ?? this.#current);
    this.#flushStream();
    this.#audience.attach(socket, session);
    this.#resume().attached(socket);
    this.greet(socket);
    this.#moved(socket);
  }

  /** What was streamed so far goes out before anybody joins: a newcomer is given it from the beginning. */
  #flushStream(): void {
    try {
      for (const turn of this.#chat.turns) turn.log.flush();
    } catch {
      // Nothing can be stored now. The turn hears of that by itself.
    }
  }

  changed(change: News): void {
    if (change.kind === "deleted") this.#sendAway();
    if (this.#chat.transcripts.current !== this.#current) this.#follow();
    if (change.kind !== "turn") this.#marks.clear();
    this.#later(LISTED.has(change.kind) ? "list" : "state");
  }

  /** Many changes at once are told once. */
  #later(what: "state" | "list"): void {
    const isDue = this.#due !== "none";
    if (this.#due !== "list") this.#due = what;
    if (!isDue && this.#readers().next().done !== true) queueMicrotask(() => this.#flush());
    else if (!isDue) this.#due = "none";
  }

  #flush(): void {
    const listed = this.#due === "list";
    this.#due = "none";
    try {
      const frames = new Map<string, string>();
      const list = encodeFrame({ type: "perdure_sessions_changed" });
      for (const socket of this.#readers()) {
        const session = this.#audience.sessionOf(socket);
        const frame = frames.get(session) ?? this.#frame(session);
        frames.set(session, frame);
        if (this.#told.get(socket) !== frame) this.#tell(socket, frame);
        if (listed) socket.send(list);
      }
    } catch {
      // This life is over, or cannot read: the next change tells.
    }
  }

  *#readers(): Generator<Socket> {
    for (const socket of this.#audience.all()) if (wantsPages(socket.uri)) yield socket;
  }

  #frame(session: string): string {
    let marks = this.#marks.get(session);
    if (marks === undefined) {
      if (this.#marks.size >= MAX_MARKS) this.#marks.clear();
      this.#marks.set(session, (marks = readMarks(this.#chat, session)));
    }
    const background = (this.#chat.answerer.steps?.background.list(session) ?? []).map(toBackgroundState);
    return encodeFrame({ type: "perdure_session_state", ...marks, context: this.#context(session), background });
  }

  #tell(socket: Socket, frame: string): void {
    this.#told.set(socket, frame);
    socket.send(frame);
  }

  /** Those who name no session go where the current one is. */
  #follow(): void {
    for (const socket of this.#audience.all()) {
      if (this.#audience.of(socket).session === undefined) this.move(socket, undefined);
    }
    this.#current = this.#chat.transcripts.current;
  }

  /** The public hook waits for the end of every turn that it knows of. It will hear nothing more of these. */
  #endStreams(socket: Socket, session: string): void {
    const running = this.#chat.turnIn(session);
    const turns = this.#chat.waitingTurns(session);
    if (running !== undefined) turns.push(running.row);
    for (const id of new Set(turns.map((turn) => turn.id))) {
      const knows = this.#chat.origins.get(id) === socket || (running?.row.id === id && running.log.count > 0);
      if (!knows) continue;
      const end = { type: "cf_agent_use_chat_response", id, body: "", done: true, outcome: "aborted" } as const;
      socket.send(encodeFrame(end));
    }
  }

  /** Not to another session: what they send next was not meant for that. */
  #sendAway(): void {
    for (const socket of this.#audience.all()) {
      const { session } = this.#audience.of(socket);
      if (session !== undefined && !hasSession(this.#chat.host, session))
        socket.close(closeCode.unknownSession, UNKNOWN_SESSION);
    }
  }
}

/** How far up the newest compaction and pins are looked for. */
const STRETCH = 1_000;

/** What a session's clients are told of it, but for what changes with every turn. */
type SessionMarks = Pick<SessionStateFrame, "session" | "compactions" | "pins">;

/** How things stand in a session. Costs the same however long the conversation is. */
function readMarks(chat: Conversations, session: string): SessionMarks {
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
