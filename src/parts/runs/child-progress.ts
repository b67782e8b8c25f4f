import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { AgentHost } from "../../port.ts";
import { runOfTurn, type RunRow, setRunMilestones, setRunProgress } from "../../store/run.ts";
import type { AgentProgress } from "../../wire/agent-tool-frames.ts";
import { writeJson } from "../../wire/json.ts";
import type { ChatRoom } from "../../live/chat-room.ts";
import type { AgentToolMilestone, AgentToolProgress, AgentToolProgressSnapshot } from "./types.ts";

/** Reports of one run within this time become one; the last of them wins. */
const COALESCE_MS = 200;

/** What a run reports of itself: progress, which is only shown, and milestones, which are kept. */
export class ChildProgress {
  readonly #host: AgentHost;
  readonly #room: () => ChatRoom;
  #shownAt = Number.NEGATIVE_INFINITY;
  #held: (() => void) | undefined;
  #cancel: (() => void) | undefined;

  constructor(host: AgentHost, room: () => ChatRoom) {
    this.#host = host;
    this.#room = room;
  }

  /** @param chunks how many were told so far @returns the milestone that is named, if one is @throws PerdureError `bad_input` */
  report(run: RunRow, given: AgentToolProgress, persist: boolean, chunks: number): AgentToolMilestone | undefined {
    const progress = checked(given);
    const at = this.#host.clock.now();
    const { milestone } = given;
    const { data: _data, ...plain } = progress;
    const snapshot: AgentToolProgressSnapshot = {
      ...(persist || milestone !== undefined ? progress : plain),
      ...(milestone !== undefined && { milestone }),
      at,
    };
    const store = () => setRunProgress(this.#host, run.runId, writeJson(snapshot, "The progress"));
    if (milestone !== undefined) {
      // What was said before it and is still held back is old news now.
      this.stop();
      const reached = JSON.parse(run.milestones) as AgentToolMilestone[];
      const next = { ...progress, name: milestone, sequence: reached.length, at, chunks };
      this.#host.tx(() => {
        setRunMilestones(this.#host, run.runId, writeJson([...reached, next], "The milestone"));
        store();
      });
      return next;
    }
    this.#held = () => this.#show(run.runId, progress, store);
    const left = this.#shownAt + COALESCE_MS - at;
    if (left <= 0 || (progress.fraction ?? 0) >= 1) this.#release();
    else this.#cancel ??= this.#host.clock.after(left, () => this.#release());
    return undefined;
  }

  /** What was held back is forgotten. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#held = undefined;
  }

  #release(): void {
    const held = this.#held;
    this.stop();
    held?.();
  }

  /** It goes the way of the answer's own chunks, so that it keeps its place among them; it is not stored. */
  #show(runId: string, data: AgentProgress, store: () => void): void {
    const { running } = this.#room().chat;
    // The turn may have ended meanwhile, and another one begun that is not of the run.
    if (running === undefined || runOfTurn(this.#host, running.row.seq)?.runId !== runId) return;
    this.#shownAt = this.#host.clock.now();
    running.log.also(store);
    running.take({ chunk: { type: "data-agent-progress", id: newId(), transient: true, data } });
  }
}

function checked({ fraction, message, phase, data, milestone }: AgentToolProgress): AgentProgress {
  if (fraction !== undefined && !(typeof fraction === "number" && fraction >= 0 && fraction <= 1)) {
    throw new PerdureError("bad_input", "`fraction` must be a number from 0 to 1.");
  }
  if (data !== undefined) writeJson(data, "`data`");
  if (milestone === "") throw new PerdureError("bad_input", "`milestone` must have a name.");
  return {
    ...(fraction !== undefined && { fraction }),
    ...(message !== undefined && { message }),
    ...(phase !== undefined && { phase }),
    ...(data !== undefined && { data }),
  };
}
