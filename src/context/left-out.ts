import type { ModelMessage } from "ai";
import { isTerminal, isToolPart, type ToolPart, toolName, type UIMessage } from "../message/types.ts";
import type { CompactionRow } from "../store/compaction.ts";
import type { LeftOutItem } from "../wire/session-types.ts";
import { noteInstead } from "./cleared.ts";
import { type CountText, unitsOfText } from "./text-units.ts";
import { unitsOfOutput } from "./ui-units.ts";
import { unitsOfContentPart } from "./units.ts";
import { callKey, type ContextView } from "./view.ts";

/** Something that a request does not show, and about how much of it there is. */
export type LeftOut = Omit<LeftOutItem, "tokens" | "cost"> & { readonly units: number };

const COVERED = "what was said before";

/** The outputs that a view leaves out, oldest first. @param most how much of one output the model would be shown, in units */
export function leftOutOutputs(view: ContextView, most: number, count: CountText = unitsOfText): LeftOut[] {
  return view.nodes.flatMap(({ seq, message, from, pinned }) => {
    if (message.role !== "assistant" || pinned) return [];
    return message.parts.slice(from).flatMap((part): LeftOut[] => {
      if (!isToolPart(part) || part.state !== "output-available" || !isTerminal(part)) return [];
      const key = callKey(seq, part.toolCallId);
      return view.cleared.has(key)
        ? [leftOutOutput(view, key, message, part, (note) => unitsBack(part, note, most, count))]
        : [];
    });
  });
}

/** What an output weighs more than the note in its place. */
function unitsBack(part: ToolPart, note: string, most: number, count: CountText): number {
  return Math.max(0, Math.min(unitsOfOutput(part, count), most) - count(note));
}

function leftOutOutput(
  view: ContextView,
  key: string,
  message: UIMessage,
  part: ToolPart,
  unitsOver: (note: string) => number,
): LeftOut {
  const newer = view.newer?.get(key);
  const compaction = view.prunedBy?.get(key);
  const note = noteInstead(part, message.id, newer);
  return {
    ...{ kind: newer === undefined ? "cleared" : "superseded", id: message.id, call: part.toolCallId },
    ...{ label: toolName(part), units: unitsOver(note) },
    ...(newer !== undefined && { newer: newer.map((one) => ({ id: one.message, call: one.call })) }),
    ...(compaction !== undefined && { compaction }),
  };
}

/** Outputs that are shown in part. @param pairs what is sent, what it would be whole, and the stored message it is from. */
export function boundedOutputs(
  pairs: readonly { readonly sent: ModelMessage; readonly whole: ModelMessage; readonly id: string | undefined }[],
  count: CountText = unitsOfText,
): LeftOut[] {
  return pairs.flatMap(({ sent, whole, id }) => {
    if (sent === whole || sent.role !== "tool" || whole.role !== "tool") return [];
    return whole.content.flatMap((part, index): LeftOut[] => {
      const shown = sent.content[index];
      if (part.type !== "tool-result" || shown === undefined || shown === part) return [];
      const units = unitsOfContentPart(part, count) - unitsOfContentPart(shown, count);
      if (units <= 0) return [];
      return [{ kind: "bounded", ...(id !== undefined && { id }), call: part.toolCallId, label: part.toolName, units }];
    });
  });
}

/** What summaries (the one in effect and those it took in) stand for, newest first. `factor`: tokens per unit for the model. */
export function summarised(
  rows: readonly CompactionRow[],
  factor: number,
  idOf: (seq: number) => string | undefined,
): LeftOut[] {
  return rows.map(({ id: compaction, at, tokensBefore, tokensAfter }) => {
    const id = idOf(at);
    const units = Math.max(0, tokensBefore - (tokensAfter ?? tokensBefore)) / factor;
    return { kind: "summarised", ...(id !== undefined && { id }), label: COVERED, units, compaction };
  });
}
