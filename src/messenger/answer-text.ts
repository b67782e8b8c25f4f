import { applyChunk } from "../message/fold.ts";
import { builderFrom, newBuilder, toMessage } from "../message/builder.ts";
import { tryParseJson } from "../base/json.ts";
import { parseChunk } from "../message/parse-chunk.ts";
import { isTerminal, toolName, toolParts, type UIMessage } from "../message/types.ts";
import type { Sql } from "../port.ts";
import { readChunks } from "../store/stream.ts";
import { readTurn } from "../store/turn.ts";
import { attachmentsOf } from "../tool/action-attachment.ts";
import { isWorkspaceFile } from "./answer-files.ts";

/** The words for ends that have none of their own. An empty text says nothing. */
export interface DeliveryTexts {
  readonly errorResponseText: string;
  readonly interruptedResponseText: string;
  readonly stoppedText: string;
  readonly emptyResponseText: string;
}

/** What an answer says to people: its texts. Reasoning, calls and their results are the agent's own business. */
function textOf({ parts }: Pick<UIMessage, "parts">): string {
  const texts = parts.flatMap((part) => (part.type === "text" && part.text.trim() !== "" ? [part.text.trim()] : []));
  return texts.join("\n\n");
}

/** The same of an answer that is being written: only what is committed. @param stored reads the answer as it is stored */
export function partialText(
  db: Sql,
  turnId: string,
  stored: (answerId: string) => UIMessage | undefined,
): { readonly text: string; readonly tool?: string } {
  const turn = readTurn(db, turnId);
  if (turn === undefined || turn.status !== "running") return { text: "" };
  const base = turn.continuation === 1 && turn.answerId !== null ? stored(turn.answerId) : undefined;
  const builder =
    base === undefined
      ? newBuilder(turn.answerId ?? "answer")
      : builderFrom({ ...base, parts: base.parts.slice(0, turn.baseParts) });
  for (const json of readChunks(db, turn.seq)) {
    const chunk = parseChunk(tryParseJson(json));
    if (chunk !== undefined) applyChunk(builder, chunk);
  }
  const message = toMessage(builder);
  const running = toolParts(message).findLast((part) => !isTerminal(part));
  return { text: textOf(message), ...(running !== undefined && { tool: toolName(running) }) };
}

/**
 * Which parts of an answer are messages of their own: files and attachments.
 * @param renders the app says how attachments look; else only those that are files of the workspace are shown
 */
export function filesAt({ parts }: Pick<UIMessage, "parts">, renders: boolean): number[] {
  return [...parts.entries()].flatMap(([at, part]) => {
    const [attached] = attachmentsOf({ parts: [part] });
    const isShown = part.type === "file" || (attached !== undefined && (renders || isWorkspaceFile(attached)));
    return isShown ? [at] : [];
  });
}

/** What is said when the turn is over. @param hasFiles what the answer has beside its words stands below */
export function endText(
  outcome: string,
  answer: UIMessage | undefined,
  texts: DeliveryTexts,
  hasFiles: boolean,
): string {
  const said = answer === undefined ? "" : textOf(answer);
  // A question stands below, and says what there is to say.
  const asks = answer !== undefined && toolParts(answer).some(({ state }) => state === "approval-requested");
  const end = (words: string) => [said, words].filter((text) => text !== "").join("\n\n");
  if (outcome === "error") return end(texts.errorResponseText);
  if (outcome === "interrupted") return end(texts.interruptedResponseText);
  if (outcome === "aborted") return end(texts.stoppedText);
  if (outcome === "skipped") return "";
  return said === "" && !asks && !hasFiles ? texts.emptyResponseText : said;
}
