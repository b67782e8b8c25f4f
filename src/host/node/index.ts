// Running agents in a Node process.

// First: what comes after it loads SQLite.
import "./node-version.ts";

// Hosts
export {
  createHost,
  getSubAgentByName,
  type Host,
  type HostStatus,
  routeAgentRequest,
  type Target,
} from "./create-host.ts";
export { findAgents } from "./agent-directory.ts";
export type { FoundAgent, FoundAgents } from "./agent-directory.ts";
export { watchAgents, type WatchedAgents, type WatchOptions } from "./agent-directory-watch.ts";
export type { AdminOptions } from "./admin-http.ts";
export type { ClusterOptions } from "./cluster/open-cluster.ts";
export { serve, type ServedHost, type ServeOptions } from "./serve.ts";
export type { Log, LogEntry } from "../log.ts";
export type { HostLimits, HostOptions } from "./options.ts";
export type { AgentClasses } from "../registry.ts";
export type { Hosts } from "../host-names.ts";
export type { AddressedAgent, BeforeHook, RouteOptions } from "../route.ts";
export type { Cors } from "../cors.ts";
export type { Origins } from "../origin.ts";
export type { AgentStub } from "../../stub.ts";

// Storage
export { memoryStorage } from "./memory-storage.ts";
export type { Storage } from "../storage.ts";

// Events
export { subscribe } from "./publish-events.ts";
