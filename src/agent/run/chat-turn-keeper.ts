import { readIdentity } from "../../base/identity.ts";
import type { UIMessage } from "../../message/types.ts";
import { BACKGROUND_METADATA } from "../../message/told.ts";
import { readAgentRun } from "../../store/agent-run.ts";
import { readBackgroundNote } from "../../store/background-call.ts";
import { lastRun, runOfTurnId } from "../../store/run.ts";
import { MAIN_SESSION, readSessionLine } from "../../store/session.ts";
import { isOpen, readTurn } from "../../store/turn.ts";
import { persist } from "../../turn/intake/accept.ts";
import type { Conversations } from "../../turn/engine/conversations.ts";
import { submitMessages } from "../../turn/intake/submissions.ts";
import { isRecord, tryParseJson } from "../../message/json.ts";
import type { ChildRuns } from "./child-runs.ts";
import { type Lineage, readLineage } from "./lineage.ts";
import type { TurnKeeper } from "./turn-keeper.ts";
import type { AgentToolLifecycleResult, AgentToolMilestone, AgentToolRunInfo } from "./types.ts";

/** How an agent words what its detached runs bring. */
interface Wording {
  formatDetachedCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string;
  formatDetachedMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone): string;
}

/** The turns and the conversation of a chat, for the runs that it asks for. */
export function chatTurnKeeper(agent: Wording, chat: () => Conversations, above: ChildRuns): TurnKeeper {
  const find = (turnId: string) => {
    const turn = readTurn(chat().host, turnId);
    return turn !== undefined && isOpen(turn) && turn.cancelled === 0 ? turn : undefined;
  };
  const isGone = (session: string | undefined) =>
    session !== undefined && session !== MAIN_SESSION && readSessionLine(chat().host, session) === undefined;
  const within = (session: string | undefined) => (session === undefined ? {} : { session });
  return {
    isStalled(turnId) {
      const running = chat().turn(turnId);
      return running?.cutBy === "stalled" && find(turnId) !== undefined;
    },
    async isWanted(turnId) {
      const turn = find(turnId);
      return turn !== undefined && above.wanted(turn);
    },
    sessionOf: (turnId) =>
      (turnId === undefined ? undefined : readTurn(chat().host, turnId)?.session) ?? chat().session,
    lineageOf: (turnId) => lineageIn(chat(), turnId),
    runOf: (turnId) => runOfTurnId(chat().host, turnId)?.runId,
    conversation: {
      formatCompletion: (run, result) => agent.formatDetachedCompletion(run, result),
      formatMilestone: (run, milestone) => agent.formatDetachedMilestone(run, milestone),
      narrate(key, text, session) {
        const where = session ?? chat().session;
        if (isGone(session) || chat().transcripts.of(where).role(key) !== undefined) return;
        persist(chat(), [said(key, "assistant", text)], { session: where });
      },
      react(key, text, metadata, { session, identity }) {
        if (isGone(session)) return;
        const options = { idempotencyKey: key, identity: readIdentity(identity), isBounded: true, ...within(session) };
        submitMessages(chat(), [{ ...said(key, "user", text), metadata }], options);
      },
    },
  };
}

/** Of a turn that answers the end of a call that went on in the background. */
function lineageOfCall(
  host: Conversations["host"],
  { messageId, toolCallId }: Record<string, unknown>,
): Lineage | undefined {
  if (typeof messageId !== "string" || typeof toolCallId !== "string") return undefined;
  const note = tryParseJson(readBackgroundNote(host, messageId, toolCallId) ?? "null");
  return isRecord(note) && typeof note.lineage === "string" ? readLineage(note.lineage) : undefined;
}

/** Of a turn that a run was taken for; of one that answers the end of a detached run; of an agent made for a run. */
function lineageIn(
  { host, transcripts, session: usual }: Conversations,
  turnId: string | undefined,
): Lineage | undefined {
  if (host.blank) return undefined;
  const own = turnId === undefined ? undefined : runOfTurnId(host, turnId);
  if (own !== undefined) return readLineage(own.lineage);
  const session = turnId === undefined ? undefined : readTurn(host, turnId)?.session;
  const transcript = transcripts.of(session ?? usual);
  for (const id of turnId === undefined ? [] : askingMessages(host, turnId)) {
    const metadata = transcript.get(id)?.metadata;
    const cause = isRecord(metadata) ? metadata.agentToolRunId : undefined;
    const lineage = typeof cause === "string" ? readLineage(readAgentRun(host, cause)?.lineage) : undefined;
    if (lineage !== undefined) return { ...lineage, chain: lineage.chain.slice(0, -1) };
    const call = isRecord(metadata) ? metadata[BACKGROUND_METADATA] : undefined;
    const later = isRecord(call) ? lineageOfCall(host, call) : undefined;
    if (later !== undefined) return later;
  }
  const made = readLineage(lastRun(host)?.lineage);
  if (made === undefined || turnId === undefined) return made;
  // Somebody else has asked: what comes of it is counted here, and is as deep as it is.
  return { ...made, root: host.path.length, key: turnId, at: host.clock.now() };
}

function askingMessages(host: Conversations["host"], turnId: string): string[] {
  const ids = tryParseJson(readTurn(host, turnId)?.messageIds ?? "[]");
  return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
}

function said(id: string, role: "user" | "assistant", text: string): UIMessage {
  return { id, role, parts: [{ type: "text", text }] };
}
