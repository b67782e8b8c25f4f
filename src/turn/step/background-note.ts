import type { ModelMessage } from "ai";
import { decodeJson } from "../../base/json.ts";
import { type Identity, readIdentity } from "../../base/identity.ts";
import type { BackgroundRow } from "../../store/background-call.ts";
import type { ToolCallContext } from "../../tool/call-hooks.ts";

/** What is stored of a call beside its row in the book. */
export interface BackgroundNote {
  /** Where its end is told. */
  readonly session: string;
  /** For whom the turn was, as it is stored. */
  readonly identity: string | null;
  /** When the model got its receipt. */
  readonly since: number;
  /** Which runs it comes of, as JSON. */
  readonly lineage: string | null;
  /** What the tool was given, where a hook has changed what the model wrote. */
  readonly given?: unknown;
}

/** A tool call that goes on without its turn. Times are milliseconds since the epoch. */
export interface BackgroundCall {
  readonly toolCallId: string;
  /** The answer that it was asked for in. */
  readonly messageId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly sessionId: string;
  readonly startedAt: number;
  /** How often it was started: more than once after a crash. */
  readonly attempts: number;
  /** For whom it runs. */
  readonly identity?: Identity;
  /** What it has shown last of how far it is. In memory: gone after a restart. */
  readonly progress?: unknown;
}

/** What is stored of it. */
export function noteOf(row: Pick<BackgroundRow, "background">): BackgroundNote {
  // Written by `moved` alone.
  return JSON.parse(row.background) as BackgroundNote;
}

/** What its tool is given. */
export function inputOf(row: BackgroundRow): unknown {
  return noteOf(row).given ?? decodeJson(row.input);
}

/** For whom the turn was that it comes of. */
export function identityOf(row: BackgroundRow): Identity | undefined {
  return readIdentity(noteOf(row).identity);
}

/** It as hooks are told of it. */
export function calledOf(row: BackgroundRow, messages: readonly ModelMessage[]): ToolCallContext {
  return {
    ...{ type: "tool-call", toolCallId: row.toolCallId, toolName: row.tool, input: inputOf(row), stepNumber: row.step },
    ...{ identity: identityOf(row), messages, abortSignal: new AbortController().signal },
  } as ToolCallContext;
}

/** It as people are told of it. */
export function toBackgroundCall(row: BackgroundRow, progress: unknown): BackgroundCall {
  const note = noteOf(row);
  const identity = readIdentity(note.identity);
  return {
    ...{ toolCallId: row.toolCallId, messageId: row.messageId, toolName: row.tool },
    ...{ input: inputOf(row), sessionId: note.session },
    ...{ startedAt: row.startedAt ?? note.since, attempts: row.attempts },
    ...(identity !== undefined && { identity }),
    ...(progress !== undefined && { progress }),
  };
}
