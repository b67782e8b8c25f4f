import type { Socket } from "../port.ts";
import type { SessionChange } from "../session/session-ground.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import { encodeFrame } from "../wire/encode.ts";
import { closeCode, UNKNOWN_SESSION } from "../wire/close-code.ts";
import { wantsPages } from "../wire/history.ts";
import type { ContextState } from "../wire/session-frames.ts";
import type { Audience } from "./audience.ts";
import type { Resume } from "./resume.ts";
import { readMarks, type SessionMarks, toBackgroundState } from "./session-state.ts";
import { hasSession } from "../session/session-changes.ts";

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

  /** What was streamed so far goes out before anybody comes: who comes is given it from the beginning. */
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
