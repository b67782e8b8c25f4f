// Durable agents. What runs them is in `perdure/node`.

// Agents
export { Agent } from "./agent/agent.ts";
export type { AgentOptions, ConnectionContext } from "./agent/agent-base.ts";
export { callable, type CallableOptions } from "./agent/callable.ts";
export { StreamingResponse } from "./agent/streaming-response.ts";
export { Connection } from "./agent/connection.ts";
export type { StateSource } from "./agent/state.ts";
export type { SqlParameter } from "./agent/user-sql.ts";
export type { ChildClass } from "./agent/sub-agents.ts";
export type { ChildRow } from "./store/child.ts";
export { getCurrentAgent, type CurrentAgent } from "./agent/context.ts";
export type { AgentStub } from "./stub.ts";

// Chat
export { AIChatAgent } from "./agent/ai-chat-agent.ts";
export { Think } from "./agent/think.ts";
export { agent, type AgentDeclaration, type Declared } from "./agent/declared-agent.ts";
export type {
  AddMessagesOptions,
  ChatOptions,
  RunTurnOptions,
  StreamCallback,
  StreamTurnOptions,
  SubmitTurnOptions,
  TurnExtras,
  TurnInput,
  WaitTurnOptions,
} from "./agent/think-turns.ts";
export type {
  ChatErrorContext,
  ChunkContext,
  PrepareStepContext,
  StepConfig,
  StepContext,
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  TurnConfig,
  TurnContext,
} from "./turn/step/config.ts";
export { CONTINUE_PROMPT } from "./turn/continue-prompt.ts";
export { type ChatErrorClassification, defaultContextOverflowClassifier } from "./turn/provider-error.ts";
export type { InboxItem, NotWaiting, Withdrawal } from "./turn/inbox.ts";
export type { SteerReceipt } from "./turn/steer.ts";
export type { Submission, SubmitOptions, SubmitResult } from "./turn/submissions.ts";
export type { Budget, Budgets } from "./session/budget.ts";
export { defaultPrices } from "./session/default-prices.ts";
export type { Price, PriceTable } from "./session/prices.ts";
export { estimateTokens } from "./context/estimate.ts";
export type { CompactionInfo } from "./agent/compaction-info.ts";
export type { AppliedCompaction } from "./agent/think-context.ts";
export type { LiveState, TouchedFile } from "./context/carried.ts";
export type { DraftCompaction } from "./context/compaction-job.ts";
export { defaultModelLimits } from "./context/default-model-limits.ts";
export type { ContextOverflow } from "./context/overflow.ts";
export type { ModelLimits, ModelLimitsTable } from "./context/model-limits.ts";
export type { ContextItem, ContextItemKind, ContextReport } from "./context/context-report.ts";
export type { LedgerEntry } from "./session/charge.ts";
export type { UsageTotals } from "./session/ledger.ts";
export type { PendingApproval } from "./tool/call-book.ts";
export {
  durableTool,
  type DurableExecutionOptions,
  type DurableToolOptions,
  type ReplayPolicy,
} from "./tool/define.ts";
export {
  type NestedCall,
  type NestedOutcome,
  park,
  ParkedCall,
  type ParkedQuestion,
  type ResumedCall,
  type ToolTurn,
} from "./tool/park.ts";
export {
  action,
  type Action,
  type ActionApproval,
  type ActionContext,
  type ActionExecuteContext,
  type ActionOptions,
  type ActionRisk,
  type AnyAction,
} from "./tool/action.ts";
export type { ReplyAttachment } from "./tool/action-attachment.ts";
export type { ActionAuthorization, ActionAuthorizationContext } from "./tool/action-authorize.ts";
export type { ActionRecord } from "./tool/action-ledger.ts";
export { createToolsFromClientSchemas } from "./tool/client-tools.ts";
export type {
  ChatRecoveryConfig,
  ChatRecoveryContext,
  ChatRecoveryOptions,
  ChatResponseResult,
  ChatTurnOptions,
  SaveMessagesResult,
  TurnOutcome,
} from "./turn/chat-types.ts";
export type { ChatAnswer } from "./turn/chunk-source.ts";
export type { MessageConcurrency } from "./turn/overlap.ts";
export type { ToolPart } from "./message/types.ts";
export type { ClientTool } from "./wire/frames.ts";

// Memory
export type { ContextBlock, ContextBlocks } from "./session/context-blocks.ts";
export type { ContextOptions } from "./session/blocks/definition.ts";
export type {
  ContextHit,
  ContextKind,
  ContextProvider,
  LoadableContext,
  ReadOnlyContext,
  SearchableContext,
  WritableContext,
} from "./session/blocks/provider.ts";
export {
  type ContextEntries,
  type ContextEntry,
  type KeyDescription,
  loadableContext,
  loadableFrom,
  searchableFrom,
  staticContext,
} from "./session/blocks/providers.ts";

// Finding, erasing and moving what was said
export type { MessageText, SearchHit, SearchOptions } from "./session/search.ts";
export { SESSION_SEARCH_TOOL } from "./session/search-text.ts";
export {
  sessionSearchTool,
  type SessionSearchHit,
  type SessionSearchInput,
  type SessionSearchOutput,
  type SessionSearchToolOptions,
} from "./tool/session-search.ts";
export type { EraseReceipt } from "./session/erase.ts";
export type { ErasedScope, EraseScope } from "./session/erase-plan.ts";
export type { MediaRetention } from "./session/media.ts";
export { type AppendOptions, type HistoryOptions, Session } from "./session/session.ts";
export { type ConfigureSession, SessionManager } from "./session/session-manager.ts";
export type { ForkOptions, NewSessionOptions } from "./session/session-changes.ts";
export type { SessionInfo } from "./session/session-info.ts";
export type { CompactFunction, OwnSummary, SessionSettings, TokenCounter } from "./session/session-settings.ts";
export type { OwnStore, SessionStore } from "./session/session-store.ts";
export type { SessionAgent } from "./agent/session-agent.ts";
export type { InSession } from "./agent/chat-agent.ts";
export type { TitleOptions } from "./agent/title-keeper.ts";
export type { SessionOp } from "./wire/session-frames.ts";

// Extensions
export { type ExtensionInfo, ExtensionManager, type ExtensionManagerOptions } from "./extension/manager.ts";
export { createExtensionTools, type ExtensionTools } from "./extension/extension-tools.ts";
export type { ExtensionBridge } from "./extension/host-functions.ts";
export type {
  ExtensionContext,
  ExtensionDeclaration,
  ExtensionHook,
  ExtensionManifest,
  ExtensionPermissions,
} from "./extension/manifest.ts";
export type { ExtensionTurnConfig } from "./extension/turn-config.ts";

// The network
export { createEgress, type EgressOptions, type PolicedEgress } from "./egress/egress.ts";
export type { EgressDecision, OnDecision } from "./egress/decision.ts";
export type { ResolveHost } from "./egress/engine.ts";
export type { Injection } from "./egress/inject.ts";
export { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "./egress/limits.ts";
export type { Verdict as EgressVerdict } from "./egress/policy.ts";
export { createGuardedFetch, type GuardedFetch, type GuardedFetchOptions } from "./egress/guarded-fetch.ts";
export { addressKind, type AddressKind, isPrivateAddress } from "./egress/address.ts";
export { guardUrl, type UrlGuardOptions, type UrlVerdict } from "./egress/url-guard.ts";
export {
  createFetchTools,
  type FetchFailure,
  type FetchOutput,
  type FetchToolRules,
  type FetchToolsOptions,
} from "./egress/fetch-tool/fetch-tools.ts";
export type { FetchInput } from "./egress/fetch-tool/fetch-input.ts";
export {
  type BundledCode,
  type BundleLimits,
  createPackageBundler,
  type PackageBundler,
  type PackageBundlerOptions,
} from "./sandbox/npm/package-bundler.ts";
export {
  type InstalledPackages,
  installPackages,
  type InstallPackagesOptions,
} from "./sandbox/npm/install-packages.ts";
export type { PackageList } from "./sandbox/npm/package-names.ts";

// Agents together
export { agentTool, type AgentToolOptions, type AgentToolReceipt } from "./agent/run/agent-tool.ts";
export {
  fanOut,
  firstGood,
  supervise,
  type FanOutOptions,
  type FirstGoodOptions,
  type SuperviseOptions,
  type TeamOptions,
  type TeamTask,
} from "./agent/run/team.ts";
export type {
  AgentToolChunk,
  AgentToolDisplayMetadata,
  AgentToolFailure,
  AgentToolLifecycleResult,
  AgentToolListener,
  AgentToolMilestone,
  AgentToolProgress,
  AgentToolProgressSnapshot,
  AgentToolRequest,
  AgentToolRunInfo,
  AgentToolRunInspection,
  AgentToolRunStatus,
  AgentToolTerminalStatus,
  DetachedAgentToolConfig,
  DetachedRunAgentToolOptions,
  DetachedRunAgentToolResult,
  RunAgentToolOptions,
  RunAgentToolResult,
} from "./agent/run/types.ts";

// MCP
export {
  McpClientManager,
  McpClientManager as MCPClientManager,
  type McpClientManagerOptions,
} from "./mcp/client/manager.ts";
export type {
  ElicitationHandler,
  ElicitationHandlers,
  McpClientFeatures,
  McpElicitation,
  McpElicitationAnswer,
} from "./mcp/client/elicitation.ts";
export type { McpFetch } from "./mcp/client/http-fetch.ts";
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
} from "./mcp/client/types.ts";
export type { McpOAuthCallbackOptions, McpOAuthResult } from "./mcp/oauth/callback.ts";
export type { McpOAuthProvider } from "./mcp/oauth/provider.ts";
export { agentMcpServer, type AgentMcpServerOptions, type McpMethod } from "./mcp/server/agent-server.ts";
export type { McpAccessOptions } from "./mcp/server/access.ts";
export {
  createMcpHandler,
  type McpAuthenticate,
  type McpHandler,
  type McpHandlerOptions,
  type McpNotify,
  type McpServerFactory,
} from "./mcp/server/handler.ts";
export type { McpSessionOptions } from "./mcp/server/sessions.ts";

// Work
export type { RetryCallOptions, RetryOptions } from "./fiber/retry.ts";
export type { Schedule, ScheduleCriteria, ScheduleOptions, ScheduleRun } from "./fiber/schedule-view.ts";
export {
  defineScheduledTasks,
  type IntervalSchedule,
  type IntervalSchedule as ThinkIntervalSchedule,
  type ScheduledTask,
  type ScheduledTask as ThinkScheduledTask,
  type ScheduledTaskContext,
  type ScheduledTaskContext as ThinkScheduledTaskContext,
  type ScheduledTasks,
  type ScheduledTasks as ThinkScheduledTasks,
  type TaskSchedule,
  type TaskSchedule as ThinkScheduledTaskSchedule,
  type WallClockSchedule,
  type WallClockSchedule as ThinkWallClockSchedule,
} from "./fiber/task-types.ts";
export type { QueueItem, QueueOptions, QueueRun } from "./fiber/queue.ts";
export type {
  FiberContext,
  FiberInspection,
  FiberRecoveryContext,
  FiberRecoveryResult,
  FiberStatus,
  StartFiberResult,
} from "./fiber/fiber-view.ts";
export type {
  DeleteFibersOptions,
  ListFibersOptions,
  SpawnFiberOptions,
  StartFiberOptions,
} from "./fiber/fiber-options.ts";

// Sandboxes
export {
  createExecuteTool,
  type CodePackages,
  type ExecuteInput,
  type ExecuteToolOptions,
} from "./sandbox/execute/execute-tool.ts";
export type { ExecuteOutput } from "./sandbox/execute/code-run.ts";
export { createQuickJsSandbox, type ParkingSandbox, type QuickJsOptions } from "./sandbox/quickjs/create.ts";
export {
  DEFAULT_LIMITS,
  SUSPEND,
  type CallAnswerInSandbox,
  type Capabilities,
  type Egress,
  type EgressRequest,
  type EgressResponse,
  type FileEntry,
  type FileStat,
  type HostCall,
  type HostFunction,
  type Json,
  type Language,
  type LimitName,
  type Limits,
  type LogLine,
  type OpenCall,
  type Outcome,
  type Probe,
  type RunRequest,
  type RunResult,
  type Sandbox,
  type SandboxFiles,
  type SandboxSession,
} from "./sandbox/sandbox.ts";

// Shells
export {
  createBashSandbox,
  type BashRunRequest,
  type BashSandbox,
  type BashSandboxOptions,
} from "./sandbox/bash/bash-sandbox.ts";
export type { BashMount } from "./sandbox/bash/file-calls.ts";
export { MemoryFiles, type MemoryFilesOptions } from "./sandbox/memory-files.ts";

// Processes in a jail, and a browser
export {
  createProcessSandbox,
  type ProcessPrograms,
  type ProcessRunResult,
  type ProcessSandbox,
  type ProcessSandboxOptions,
} from "./sandbox/process/process-sandbox.ts";
export type { CheckoutBounds, FilesReport } from "./sandbox/process/files-report.ts";
export {
  createSandboxTools,
  RUN_PROCESS_TOOL,
  type RunProcessInput,
  type RunProcessOutput,
  type SandboxToolsOptions,
} from "./sandbox/process/sandbox-tools.ts";
export {
  type BrowserTools,
  closeBrowserSession,
  closeBrowsers,
  createBrowserTools,
  probeBrowser,
} from "./sandbox/browser/browser-tools.ts";
export type { BrowserEgress, BrowserToolsOptions } from "./sandbox/browser/browser-options.ts";
export type { BrowserErrorOutput, BrowserFileOutput, BrowserPageOutput } from "./sandbox/browser/page-output.ts";
export {
  bashToolMissing,
  createBashTool,
  type BashToolInput,
  type BashToolOptions,
  type BashToolOutput,
} from "./workspace/bash-tool.ts";

// Skills
export { skills } from "./skill/skills.ts";
export { SkillRegistry, type SkillRegistryOptions } from "./skill/registry.ts";
export { skillsForTurn, type TurnSkills } from "./skill/for-turn.ts";
export { createSkillTools, type ActivatedSkill, type ReadSkillResource } from "./skill/tools.ts";
export type { RunScriptInput } from "./skill/run-tool.ts";
export type { BucketObject, SkillBucket } from "./skill/bucket-source.ts";
export type { ManifestFile, SkillManifest } from "./skill/manifest-source.ts";
export type { SkillRunnerOptions } from "./skill/runner.ts";
export type { ScriptTool } from "./skill/script-tools.ts";
export type {
  Skill,
  SkillArtifact,
  SkillResource,
  SkillRunContext,
  SkillScriptCall,
  SkillScriptResult,
  SkillScriptRunner,
  SkillSet,
  SkillSource,
  SkillWarning,
  SkillWorkspace,
} from "./skill/types.ts";

// Workspace
export { Workspace, type WorkspaceOptions } from "./workspace/workspace.ts";
export type {
  PageOptions,
  PointChange,
  RestoreResult,
  WorkspaceChange,
  WorkspaceEntry,
  WorkspaceFiles,
  WorkspaceInfo,
  WorkspaceLike,
  WorkspacePoint,
} from "./workspace/types.ts";
export type { WorkspaceListener } from "./workspace/realm.ts";
export { bucketFiles, directoryFiles, type Bucket, type LargeFiles } from "./workspace/large-files.ts";
export { localWorkspace, RemoteWorkspace, sharedWorkspace, type WorkspaceCall } from "./workspace/remote.ts";
export { callWorkspace, type WorkspaceAccess, type WorkspaceOperation } from "./workspace/serve.ts";
export { toSandboxFiles, type MinimalFiles } from "./workspace/sandbox-files.ts";
export type { KeptFiles } from "./workspace/kept-files.ts";
export {
  createWorkspaceTools,
  type WorkspaceOperations,
  type WorkspaceToolsOptions,
} from "./workspace/tools/create-workspace-tools.ts";
export { createReadTool, type ReadInput, type ReadOutput, type ReadToolOptions } from "./workspace/tools/read.ts";
export { createWriteTool, type WriteInput, type WriteOutput } from "./workspace/tools/write.ts";
export { createEditTool, type EditInput, type EditOutput } from "./workspace/tools/edit.ts";
export { createListTool, type ListInput, type ListOutput } from "./workspace/tools/list.ts";
export { createFindTool, type FindInput, type FindOutput } from "./workspace/tools/find.ts";
export { createGrepTool, type GrepInput, type GrepOutput, type GrepToolOptions } from "./workspace/tools/grep.ts";
export { createDeleteTool, type DeleteInput, type DeleteOutput } from "./workspace/tools/delete.ts";
export type {
  DeleteOperations,
  EditOperations,
  FindOperations,
  GrepOperations,
  ListedEntry,
  ListOperations,
  ReadOperations,
  WriteOperations,
} from "./workspace/tools/operations.ts";

// Addresses
export { buildAgentPath, type AgentPathOptions } from "./wire/agent-path.ts";
export type { AgentPath, AgentStep } from "./port.ts";

// Errors, events, and what a host must provide
export { defer } from "./defer.ts";
export { PerdureError, type PerdureErrorCode } from "./error.ts";
export type { AgentEvent, AgentEvents, AgentEventType } from "./event.ts";
export type { Clock } from "./id.ts";
export type { AgentHost, Blobs, HostedAgentClass, Socket, Sockets, Sql, SqlRow, SqlValue, WriteLevel } from "./port.ts";
