import { newId } from "../../base/id.ts";
import { readIdentity } from "../../base/identity.ts";
import { BACKGROUND_METADATA } from "../../message/told.ts";
import type { UIMessage } from "../../message/types.ts";
import { type BackgroundRow, settleBackgroundCall } from "../../store/background-call.ts";
import { MAIN_SESSION, ownerIdOf, readSessionLine } from "../../store/session.ts";
import { type BackgroundEnd, describeEnd } from "../../tool/receipt.ts";
import type { Engine } from "../engine/engine.ts";
import { submitMessages } from "../intake/submissions.ts";
import { noteOf } from "./background-note.ts";

/**
 * Writes down the end of a call, and has the model of its session answer a message about it, in the caller's transaction.
 * Where the session is gone there is only the row. @param keep what it returned stays: something else is told.
 * @returns false when it had ended before: then nothing has changed
 */
export function settleAndTell(all: Engine, row: BackgroundRow, end: BackgroundEnd, keep: boolean): boolean {
  const { host } = all;
  const note = noteOf(row);
  if (!settleBackgroundCall(host, row, host.clock.now(), keep)) return false;
  // A view may have been closed since: then those are told who see what it was a view of.
  const session = [note.session, ownerIdOf(host, note.session)].find((one) => isThere(all, one));
  if (session === undefined) return true;
  const { toolCallId, messageId, tool: toolName } = row;
  const metadata = { [BACKGROUND_METADATA]: { toolCallId, messageId, toolName, status: end.status } };
  const text = describeEnd(toolCallId, toolName, end);
  const message: UIMessage = { id: newId("msg"), role: "user", parts: [{ type: "text", text }], metadata };
  const identity = readIdentity(note.identity);
  const options = { session, metadata, isBounded: true, ...(identity !== undefined && { identity }) };
  submitMessages(all, [message], options);
  return true;
}

function isThere({ host }: Engine, session: string): boolean {
  return session === MAIN_SESSION || readSessionLine(host, session) !== undefined;
}
