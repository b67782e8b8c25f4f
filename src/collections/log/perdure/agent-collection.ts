import type { StandardSchemaV1 } from "@standard-schema/spec";
import { untypedLogOptions } from "../collection-options.ts";
import type {
  PlainConfig,
  PlainOptions,
  SchemaConfig,
  SchemaOptions,
  UntypedLogConfig,
} from "../collection-options.ts";
import { openAgentLog } from "./agent-log.ts";
import type { AgentSocket } from "./agent-socket.ts";

/**
 * Options for `createCollection`: a collection whose rows a Perdure agent keeps (`getCollections()` of its class). All
 * collections of one connection have one log, `collection.utils.log`. See `logCollectionOptions` for what writes promise.
 */
export function perdureCollectionOptions<TSchema extends StandardSchemaV1>(
  config: SchemaConfig<TSchema> & { readonly agent: AgentSocket },
): SchemaOptions<TSchema>;
export function perdureCollectionOptions<TRow extends object>(
  config: PlainConfig<TRow> & { readonly agent: AgentSocket },
): PlainOptions<TRow>;
export function perdureCollectionOptions({
  agent,
  ...config
}: Omit<UntypedLogConfig, "log"> & { readonly agent: AgentSocket }): object {
  return untypedLogOptions({ ...config, log: openAgentLog({ agent }) });
}
