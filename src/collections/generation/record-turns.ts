import type { ChatMiddleware, ChatMiddlewareContext, ModelMessage } from "@tanstack/ai";
import { messageKey } from "./turn-log.ts";
import type { TurnLog } from "./turn-log.ts";

/** Keeps the turns of a run of `chat()` as they come. */
export interface TurnRecorder {
  readonly middleware: ChatMiddleware;
  /** Stores the turns that are not stored yet. */
  save(): Promise<void>;
}

/**
 * Stores each turn before its tools run and before the model is called again, so that a run which ends in between
 * can be taken up without asking the model twice for what it has said.
 * @param flush stores the chunks so far and tells how many there are: a turn is never stored before its chunks.
 */
export function recordTurns(turnLog: TurnLog, flush: () => Promise<number>): TurnRecorder {
  let context: ChatMiddlewareContext | undefined;
  const given = new Set<string>();

  async function save(): Promise<void> {
    const mine = (context?.messages ?? []).filter((message) => isTurn(message) && !given.has(messageKey(message)));
    if (mine.length > 0) await turnLog.add(mine, await flush());
  }

  return {
    save,
    middleware: {
      name: "perdure-turns",
      onStart(started) {
        context = started;
        for (const message of started.messages) given.add(messageKey(message));
      },
      async onInterruptBoundary({ phase }) {
        if (phase === "beforeTools" || phase === "beforeModel") await save();
        return undefined;
      },
    },
  };
}

function isTurn(message: Pick<ModelMessage, "role">): boolean {
  return message.role === "assistant" || message.role === "tool";
}
