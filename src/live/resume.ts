import type { Clock } from "../base/time.ts";
import type { Socket } from "../port.ts";
import { newestTurn, readTurn, type TurnRow } from "../store/turn.ts";
import { readChunks } from "../store/stream.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import { heldContinuation } from "../turn/intake/tool-answers.ts";
import { encodeFrame } from "../wire/encode.ts";
import { wantsPages } from "../wire/history.ts";
import type { Audience } from "./audience.ts";
import type { Broadcast, Waiting } from "./broadcast.ts";

/** The clients wait for a minute after each `pending`; a longer queue is announced again before that. */
const REMIND_MS = 30_000;
/** How many clients that left are remembered, so that they are told what they missed when they come back. */
const MAX_LEFT = 200;

/** A frame that left so long ago has arrived, or never will. */
const ARRIVED_MS = 2_000;

/*
 * Resuming
 *
 * A client that comes (back) asks whether there is a stream for it, and is told at once: there is (`resuming`), there will be
 * (`pending`), there is none (`resume_none`). After `resuming` it gets nothing until it says that it is ready (the ACK); then all
 * that was committed so far, and in the same breath it listens again, so that nothing is missed or doubled. If the stream ends
 * before that, the client is given all of it before the end, since the public hook makes an empty message of an end that nothing
 * came before; its ACK, which crossed this, is not answered. For the same reason, who has not asked is offered a stream only once
 * it has something.
 */

/** Answers clients that look for a stream to go on with. */
export class Resume implements Waiting {
  readonly #chat: Conversations;
  readonly #audience: Audience;
  readonly #live: Broadcast;
  readonly #clock: Clock;
  /** Clients that left, by what they call themselves, and the turn whose end they would miss. */
  readonly #left = new Map<string, string | undefined>();
  #cancelReminder: (() => void) | undefined;

  constructor(chat: Conversations, audience: Audience, live: Broadcast) {
    this.#chat = chat;
    this.#audience = audience;
    this.#live = live;
    this.#clock = chat.host.clock;
    // Those who have waited since an earlier life.
    this.#remindLater();
  }

  /** A client has connected: it hears of a stream without asking. */
  connecting(socket: Socket): void {
    const session = this.#audience.sessionOf(socket);
    const running = this.#chat.turnIn(session);
    if (running?.streams === true) {
      const watches = this.#ownedByOther(running.row, socket);
      // Who goes on with a continuation needs the message as it has it: what it has seen of it is not sent again.
      if (watches || !running.continuation) this.#welcome(socket);
      if (!watches && running.log.count > 0) this.#offer(socket, running.row);
      else if (!watches) this.#park(socket, running.row);
      if (running.incident !== undefined) this.#tellRecovering(socket, true, running.row.id);
      return;
    }
    // A client that was cut off while a turn was recovering believes that it still is.
    this.#tellRecovering(socket, false);
    this.#welcome(socket);
    const next = this.#chat.waitingTurns(session).at(-1);
    if (next !== undefined) this.#park(socket, next);
  }

  /** A client was put into another session. It has nothing of it: whatever runs there, it is told all. */
  attached(socket: Socket): void {
    const session = this.#audience.sessionOf(socket);
    const running = this.#chat.turnIn(session);
    const follows = running?.streams === true && !this.#ownedByOther(running.row, socket);
    this.#tellRecovering(socket, running?.streams === true && running.incident !== undefined, running?.row.id);
    // Who goes on with a continuation is given all of its stream: it needs the message as it was before.
    this.#live.moved(socket, follows && running.continuation);
    const next = follows ? running.row : this.#chat.waitingTurns(session).at(-1);
    if (follows && running.log.count > 0) this.#offer(socket, running.row);
    else if (next !== undefined) this.#park(socket, next);
  }

  /** A client asks. */
  request(socket: Socket, probeId: string | undefined): void {
    const { host } = this.#chat;
    const session = this.#audience.sessionOf(socket);
    const running = this.#chat.turnIn(session);
    this.#audience.change(socket, { asked: true, gaveUp: false });
    if (running?.streams === true) {
      if (this.#ownedByOther(running.row, socket)) return this.none(socket, "continuation-owned", probeId);
      return this.#offer(socket, running.row, probeId);
    }
    const continuation = heldContinuation(this.#chat, session, socket);
    if (continuation !== undefined) {
      if (this.#ownedByOther(continuation, socket)) return this.none(socket, "continuation-owned", probeId);
      return this.#park(socket, continuation, probeId);
    }
    const newest = newestTurn(host, session);
    if (newest?.status === "error") {
      this.#audience.change(socket, { given: undefined });
      socket.send(encodeFrame({ type: "cf_agent_stream_resuming", id: newest.id, probeId }));
      return;
    }
    const waiting = this.#chat.waitingTurns(session).at(-1);
    if (waiting !== undefined) return this.#park(socket, waiting, probeId);
    this.none(socket, "idle", probeId);
  }

  /** A client is ready for the stream that it was offered. */
  acknowledge(socket: Socket, id: string): void {
    const { host } = this.#chat;
    const running = this.#chat.turn(id);
    const standing = this.#audience.of(socket);
    // Our own clients do not tell the two apart.
    const own = wantsPages(socket.uri) || (standing.asked && !standing.gaveUp);
    this.#audience.change(socket, { asked: false });
    if (standing.given === id) return;
    const turn = running !== undefined && running.cutBy !== "cleared" ? running.row : readTurn(host, id);
    // It may have gone to another session since.
    if (turn === undefined || turn.session !== this.#audience.sessionOf(socket)) {
      return this.nothingOf(socket, id);
    }
    if (turn === running?.row || turn.status === "running") {
      // Also while it is decided how a turn that was cut goes on: what there is of it stays. What is pending in the
      // log was sent to nobody yet, and comes to this one as to all.
      const taken = { turn: id, own, at: this.#clock.now() };
      this.#audience.change(socket, { withheld: undefined, parked: false, taken });
      return this.#live.replay(socket, turn, readChunks(host, turn.seq), true);
    }
    if (turn.status === "held" || turn.status === "accepted") return;
    // It was offered one before. If it was offered the one that streams too, it has yet to say so.
    this.#live.replay(socket, turn, readChunks(host, turn.seq), false);
    socket.send(this.#live.endFrame(turn, true));
  }

  /** There is nothing of a turn for a client that was ready for it. */
  nothingOf(socket: Socket, id: string): void {
    const frame = { type: "cf_agent_use_chat_response", id, body: "", done: true, replay: true } as const;
    socket.send(encodeFrame(frame));
  }

  /** A client stops a turn, and with it its own search for a stream. */
  stopping(socket: Socket, id: string): void {
    if (this.#chat.turn(id) !== undefined && !wantsPages(socket.uri)) this.#audience.change(socket, { gaveUp: true });
  }

  closed(socket: Socket): void {
    const { withheld, taken } = this.#audience.of(socket);
    const running = this.#chat.turnIn(this.#audience.sessionOf(socket))?.row.id;
    // It may have nothing of the stream yet, and would take the end alone for an empty answer. It will ask, and hear
    // that nothing runs.
    const hasJustTaken = taken !== undefined && taken.turn === running && this.#clock.now() - taken.at < ARRIVED_MS;
    const hasNothing = withheld !== undefined || hasJustTaken;
    this.#audience.change(socket, { parked: false, withheld: undefined });
    this.#left.delete(socket.id);
    this.#left.set(socket.id, hasNothing ? undefined : running);
    for (const id of this.#left.keys()) {
      if (this.#left.size <= MAX_LEFT) return;
      this.#left.delete(id);
    }
  }

  offer(turn: TurnRow, hasBegun: boolean): void {
    for (const socket of this.#audience.parked(turn.session)) {
      const standing = this.#audience.of(socket);
      // Its own, and it has asked for no other: it gets what comes from the beginning.
      if (!standing.asked && this.#chat.origins.get(turn.id) === socket)
        this.#audience.change(socket, { parked: false });
      else if (standing.asked || hasBegun) this.#offer(socket, turn);
    }
    this.#remindLater();
  }

  join(socket: Socket, turn: TurnRow): void {
    const running = this.#chat.turn(turn.id);
    if (running === undefined || running.log.count === 0 || this.took(socket, turn)) return;
    this.#offer(socket, turn);
  }

  isOwn(socket: Socket, turn: TurnRow): boolean {
    const { withheld, gaveUp, taken } = this.#audience.of(socket);
    if (withheld === turn.id) return !gaveUp;
    return taken?.turn === turn.id && taken.own;
  }

  took(socket: Socket, turn: TurnRow): boolean {
    const { withheld, taken } = this.#audience.of(socket);
    return withheld === turn.id || taken?.turn === turn.id;
  }

  dismiss(session: string): void {
    for (const socket of this.#audience.parked(session)) {
      this.#audience.change(socket, { parked: false, asked: false });
      socket.send(encodeFrame({ type: "cf_agent_stream_resume_none" }));
    }
    this.#remindLater();
  }

  #offer(socket: Socket, turn: TurnRow, probeId?: string): void {
    this.#audience.change(socket, { withheld: turn.id, parked: false, given: undefined });
    socket.send(encodeFrame({ type: "cf_agent_stream_resuming", id: turn.id, probeId }));
  }

  #park(socket: Socket, turn: TurnRow, probeId?: string): void {
    this.#audience.change(socket, { parked: true });
    this.#remindLater(true);
    socket.send(encodeFrame({ type: "cf_agent_stream_pending", id: turn.id, probeId }));
  }

  #welcome(socket: Socket): void {
    const returns = this.#left.has(socket.id);
    const missed = this.#left.get(socket.id);
    this.#left.delete(socket.id);
    // Who watched a turn when it was cut off shows it as running until it hears of its end. Before the conversation:
    // what it makes of that end may be wrong. A failed turn is offered to whoever asks, with its error.
    const turn = missed === undefined ? undefined : readTurn(this.#chat.host, missed);
    // Clients choose their ids: one that comes with the id of another may be in another session.
    const isHere = turn?.session === this.#audience.sessionOf(socket);
    if (!isHere) return this.#live.welcome(socket, returns);
    if (turn?.status === "completed" || turn?.status === "aborted") socket.send(this.#live.endFrame(turn, true));
    this.#live.welcome(socket, returns);
  }

  #tellRecovering(socket: Socket, recovering: boolean, id?: string): void {
    socket.send(encodeFrame({ type: "cf_agent_chat_recovering", recovering, id }));
  }

  /** There is no stream for a client that asks. */
  none(socket: Socket, reason: "idle" | "continuation-owned", probeId: string | undefined): void {
    this.#audience.change(socket, { asked: false });
    socket.send(encodeFrame({ type: "cf_agent_stream_resume_none", reason, probeId }));
  }

  /** The tab that answered a tool goes on with it; to the others it comes as a broadcast. */
  #ownedByOther(turn: TurnRow, socket: Socket): boolean {
    if (turn.trigger !== "continuation") return false;
    const owner = this.#chat.origins.get(turn.id);
    return owner !== undefined && owner !== socket && owner.open;
  }

  /** @param waits somebody does; one who is still connecting is not listed yet. */
  #remindLater(waits = this.#audience.parked().length > 0): void {
    this.#cancelReminder?.();
    this.#cancelReminder = waits ? this.#clock.after(REMIND_MS, () => this.#remind()) : undefined;
  }

  #remind(): void {
    try {
      for (const session of new Set(this.#audience.parked().map((socket) => this.#audience.sessionOf(socket)))) {
        const turn = this.#chat.waitingTurns(session).at(-1) ?? this.#chat.turnIn(session)?.row;
        if (turn === undefined) this.dismiss(session);
        else {
          const frame = encodeFrame({ type: "cf_agent_stream_pending", id: turn.id });
          for (const socket of this.#audience.parked(session)) socket.send(frame);
        }
      }
    } catch {
      // This life is over. The next one reminds.
      return;
    }
    this.#remindLater();
  }
}
