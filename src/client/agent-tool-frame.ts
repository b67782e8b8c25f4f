import { tryParseJson, isRecord } from "../base/json.ts";
import { parseChunk } from "../message/parse-chunk.ts";
import type { UIMessageChunk } from "../message/types.ts";
import type { AgentToolEventFrame } from "../wire/agent-tool-frames.ts";
import type { JsonObject } from "../wire/json.ts";
import type { AgentToolRunState } from "./agent-tool-types.ts";
import { readMilestone, readProgress } from "./agent-tool-progress.ts";

/** An event as it was heard: what the wire has, with the chunk read. */
type HeardEvent =
  | ({ readonly kind: "started" } & Pick<
      AgentToolRunState,
      "runId" | "agentType" | "inputPreview" | "order" | "display"
    >)
  | { readonly kind: "chunk"; readonly runId: string; readonly chunk: UIMessageChunk }
  | { readonly kind: "finished"; readonly runId: string; readonly summary: string }
  | { readonly kind: "error"; readonly runId: string; readonly error: string }
  | { readonly kind: "aborted"; readonly runId: string; readonly reason: string | undefined }
  | {
      readonly kind: "interrupted";
      readonly runId: string;
      readonly error: string;
      readonly reason: string | undefined;
      readonly childStillRunning: boolean | undefined;
    };

/** A frame about a run. */
export interface HeardFrame {
  readonly parentToolCallId: string | undefined;
  readonly event: HeardEvent;
  /** The same for an event of a run and its replay, and for no other event of that run. */
  readonly key: string | number;
}

const TYPE: AgentToolEventFrame["type"] = "agent-tool-event";

/** Reads what came from the server; undefined when it is not about a run, or makes no sense. Never throws. */
export function readAgentToolFrame(data: unknown): HeardFrame | undefined {
  if (typeof data !== "string" || !data.includes(`"${TYPE}"`)) return undefined;
  const frame = tryParseJson(data);
  if (!isRecord(frame) || frame.type !== TYPE || !isRecord(frame.event)) return undefined;
  const event = readEvent(frame.event);
  if (event === undefined) return undefined;
  const key = event.kind === "chunk" ? chunkKey(event.chunk, frame, frame.event) : JSON.stringify(frame.event);
  if (key === undefined) return undefined;
  return { parentToolCallId: text(frame.parentToolCallId), event, key };
}

function readEvent(event: JsonObject): HeardEvent | undefined {
  const runId = text(event.runId);
  if (runId === undefined || runId === "") return undefined;
  switch (event.kind) {
    case "started":
      return started(runId, event);
    case "chunk": {
      const chunk = parseChunk(tryParseJson(text(event.body) ?? ""));
      return chunk && { kind: "chunk", runId, chunk };
    }
    case "finished":
      return { kind: "finished", runId, summary: text(event.summary) ?? "" };
    case "error":
      return { kind: "error", runId, error: text(event.error) ?? "" };
    case "aborted":
      return { kind: "aborted", runId, reason: text(event.reason) };
    case "interrupted": {
      const { childStillRunning: still } = event;
      const childStillRunning = typeof still === "boolean" ? still : undefined;
      const error = text(event.error) ?? "";
      return { kind: "interrupted", runId, error, reason: text(event.reason), childStillRunning };
    }
    default:
      // The server may be newer than this.
      return undefined;
  }
}

function started(runId: string, event: JsonObject): HeardEvent | undefined {
  const agentType = text(event.agentType);
  if (agentType === undefined) return undefined;
  const { inputPreview, display } = event;
  return {
    kind: "started",
    runId,
    agentType,
    order: typeof event.order === "number" ? event.order : 0,
    ...(inputPreview !== undefined && { inputPreview }),
    ...(isRecord(display) && { display }),
  };
}

/** Only stored chunks use up their number; each of the others has something of its own to know it by. */
function chunkKey(chunk: UIMessageChunk, frame: JsonObject, event: JsonObject): string | number | undefined {
  const unstored = text(event.unstoredId);
  if (unstored !== undefined) return `unstored ${unstored}`;
  const milestone = readMilestone(chunk, 0);
  if (milestone !== undefined) return `milestone ${milestone.sequence}`;
  if (readProgress(chunk, 0) !== undefined) {
    return "id" in chunk && chunk.id !== undefined ? `progress ${chunk.id}` : `progress ${String(event.body)}`;
  }
  return typeof frame.sequence === "number" ? frame.sequence : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
