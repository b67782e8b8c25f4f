import { cutText } from "../../message/cut-value.ts";
import type { ToolPart, UIMessageChunk } from "../../message/types.ts";
import { digestOf } from "../../tool/digest.ts";
import type { ParkedQuestion } from "../../tool/park.ts";
import type { StepRun } from "./step-run.ts";

/** What a person is shown of what would be done. */
const MAX_REASON_BYTES = 2_000;

/** Asks a person about a call. */
export function question(part: ToolPart, reason: string | undefined, approvalId = part.toolCallId): UIMessageChunk {
  const { toolCallId } = part;
  return {
    type: "tool-approval-request",
    approvalId,
    toolCallId,
    ...(reason !== undefined && { reason }),
  };
}

/** The call waits for a person from now on, and nothing of it stays in memory. @param input what the tool was given */
export async function parkCall(run: StepRun, part: ToolPart, input: unknown, asked: ParkedQuestion): Promise<void> {
  const { desk, active, plan } = run;
  const { toolCallId } = part;
  const messageId = active.builder.id;
  const digest = await digestOf(asked.tool, asked.input);
  if (run.signal.aborted) return;
  const { waitMs = desk.hooks.settings().approvalTimeoutMs } = asked;
  const expiresAt = waitMs > 0 ? desk.host.clock.now() + waitMs : null;
  const row = plan.book.find(messageId, toolCallId);
  const reason = asked.summary ?? `${asked.tool} ${JSON.stringify(asked.input ?? {})}`;
  // Each question has its own name: an answer to an earlier one is none to this.
  const approvalId = `${toolCallId}:${row?.attempts ?? 1}`;
  // It goes on with what it began with.
  const parked = { ...asked, digest, expiresAt, ...(input !== part.input && { given: input }) };
  desk.commit(() => {
    active.take({ chunk: question(part, cutText(reason, MAX_REASON_BYTES), approvalId) });
    active.log.flush("sync", () => plan.book.park({ messageId, toolCallId }, parked));
  });
}
