import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { InferSchemaOutput } from "@tanstack/db";
import { type LogCollectionConfig, type LogOptions, untypedLogOptions } from "../collection-options.ts";
import type { RowProducer, RowValue } from "../row-log.ts";
import { openAgentLog } from "./agent-log.ts";
import type { AgentSocket } from "./agent-socket.ts";

/**
 * Options for `createCollection`: a collection whose rows a Perdure agent keeps (`getCollections()` of its class). All
 * collections of one connection have one log, `collection.utils.log`. See `logCollectionOptions` for what writes promise.
 */
export function perdureCollectionOptions<TSchema extends StandardSchemaV1>(
  config: LogCollectionConfig<InferSchemaOutput<TSchema> & object> & {
    readonly agent: AgentSocket;
    readonly schema: TSchema;
    readonly producer?: RowProducer;
  },
): LogOptions<InferSchemaOutput<TSchema> & object, TSchema> & { schema: TSchema };
export function perdureCollectionOptions<TRow extends object>(
  config: LogCollectionConfig<TRow> & {
    readonly agent: AgentSocket;
    readonly schema?: never;
    readonly producer?: RowProducer;
  },
): LogOptions<TRow, never> & { schema?: never };
export function perdureCollectionOptions(
  config: LogCollectionConfig<RowValue> & {
    readonly agent: AgentSocket;
    readonly schema?: StandardSchemaV1;
    readonly producer?: RowProducer;
  },
): object {
  const { agent, ...rest } = config;
  return untypedLogOptions({ ...rest, log: openAgentLog({ agent }) });
}
