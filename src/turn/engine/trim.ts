import { openTurns, messageIdsOf } from "../../store/turn.ts";
import type { Desk } from "./desk.ts";

/**
 * Deletes the oldest messages of a session beyond the app's limit, in the caller's transaction. What waits for its answer and the
 * answer under way stay as long as they are needed: without them a turn would answer something else, or nothing.
 */
export function trimTranscript({ host, transcripts, running }: Desk, session: string): void {
  transcripts.of(session).trim(() => {
    const keep = new Set(openTurns(host).flatMap(messageIdsOf));
    if (running !== undefined && !running.dropped) keep.add(running.builder.id);
    return keep;
  });
}
