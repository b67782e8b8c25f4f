import { isRecord, tryParseJson } from "../../base/json.ts";
import { markSteered } from "../../message/steered.ts";
import type { UIMessage, UIMessageChunk } from "../../message/types.ts";
import { readTurn, steeringTurns, steerTurn, type TurnRow, messageIdsOf } from "../../store/turn.ts";
import type { Turn } from "../engine/turn.ts";
import type { Engine } from "../engine/engine.ts";
import { waitingInput } from "./inbox.ts";

/*
 * Steering
 *
 * With the policy `steer`, a message sent while a turn runs is accepted as a waiting turn of its own, and marked. Between two
 * steps the running turn takes what is marked: in one commit the waiting turn ends with a receipt, its message joins the answer,
 * and the model call that will read it is noted. So what was taken was in a request, and what was not is simply the next turn.
 */

/** A message that the running turn may take. A turn that brings several messages is here once for each. */
export interface Steer {
  readonly turn: TurnRow;
  readonly message: UIMessage;
}

/** Which model call was the first to read a message. */
export interface SteerReceipt {
  /** The turn that took it. */
  readonly turnId: string;
  readonly step: number;
  /** The call's name in the ledger. */
  readonly callId: string;
}

type SteeringChunk = Extract<UIMessageChunk, { type: "steering-message" }>;

/** Messages that wait for a turn to take them, in their order. One query when there are none, so ask at every step. */
export function waitingSteers(all: Engine, { row, cutBy }: Turn): readonly Steer[] {
  if (cutBy === "cleared" || steeringTurns(all.host, row.session).length === 0) return [];
  return waitingInput(all).flatMap(({ turn, messages }) => {
    // What the model could not be shown as part of an answer has a turn of its own. All of a turn is taken, or nothing.
    const isOther = turn.steer === 0 || turn.session !== row.session;
    if (isOther || messages.some((message) => contentOf(message).length === 0)) return [];
    return messages.map((message) => ({ turn, message }));
  });
}

/**
 * Takes every marked message into the answer of `active`; their turns end with the receipt. Call it in the transaction
 * (`all.commit`) that reserves the receipt's model call, give the chunks to {@link Turn.take} and flush the log there; then build
 * the request from the answer. After the commit call {@link closeSteers}.
 * @returns the chunks that put the messages into the answer.
 */
export function takeSteers(all: Engine, active: Turn, receipt: SteerReceipt): UIMessageChunk[] {
  const { host } = all;
  const transcript = all.transcripts.of(active.row.session);
  const steers = waitingSteers(all, active);
  if (steers.length === 0) return [];
  const answerId = active.builder.id;
  const now = host.clock.now();
  for (const seq of new Set(steers.map(({ turn }) => turn.seq))) {
    const ids = steers.filter(({ turn }) => turn.seq === seq).map(({ message }) => message.id);
    steerTurn(host, seq, JSON.stringify(ids), JSON.stringify(receipt), now);
  }
  const taken = new Set(steers.map(({ message }) => message.id));
  for (const { message } of steers) transcript.put(markSteered(message, answerId));
  // In front of the answer: a conversation whose last answer is not last could not be gone on with.
  const behind = transcript.idsAfter(answerId).filter((id) => !taken.has(id));
  if (transcript.role(answerId) !== undefined) transcript.moveToEnd(new Set([answerId, ...behind]));
  return steers.map(({ message }) => toChunk(message));
}

/** Tells everyone what was taken. Call it after the commit, with the turns {@link waitingSteers} named before it. */
export function closeSteers(all: Engine, turns: readonly TurnRow[]): void {
  for (const id of new Set(turns.map((turn) => turn.id))) {
    const row = readTurn(all.host, id);
    if (row === undefined || row.receipt === null) continue;
    for (const messageId of messageIdsOf(row)) {
      const stored = all.transcripts.of(row.session).get(messageId);
      if (stored !== undefined) all.output.messageUpdated(row.session, stored);
    }
    all.close(row, "completed");
  }
}

/** Where the messages of a request were taken to; undefined while they wait, or when they had a turn of their own. */
export function readReceipt({ host }: Pick<Engine, "host">, requestId: string): SteerReceipt | undefined {
  const receipt = tryParseJson(readTurn(host, requestId)?.receipt ?? "");
  if (!isRecord(receipt)) return undefined;
  const { turnId, step, callId } = receipt;
  if (typeof turnId !== "string" || typeof step !== "number" || typeof callId !== "string") return undefined;
  return { turnId, step, callId };
}

function toChunk(message: UIMessage): SteeringChunk {
  return { type: "steering-message", id: message.id, parts: contentOf(message) };
}

/** What of a message can be a part of an answer. */
function contentOf({ parts }: UIMessage): SteeringChunk["parts"] {
  const content: SteeringChunk["parts"] = [];
  for (const part of parts) if (part.type === "text" || part.type === "file") content.push(part);
  return content;
}
