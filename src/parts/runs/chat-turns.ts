import { readIdentity } from "../../base/identity.ts";
import type { UIMessage } from "../../message/types.ts";
import { BACKGROUND_METADATA } from "../../message/told-line.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { readAgentRun } from "../../store/agent-run.ts";
import { readBackgroundNote } from "../../store/background-call.ts";
import { lastRun, runOfTurnId } from "../../store/run.ts";
import { isOpen, readTurn, type TurnRow } from "../../store/turn.ts";
import { persist } from "../../turn/intake/accept.ts";
import type { Conversations } from "../../turn/engine/conversations.ts";
import { submitMessages } from "../../turn/intake/submissions.ts";
import { isRecord, tryParseJson } from "../../base/json.ts";
import type { ChildRuns } from "./child-runs.ts";
import { type Lineage, readLineage } from "./lineage.ts";
import type { OwnTurns, ReactingTo, RunConversation } from "./own-turns.ts";
import type { AgentToolLifecycleResult, AgentToolMilestone, AgentToolRunInfo } from "./types.ts";
import { hasSession } from "../../session/session-changes.ts";

/** How an agent words what its detached runs bring. */
export interface RunWording {
  formatDetachedCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string;
  formatDetachedMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone): string;
}

/** Where the turns are. */
interface TurnSource {
  readonly chat: Conversations;
  readonly runs: ChildRuns;
  readonly whyNowhere: (place: unknown) => Promise<string | undefined>;
  readonly steps: { readonly ledger: Ledger; readonly background: { hasOpen(turnId: string): boolean } } | undefined;
}

/** The turns and the conversation of a chat, for the runs that it asks for. */
export class ChatTurns implements OwnTurns, RunConversation {
  readonly #agent: RunWording;
  readonly #of: TurnSource;

  constructor(agent: RunWording, of: TurnSource) {
    this.#agent = agent;
    this.#of = of;
  }

  get conversation(): RunConversation {
    return this;
  }

  get ledger(): Ledger | undefined {
    return this.#of.steps?.ledger;
  }

  goesOn(turnId: string): boolean {
    return this.#of.steps?.background.hasOpen(turnId) ?? false;
  }

  isStalled(turnId: string): boolean {
    return this.#of.chat.turn(turnId)?.cutBy === "stalled" && this.#find(turnId) !== undefined;
  }

  async isWanted(turnId: string): Promise<boolean> {
    if (this.goesOn(turnId)) return true;
    const turn = this.#find(turnId);
    return turn !== undefined && this.#of.runs.wanted(turn);
  }

  sessionOf(turnId: string | undefined): string {
    const { chat } = this.#of;
    return (turnId === undefined ? undefined : readTurn(chat.host, turnId)?.session) ?? chat.session;
  }

  lineageOf(turnId: string | undefined): Lineage | undefined {
    return lineageIn(this.#of.chat, turnId);
  }

  runOf(turnId: string): string | undefined {
    return runOfTurnId(this.#of.chat.host, turnId)?.runId;
  }

  whyNowhere(place: unknown): Promise<string | undefined> {
    return this.#of.whyNowhere(place);
  }

  formatCompletion(run: AgentToolRunInfo, result: AgentToolLifecycleResult): string {
    return this.#agent.formatDetachedCompletion(run, result);
  }

  formatMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone): string {
    return this.#agent.formatDetachedMilestone(run, milestone);
  }

  narrate(key: string, text: string, session: string | undefined): void {
    const { chat } = this.#of;
    const where = session ?? chat.session;
    if (this.#isGone(session) || chat.transcripts.of(where).role(key) !== undefined) return;
    persist(chat, [said(key, "assistant", text)], { session: where });
  }

  react(
    key: string,
    text: string,
    metadata: Record<string, unknown>,
    { session, identity, deliverTo }: ReactingTo,
  ): void {
    if (this.#isGone(session)) return;
    const options = { idempotencyKey: key, identity: readIdentity(identity), isBounded: true };
    const where = { ...(session !== undefined && { session }), ...(deliverTo !== undefined && { deliverTo }) };
    submitMessages(this.#of.chat, [{ ...said(key, "user", text), metadata }], { ...options, ...where });
  }

  #find(turnId: string): TurnRow | undefined {
    const turn = readTurn(this.#of.chat.host, turnId);
    return turn !== undefined && isOpen(turn) && turn.cancelled === 0 ? turn : undefined;
  }

  #isGone(session: string | undefined): boolean {
    return session !== undefined && !hasSession(this.#of.chat.host, session);
  }
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
