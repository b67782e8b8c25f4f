// MCP: servers that an agent uses, and agents that are servers.

export {
  McpClientManager,
  McpClientManager as MCPClientManager,
  type McpClientManagerOptions,
} from "./client/manager.ts";
export type {
  ElicitationHandler,
  ElicitationHandlers,
  McpClientFeatures,
  McpElicitation,
  McpElicitationAnswer,
} from "./client/elicitation.ts";
export type { McpFetch } from "./client/http-fetch.ts";
export type {
  AddMcpServerOptions,
  AddMcpServerResult,
  McpCallOptions,
  McpCallResult,
  McpConnectionState,
  McpHost,
  McpOAuthClient,
  McpPrompt,
  McpResource,
  McpResourceTemplate,
  McpServerFilter,
  McpServerInfo,
  McpServerOptions,
  McpStdioServer,
  McpTool,
  McpTransportOptions,
} from "./client/types.ts";
export type { McpOAuthCallbackOptions, McpOAuthResult } from "./oauth/callback.ts";
export type {
  McpOAuthIssuer,
  McpOAuthMetadata,
  McpOAuthProvider,
  McpOAuthRegistration,
  McpOAuthTokens,
} from "./oauth/own-provider.ts";
export { agentMcpServer, type AgentMcpServerOptions, type McpMethod } from "./server/agent-server.ts";
export type { McpAccessOptions } from "./server/access.ts";
export {
  createMcpHandler,
  type McpAuthenticate,
  type McpHandler,
  type McpHandlerOptions,
  type McpNotify,
  type McpServerFactory,
} from "./server/handler.ts";
export type { McpSessionOptions } from "./server/sessions.ts";
