import { cutText } from "../message/cut-value.ts";
import { isRecord } from "../base/json.ts";

/** What stands for the output of a call that goes on in the background. */
export interface BackgroundReceipt {
  readonly background: "running";
  /** The call that it is about. */
  readonly toolCallId: string;
  /** For the model. */
  readonly note: string;
}

/** How a call in the background ended. */
export type BackgroundEnd =
  | { readonly status: "completed"; readonly output: unknown }
  | { readonly status: "error"; readonly error: string }
  /** It was cut and may not run again. */
  | { readonly status: "interrupted"; readonly error: string }
  /** Somebody has stopped it. */
  | { readonly status: "stopped"; readonly reason: string | undefined };

const MAX_REASON_BYTES = 1_000;

/** What the model reads in the place of a result. */
export function receiptOf(toolCallId: string): BackgroundReceipt {
  const note =
    `The work goes on in the background as call ${toolCallId}. Its result comes later, as a message of its own. ` +
    "Do not wait for it and do not call the tool again for it: go on with something else, or say that it is under way.";
  return { background: "running", toolCallId, note };
}

/** Whether an output is a receipt, for clients that show such calls. */
export function isBackgroundReceipt(output: unknown): output is BackgroundReceipt {
  return isRecord(output) && output.background === "running" && typeof output.toolCallId === "string";
}

/** What the model reads when such a call has ended. */
export function describeEnd(toolCallId: string, tool: string, end: BackgroundEnd): string {
  const call = `The call ${toolCallId} of "${tool}", which went on in the background,`;
  switch (end.status) {
    case "completed": {
      const { output } = end;
      return `${call} is done. Its output:\n\n${typeof output === "string" ? output : JSON.stringify(output ?? null, null, 2)}`;
    }
    case "error":
      return `${call} failed: ${end.error}`;
    case "interrupted":
      return `${call} was cut off: ${end.error}`;
    case "stopped":
      return `${call} was stopped.${end.reason === undefined ? "" : ` Reason: ${cutText(end.reason, MAX_REASON_BYTES)}`}`;
  }
}
