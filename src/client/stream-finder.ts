import { newId } from "../base/id.ts";
import type { StreamPendingFrame, StreamResumeNoneFrame, StreamResumingFrame } from "../wire/frames.ts";
import { type ChatConnection, sendFrame } from "./chat-frames.ts";
import { LiveTurn } from "./live-turn.ts";

type Found = StreamResumingFrame | StreamPendingFrame | StreamResumeNoneFrame;

/** The turns that are under way, and those that are over. */
interface KnownTurns {
  readonly turns: Map<string, LiveTurn>;
  hasEnded(id: string): boolean;
}

/**
 * Looks for turns that nobody here follows: on connecting, and when an answered tool call should make a turn go on. Every
 * question is answered at once; an offered stream starts once acknowledged.
 */
export class StreamFinder {
  readonly #connection: ChatConnection;
  readonly #known: KnownTurns;
  #probe: string | undefined;
  #probes = 0;
  /** Whether an answer had been given when it was asked: otherwise the reply says nothing about it. */
  #askedFor = false;
  /** How many questions had been asked when a stream was acknowledged: an offer may come twice for one. */
  readonly #acknowledged = new Map<string, number>();
  /** An answer was given here, and the turn that it makes go on is not there yet. */
  awaiting = false;
  /** What runs, if anything, is known. */
  settled = false;

  constructor(connection: ChatConnection, known: KnownTurns) {
    this.#connection = connection;
    this.#known = known;
  }

  /** Asks whether anything runs. Only with a connection: otherwise it is asked when there is one. */
  ask(): void {
    if (this.#connection.readyState !== 1 || (this.#probe !== undefined && this.#askedFor === this.awaiting)) return;
    this.#askedFor = this.awaiting;
    this.#probe = newId();
    this.#probes++;
    sendFrame(this.#connection, { type: "cf_agent_stream_resume_request", probeId: this.#probe });
  }

  /** The connection is gone, and all that was asked on it. */
  lost(): void {
    this.#probe = undefined;
    this.settled = false;
    this.#acknowledged.clear();
    for (const turn of this.#known.turns.values()) {
      if (turn.reached !== "nowhere" || turn.asked === undefined) turn.stream = "cut";
    }
  }

  answered(frame: Found): void {
    const isAnswer = this.#probe !== undefined && (frame.probeId === this.#probe || frame.probeId === undefined);
    const wanted = this.#probe !== undefined || this.awaiting;
    if (frame.type === "cf_agent_stream_resume_none") {
      if (frame.probeId !== undefined && frame.probeId !== this.#probe) return;
      this.#found();
      if (this.#askedFor || frame.probeId === undefined) this.awaiting = false;
      for (const [id, turn] of this.#known.turns) {
        if (turn.asked === undefined && turn.reached !== "heard" && turn.stream === "live")
          this.#known.turns.delete(id);
      }
      if (frame.reason === "idle") this.askByName();
      return;
    }
    if (frame.id === undefined || this.#known.hasEnded(frame.id)) {
      if (isAnswer) this.#found();
      return;
    }
    const turn = this.#known.turns.get(frame.id) ?? new LiveTurn(frame.id, "others");
    this.#known.turns.set(frame.id, turn);
    // An offer that nobody asked for is followed all the same, as something of others.
    if (wanted && !turn.stopped && turn.whose !== "continued") turn.whose = this.awaiting ? "continued" : "ours";
    this.awaiting = false;
    if (frame.type === "cf_agent_stream_resuming") this.#acknowledge(frame.id);
    if (frame.probeId !== undefined && isAnswer) this.#found();
  }

  /** Nothing blocks turns that were cut off any more: they ended, or the agent never heard of them. Asked by name, they tell. */
  askByName(): void {
    for (const turn of this.#known.turns.values()) {
      if (turn.stream === "live") continue;
      if (!turn.isAccepted) turn.asked?.request();
      sendFrame(this.#connection, { type: "cf_agent_stream_resume_ack", id: turn.id });
    }
  }

  #found(): void {
    this.#probe = undefined;
    this.settled = true;
  }

  #acknowledge(id: string): void {
    if (this.#acknowledged.get(id) === this.#probes) return;
    this.#acknowledged.set(id, this.#probes);
    sendFrame(this.#connection, { type: "cf_agent_stream_resume_ack", id });
  }
}
