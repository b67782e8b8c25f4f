import { readIdentity } from "../../identity.ts";
import type { UIMessage } from "../../message/types.ts";
import { runOfTurnId } from "../../store/run.ts";
import { MAIN_SESSION, readSessionLine } from "../../store/session.ts";
import { isOpen, readTurn } from "../../store/turn.ts";
import type { Chat } from "../../turn/chat.ts";
import { persist } from "../../turn/save.ts";
import { submitMessages } from "../../turn/submissions.ts";
import type { ChildRuns } from "./child-runs.ts";
import type { TurnKeeper } from "./turn-keeper.ts";
import type { AgentToolLifecycleResult, AgentToolMilestone, AgentToolRunInfo } from "./types.ts";

/** How an agent words what its detached runs bring. */
interface Wording {
  formatDetachedCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string;
  formatDetachedMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone): string;
}

/** The turns and the conversation of a chat, for the runs that it asks for. */
export function chatTurnKeeper(agent: Wording, chat: () => Chat, above: ChildRuns): TurnKeeper {
  const find = (turnId: string) => {
    const turn = readTurn(chat().host, turnId);
    return turn !== undefined && isOpen(turn) && turn.cancelled === 0 ? turn : undefined;
  };
  const isGone = (session: string | undefined) =>
    session !== undefined && session !== MAIN_SESSION && readSessionLine(chat().host, session) === undefined;
  const within = (session: string | undefined) => (session === undefined ? {} : { session });
  return {
    isStalled(turnId) {
      const { running } = chat();
      return running?.row.id === turnId && running.stalled && find(turnId) !== undefined;
    },
    async isWanted(turnId) {
      const turn = find(turnId);
      return turn !== undefined && above.wanted(turn);
    },
    sessionOf: (turnId) =>
      (turnId === undefined ? undefined : readTurn(chat().host, turnId)?.session) ?? chat().session,
    runOf: (turnId) => runOfTurnId(chat().host, turnId)?.runId,
    conversation: {
      formatCompletion: (run, result) => agent.formatDetachedCompletion(run, result),
      formatMilestone: (run, milestone) => agent.formatDetachedMilestone(run, milestone),
      narrate(key, text, session) {
        if (isGone(session) || chat().transcript.role(key) !== undefined) return;
        persist(chat(), [said(key, "assistant", text)], within(session));
      },
      react(key, text, metadata, { session, identity }) {
        if (isGone(session)) return;
        const options = { idempotencyKey: key, identity: readIdentity(identity), ...within(session) };
        submitMessages(chat(), [{ ...said(key, "user", text), metadata }], options);
      },
    },
  };
}

function said(id: string, role: "user" | "assistant", text: string): UIMessage {
  return { id, role, parts: [{ type: "text", text }] };
}
