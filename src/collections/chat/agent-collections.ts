import type { StandardSchemaV1 } from "@standard-schema/spec";
import { createCollection, type Collection } from "@tanstack/db";
import type {
  AgentMessage,
  ApprovalEvent,
  ChunkRecord,
  ClaimRecord,
  GenerationRecord,
  SummaryRecord,
  ToolCallRecord,
} from "../contract.ts";
import type { TurnRecord } from "../answer/turn-log.ts";
import { logCollectionOptions, type LogUtils } from "../log/collection-options.ts";
import type { RowLog } from "../log/row-log.ts";
import { agentMessageSchema, type NewAgentMessage } from "./message.ts";

/** The name of the claims in a log: all agents that share it look there. */
export const CLAIMS = "claims";

/** A collection on a log, of rows without a schema. */
export type LogCollection<TRow extends object> = Collection<TRow, string, LogUtils, never, TRow>;

/** All that agents of one session share. Each is a table of the log under its own name. */
export interface AgentCollections {
  /** The conversation. `insert({ actorId, targetAgent, content })` is enough. `seq` is its place in the log. */
  readonly messages: Collection<
    AgentMessage,
    string,
    LogUtils,
    StandardSchemaV1<NewAgentMessage, AgentMessage>,
    NewAgentMessage
  >;
  /** Calls of tools that are executed elsewhere. */
  readonly toolCalls: LogCollection<ToolCallRecord>;
  /** The answers as they are written, piece by piece. */
  readonly chunks: LogCollection<ChunkRecord>;
  /** One row for each answer: where it is. Set `status` to "cancelled" to stop one. */
  readonly generations: LogCollection<GenerationRecord>;
  /** What answers under way have come to; they are carried on from it. */
  readonly turns: LogCollection<TurnRecord>;
  readonly summaries: LogCollection<SummaryRecord>;
  readonly approvals: LogCollection<ApprovalEvent>;
  readonly claims: LogCollection<ClaimRecord>;
}

/** The agents' collections on a log: for `durableAgent`, pages and tool executors. All who make them share the same rows. */
export function agentCollections(log: RowLog): AgentCollections {
  const plain = <TRow extends { id: string }>(name: string, orderAs?: keyof TRow & string): LogCollection<TRow> => {
    const order = orderAs === undefined ? {} : { orderAs };
    return createCollection(logCollectionOptions<TRow>({ log, name, getKey: (row) => row.id, ...order }));
  };
  return {
    messages: createCollection(
      logCollectionOptions({
        log,
        name: "messages",
        schema: agentMessageSchema,
        getKey: (row) => row.id,
        orderAs: "seq",
      }),
    ),
    toolCalls: plain<ToolCallRecord>("toolCalls"),
    chunks: plain<ChunkRecord>("chunks"),
    generations: plain<GenerationRecord>("generations"),
    turns: plain<TurnRecord>("turns"),
    summaries: plain<SummaryRecord>("summaries"),
    approvals: plain<ApprovalEvent>("approvals", "seq"),
    claims: plain<ClaimRecord>(CLAIMS),
  };
}
