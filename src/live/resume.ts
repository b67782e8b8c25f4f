import type { Clock } from "../id.ts";
import type { Socket } from "../port.ts";
import { newestTurn, readTurn, type TurnRow } from "../store/turn.ts";
import { readChunks } from "../store/stream.ts";
import type { Chat } from "../turn/chat.ts";
import { encodeFrame } from "../wire/encode.ts";
import type { Audience } from "./audience.ts";
import type { LiveChat, Waiting } from "./live-chat.ts";

/** The clients wait for a minute after each `pending`; a longer queue is announced again before that. */
const REMIND_MS = 30_000;
/** How many clients that left are remembered, so that they are told what they missed when they come back. */
const MAX_LEFT = 200;

/*
 * Resuming
 *
 * A client that comes (back) asks whether there is a stream for it. Every question is answered at once with one
 * of: there is one (`resuming`), there will be one (`pending`), there is none (`resume_none`). After `resuming`
 * the client gets nothing of the stream until it says that it is ready (the ACK); then it gets all that was
 * committed so far and, in the same breath, becomes a listener again, so that nothing is missed or doubled.
 */

/** Answers clients that look for a stream to go on with. */
export class Resume implements Waiting {
  readonly #chat: Chat;
  readonly #audience: Audience;
  readonly #live: LiveChat;
  readonly #clock: Clock;
  readonly #parked = new Set<Socket>();
  /** Which turn a client went on with last. */
  readonly #resumed = new WeakMap<Socket, string>();
  /** Clients that left, by what they call themselves, and the turn that was running then. */
  readonly #left = new Map<string, string | undefined>();
  #cancelReminder: (() => void) | undefined;

  constructor(chat: Chat, audience: Audience, live: LiveChat) {
    this.#chat = chat;
    this.#audience = audience;
    this.#live = live;
    this.#clock = chat.host.clock;
  }

  /** A client has connected: it hears of a stream without asking. */
  connecting(socket: Socket): void {
    const { running } = this.#chat;
    if (running?.streaming === true) {
      const watches = this.#ownedByOther(running.row, socket);
      // Who goes on with a continuation needs the message as it has it: what it has seen of it is not sent again.
      if (watches || !running.continuation) this.#welcome(socket);
      if (!watches) this.#offer(socket, running.row);
      if (running.recovering) this.#tellRecovering(socket, true, running.row.id);
      return;
    }
    // A client that was cut off while a turn was recovering believes that it still is.
    this.#tellRecovering(socket, false);
    this.#welcome(socket);
    const next = this.#chat.waitingTurns().at(-1);
    if (next !== undefined) this.#park(socket, next);
  }

  /** A client asks. */
  request(socket: Socket, probeId: string | undefined): void {
    const { running, host } = this.#chat;
    if (running?.streaming === true) {
      if (this.#ownedByOther(running.row, socket)) return this.#none(socket, "continuation-owned", probeId);
      return this.#offer(socket, running.row, probeId);
    }
    const continuation = this.#chat.heldContinuation(socket);
    if (continuation !== undefined) {
      if (this.#ownedByOther(continuation, socket)) return this.#none(socket, "continuation-owned", probeId);
      return this.#park(socket, continuation, probeId);
    }
    const newest = newestTurn(host);
    if (newest?.status === "error") {
      socket.send(
        encodeFrame({ type: "cf_agent_stream_resuming", id: newest.id, ...(probeId !== undefined && { probeId }) }),
      );
      return;
    }
    const waiting = this.#chat.waitingTurns().at(-1);
    if (waiting !== undefined) return this.#park(socket, waiting, probeId);
    this.#none(socket, "idle", probeId);
  }

  /** A client is ready for the stream that it was offered. */
  acknowledge(socket: Socket, id: string): void {
    const { running, host } = this.#chat;
    const streams = running?.streaming === true && !running.dropped;
    if (streams && running.row.id === id) {
      // What is pending in the log was sent to nobody yet, and comes to this one as to all.
      this.#audience.release(socket);
      this.#resumed.set(socket, id);
      return this.#live.replay(socket, running.row, running.log.read(), true);
    }
    // It was offered the one before. If it was offered the one that streams too, it has yet to say so.
    if (!streams) this.#audience.release(socket);
    const turn = readTurn(host, id);
    if (turn === undefined) {
      const frame = { type: "cf_agent_use_chat_response", id, body: "", done: true, replay: true } as const;
      return socket.send(encodeFrame(frame));
    }
    if (turn.status === "held" || turn.status === "accepted" || turn.status === "running") return;
    this.#live.replay(socket, turn, readChunks(host, turn.seq), false);
    socket.send(this.#live.endFrame(turn, true));
  }

  closed(socket: Socket): void {
    this.#parked.delete(socket);
    this.#audience.release(socket);
    this.#left.delete(socket.id);
    this.#left.set(socket.id, this.#chat.running?.row.id);
    for (const id of this.#left.keys()) {
      if (this.#left.size <= MAX_LEFT) return;
      this.#left.delete(id);
    }
  }

  offer(turn: TurnRow): void {
    for (const socket of this.#parked) this.#offer(socket, turn);
    this.#parked.clear();
    this.#remindLater();
  }

  resumed(socket: Socket, turn: TurnRow): boolean {
    return this.#resumed.get(socket) === turn.id;
  }

  dismiss(): void {
    for (const socket of this.#parked) socket.send(encodeFrame({ type: "cf_agent_stream_resume_none" }));
    this.#parked.clear();
    this.#remindLater();
  }

  #offer(socket: Socket, turn: TurnRow, probeId?: string): void {
    this.#audience.withhold(socket);
    socket.send(
      encodeFrame({ type: "cf_agent_stream_resuming", id: turn.id, ...(probeId !== undefined && { probeId }) }),
    );
  }

  #park(socket: Socket, turn: TurnRow, probeId?: string): void {
    this.#parked.add(socket);
    this.#remindLater();
    socket.send(
      encodeFrame({ type: "cf_agent_stream_pending", id: turn.id, ...(probeId !== undefined && { probeId }) }),
    );
  }

  #welcome(socket: Socket): void {
    const returns = this.#left.has(socket.id);
    const missed = this.#left.get(socket.id);
    this.#left.delete(socket.id);
    // Who watched a turn when it was cut off shows it as running until it hears of its end. Before the conversation:
    // what it makes of that end may be wrong. A failed turn is offered to whoever asks, with its error.
    const turn = missed === undefined ? undefined : readTurn(this.#chat.host, missed);
    if (turn?.status === "completed" || turn?.status === "aborted") socket.send(this.#live.endFrame(turn, true));
    this.#live.welcome(socket, returns);
  }

  #tellRecovering(socket: Socket, recovering: boolean, id?: string): void {
    socket.send(encodeFrame({ type: "cf_agent_chat_recovering", recovering, ...(id !== undefined && { id }) }));
  }

  #none(socket: Socket, reason: "idle" | "continuation-owned", probeId: string | undefined): void {
    socket.send(
      encodeFrame({ type: "cf_agent_stream_resume_none", reason, ...(probeId !== undefined && { probeId }) }),
    );
  }

  /** The tab that answered a tool goes on with it; to the others it comes as a broadcast. */
  #ownedByOther(turn: TurnRow, socket: Socket): boolean {
    if (turn.trigger !== "continuation") return false;
    const owner = this.#chat.origins.get(turn.id);
    return owner !== undefined && owner !== socket && owner.open;
  }

  #remindLater(): void {
    this.#cancelReminder?.();
    this.#cancelReminder = undefined;
    if (this.#parked.size === 0) return;
    this.#cancelReminder = this.#clock.after(REMIND_MS, () => {
      const turn = this.#chat.waitingTurns().at(-1);
      if (turn === undefined) return this.dismiss();
      const frame = encodeFrame({ type: "cf_agent_stream_pending", id: turn.id });
      for (const socket of this.#parked) socket.send(frame);
      this.#remindLater();
    });
  }
}
