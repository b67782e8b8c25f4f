// What a host provides and is asked for, addresses, and what an agent reports.
export {
  type AgentPathOptions,
  type AgentPathOptions as BuildAgentPathOptions,
  buildAgentPath,
  buildAgentUrl,
} from "../wire/agent-path.ts";
export { kebabCase as camelCaseToKebabCase } from "../wire/kebab.ts";
export { SUB_SEGMENT as SUB_PREFIX } from "../wire/class-table.ts";
export type { AgentPath, AgentStep, AgentStep as AgentPathStep } from "../port.ts";
export type { Admitted, Verdict } from "../wire/fetch-object.ts";
export { defer } from "../base/defer.ts";
export type {
  AgentEventPattern,
  AgentEvents,
  AgentEventType,
  EventOf,
  RecoveryBound,
  RecoveryFacts,
} from "../base/event.ts";
export type { Clock } from "../base/time.ts";
export { MAX_IDENTITY_BYTES } from "../base/identity.ts";
export type { Blobs, HostedAgentClass, Socket, Sockets, Sql, SqlRow, SqlValue, WriteLevel } from "../port.ts";
