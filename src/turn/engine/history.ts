import { repairMessage } from "../../message/repair.ts";
import { isPending, isToolPart, type UIMessage } from "../../message/types.ts";
import type { Transcript } from "../../session/transcript.ts";
import type { Desk } from "./desk.ts";
import { waitingMessages } from "./place.ts";
import { isApproved, repairsOf } from "./repair-last.ts";

type Reading = Pick<Desk, "host" | "running" | "hooks"> & { readonly transcript: Transcript };

/**
 * The conversation as the app and the model see it, from the newest message up: an answer that has only begun is not in
 * it, and while a turn runs, neither is what waits for a turn of its own. Stop as soon as you have enough: the way may be
 * long.
 */
export function* visibleUp({ host, transcript, running, hooks }: Reading): Generator<UIMessage> {
  if (running === undefined || running.dropped) {
    for (const { message } of transcript.up()) yield message;
    return;
  }
  const { id } = running.builder;
  const waiting = waitingMessages(host, running.row, () => transcript.unanswered(id));
  // What was approved runs first, whatever was said behind it.
  const behind = running.continuation && running.builder.parts.some(isApproved) ? transcript.unanswered() : [];
  for (const one of behind) waiting.add(one);
  for (const entry of transcript.up()) {
    if (waiting.has(entry.id) || (entry.id === id && running.empty)) continue;
    yield entry.id === id ? running.message : withEnds(entry.message, hooks);
  }
}

/** An answer of the session that this one is a fork of may wait for something still. The model wants an end of each call. */
function withEnds(message: UIMessage, hooks: Desk["hooks"]): UIMessage {
  const waits = message.role === "assistant" && message.parts.some((part) => isToolPart(part) && isPending(part));
  return waits ? repairMessage(message, repairsOf({ hooks })) : message;
}

/** The conversation of any session as the app sees it, oldest first. */
export function messagesIn({ host, transcripts, running, hooks }: Desk, session: string): UIMessage[] {
  const own = running?.row.session === session ? running : undefined;
  return [...visibleUp({ host, transcript: transcripts.of(session), running: own, hooks })].reverse();
}
