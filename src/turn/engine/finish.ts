import { PerdureError } from "../../base/error.ts";
import { closeStreaming, repairMessage } from "../../message/repair.ts";
import { toolName, toolParts, type UIMessage } from "../../message/types.ts";
import { deleteChunks } from "../../store/stream.ts";
import { noteQuestion } from "../../store/tool-call.ts";
import { settleTurn, type TurnRow } from "../../store/turn.ts";
import { ActiveTurn } from "./active-turn.ts";
import type { TurnEnd } from "./chat-types.ts";
import type { Desk } from "./desk.ts";
import { passWaiting } from "./place.ts";
import { repairsOf } from "./repair-last.ts";
import { needlessContinuations } from "../intake/tool-answers.ts";
import { trimTranscript } from "./trim.ts";

/**
 * Stores the end of a turn: the answer, the end of its log and the outcome are one commit. A turn that was
 * cleared away writes nothing. The log of a failed turn stays until the next request, so that a client that
 * comes back sees what there was, and the error.
 * @returns turns that became needless and ended with it.
 */
export function finish(desk: Desk, active: ActiveTurn, end: TurnEnd): readonly TurnRow[] {
  const { host } = desk;
  const { row, builder } = active;
  const transcript = desk.transcripts.of(row.session);
  if (active.dropped) return [];
  // A call that was cut short must not look as if it waited for the client to run it.
  active.close({ ...repairsOf(desk), keepPending: end.status === "completed" });
  active.endTexts();
  let needless: readonly TurnRow[] = [];
  active.log.flush("sync", () => {
    const message = closeStreaming(active.message);
    const isStored = transcript.role(builder.id) !== undefined;
    if (message.parts.length > 0) {
      transcript.put(message, row.identity);
      // That it was put in front of what waits may have been undone.
      if (!isStored && !active.continuation) passWaiting(host, transcript, row, builder.id);
    } else if (!active.continuation && isStored) transcript.remove(builder.id);
    if (end.status !== "error") {
      desk.output.closing?.(row, () => active.log.read());
      deleteChunks(host, row.seq);
    }
    settleTurn(host, row.seq, end.status, end.error ?? null, host.clock.now());
    if (end.status === "completed") needless = needlessContinuations(desk, row, message);
    for (const turn of needless) settleTurn(host, turn.seq, "skipped", null, host.clock.now());
    const { approvalTimeoutMs } = desk.hooks.settings();
    for (const part of approvalTimeoutMs > 0 ? toolParts(message) : []) {
      if (part.state !== "approval-requested") continue;
      const call = { messageId: message.id, toolCallId: part.toolCallId, turnId: row.id, tool: toolName(part) };
      noteQuestion(host, call, host.clock.now(), host.clock.now() + approvalTimeoutMs);
    }
    desk.hooks.settled?.(message, row);
    trimTranscript(desk, row.session);
  });
  return needless;
}

/** The error of a turn whose end cannot be stored. */
export function notSaved(cause: unknown): PerdureError {
  return new PerdureError("bad_state", "Failed to save the response.", { cause });
}

/**
 * For a turn whose end cannot be stored: stores that it failed, with as much of the answer as clients have seen if
 * there is room for it, else with what is stored of it. It must not be tried again: that would be paid for again, and
 * fail again. Its calls have an end in any case: nobody will run them, and who answers one would wait for the others.
 * @returns false when nothing at all can be stored.
 */
export function abandon(desk: Desk, active: ActiveTurn, error: string): boolean {
  const { host } = desk;
  const { row } = active;
  const transcript = desk.transcripts.of(row.session);
  active.log.close();
  const stored = () => transcript.get(active.builder.id);
  const seen = () => {
    const again = new ActiveTurn(host, transcript, desk.output, { ...row, attempts: row.attempts + 1 }, undefined);
    return again.empty ? stored() : again.message;
  };
  const settle = (kept: () => UIMessage | undefined) =>
    desk.commit(() => {
      const answer = kept();
      deleteChunks(host, row.seq);
      const message = answer && repairMessage(answer);
      if (message !== undefined) {
        transcript.put(message, row.identity);
        // That it stands in front of what waits may have been undone.
        if (!active.continuation) passWaiting(host, transcript, row, message.id);
      }
      settleTurn(host, row.seq, "error", error, host.clock.now());
      desk.hooks.settled?.(message ?? { ...active.message, parts: [] }, row);
    });
  for (const kept of [seen, stored, () => undefined]) {
    try {
      settle(kept);
      return true;
    } catch (thrown) {
      desk.hooks.failed(thrown, { stage: "save", requestId: row.id });
      // What is stored has room already. If not even that is taken, calls would stay open: later, then.
      if (kept === stored && stored() !== undefined && isFull(thrown)) return false;
    }
  }
  return false;
}

function isFull(thrown: unknown): boolean {
  return thrown instanceof PerdureError && thrown.code === "disk_full";
}
