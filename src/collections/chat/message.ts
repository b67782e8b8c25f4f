import type { StandardSchemaV1 } from "@standard-schema/spec";
import { newId } from "../../base/id.ts";
import type { AgentMessage } from "../contract.ts";
import { rowsOf } from "../log/rows.ts";
import type { MessageCollection } from "./config.ts";

/** A message to be inserted: who writes to whom, and what. The rest has defaults. */
export type NewAgentMessage = Pick<AgentMessage, "actorId" | "targetAgent" | "content"> & Partial<AgentMessage>;

const ROLES: readonly unknown[] = ["user", "assistant", "system", "tool"] satisfies AgentMessage["role"][];

/** The schema of {@link AgentMessage}. Fills in `id`, `role` ("user"), `createdAt` and `processed`; keeps unknown fields. */
export const agentMessageSchema: StandardSchemaV1<NewAgentMessage, AgentMessage> = {
  "~standard": {
    version: 1,
    vendor: "perdure",
    validate: (value) => {
      if (!isNewMessage(value)) return { issues: [messageProblem(value) ?? { message: "no message" }] };
      const { id = newId(), role = "user", createdAt = createdNow(), processed = false } = value;
      return { value: { ...value, id, role, createdAt, processed } };
    },
  },
};

let newest = 0;

/** The time for a message that is written now. No two of a process are the same: who sorts by it gets their order. */
export function createdNow(): string {
  newest = Math.max(Date.now(), newest + 1);
  return new Date(newest).toISOString();
}

function isNewMessage(value: unknown): value is NewAgentMessage {
  return messageProblem(value) === undefined;
}

/** What is wrong with a message, and where. */
function messageProblem(value: unknown): StandardSchemaV1.Issue | undefined {
  if (typeof value !== "object" || value === null) return { message: "A message must be an object." };
  const row = value as Record<string, unknown>;
  for (const field of ["actorId", "targetAgent", "content"]) {
    if (typeof row[field] !== "string") return bad(field, `A message needs "${field}", a string.`);
  }
  for (const field of ["id", "createdAt", "generationId", "requestId", "inReplyTo", "toolCallId", "error"]) {
    if (row[field] === undefined || typeof row[field] === "string") continue;
    return bad(field, `"${field}" of a message must be a string.`);
  }
  if (row["role"] !== undefined && !ROLES.includes(row["role"]))
    return bad("role", `"role" of a message must be one of ${ROLES.join(", ")}.`);
  if (row["processed"] !== undefined && typeof row["processed"] !== "boolean")
    return bad("processed", `"processed" must be a boolean.`);
  return undefined;
}

function bad(field: string, message: string): StandardSchemaV1.Issue {
  return { message, path: [field] };
}

/** The order of messages: by their place in the log where they have one, else by time and, at the same time, by id. */
export function byPlace(a: AgentMessage, b: AgentMessage): number {
  if (a.seq !== undefined && b.seq !== undefined) return a.seq - b.seq;
  return compareTexts(a.createdAt, b.createdAt) || compareTexts(a.id, b.id);
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Returns a message that its agent gave up (`error`) to it, with all its tries. Safe to call twice, and from anywhere.
 * @returns false when there is no such message, or it was not given up.
 */
export async function reviveMessage(messages: MessageCollection, id: string): Promise<boolean> {
  return rowsOf(messages).update(id, (draft) => {
    if (draft.error === undefined) return false;
    draft.processed = false;
    delete draft.error;
    delete draft.attempts;
    return true;
  });
}
