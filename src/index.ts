// Durable agents. What runs them is in `perdure/node`.

// Agents
export { Agent } from "./agent/agent.ts";
export type {
  AgentOptions,
  AgentOptions as AgentStaticOptions,
  ConnectionContext,
  WSMessage,
} from "./agent/agent-base.ts";
export { callable, type CallableOptions, type CallableOptions as CallableMetadata } from "./agent/callable.ts";
export { StreamingResponse } from "./agent/streaming-response.ts";
export type { Act, ActEffect, ActTarget, Caller, RequestCaller } from "./agent/authorize.ts";
export { Connection } from "./agent/connection.ts";
export type { StateSource } from "./agent/state.ts";
export type { SqlParameter } from "./agent/user-sql.ts";
export type { ChildClass } from "./agent/sub-agents.ts";
export type { ChildRow } from "./store/child.ts";
export { getCurrentAgent, type CurrentAgent } from "./agent/context.ts";
export type { AgentCollection, RowEntry } from "./agent/collection-access.ts";
export type { RowOutcome, RowSource } from "./agent/collection-keeper.ts";
export type { CollectionRules, Collections } from "./agent/collection-rules.ts";
export type { AppliedRowChange, RowChange, RowCondition, RowProducer, RowWrite } from "./wire/row-frames.ts";
export type { AgentStub, AgentStub as SubAgentStub } from "./stub.ts";

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
  ChatClassifyContext,
  ChatErrorContext,
  ChatErrorStage,
  ChunkContext,
  PrepareStepContext,
  StepConfig,
  StepContext,
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  ToolResultDecision,
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
export { PRUNE_MINIMUM, PRUNE_PROTECT } from "./context/prune.ts";
export type { OutputSubject } from "./context/superseded.ts";
export { type CallTokens, isOverflow, type OverflowLimits } from "./context/token-budget.ts";
export type { TextCounter } from "./context/token-counters.ts";
export type { CompactionInfo } from "./agent/compaction-info.ts";
export type { AppliedCompaction } from "./agent/think-context.ts";
export type { LiveState, TouchedFile } from "./context/carried.ts";
export type { DraftCompaction } from "./context/compaction-job.ts";
export { defaultModelLimits } from "./context/default-model-limits.ts";
export type { ContextOverflow } from "./context/overflow.ts";
export type { ModelLimits, ModelLimitsTable } from "./context/model-limits.ts";
export type {
  ContextItem,
  ContextItemKind,
  ContextReport,
  LeftOutItem,
  LeftOutKind,
} from "./context/context-report.ts";
export type { LedgerEntry } from "./session/charge.ts";
export type { UsageTotals } from "./session/ledger.ts";
export type { PendingApproval, ReturnedCall } from "./tool/call-book.ts";
export { runStep, type StepContext as ToolStepContext, type ToolStep } from "./tool/step.ts";
export {
  durableTool,
  type ApprovalRuleOptions,
  type CallApproval,
  type DurableExecutionOptions,
  type DurableToolOptions,
  type ReplayPolicy,
} from "./tool/define.ts";
export { type BackgroundReceipt, isBackgroundReceipt } from "./tool/receipt.ts";
export type { BackgroundCall } from "./turn/step/background-note.ts";
export {
  type NestedCall,
  type NestedOutcome,
  type NestedQuestion,
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
  ApprovalCall,
  ApprovalRequest,
  ChatRecoveryContext,
  ChatRecoveryOptions,
  ChatResponseResult,
  ChatTurnOptions,
  ChatTurnOptions as OnChatMessageOptions,
  SaveMessagesResult,
  TurnOutcome,
} from "./turn/chat-types.ts";
export type { ChatAnswer, OrdinaryTurn, StreamedAnswer } from "./turn/chunk-source.ts";
export type { MessageConcurrency } from "./turn/overlap.ts";
export type { MessageInput, NewMessage } from "./message/input.ts";
export type { ToolPart, UIMessage as ChatMessage } from "./message/types.ts";
export type { ClientTool, ClientTool as ClientToolSchema } from "./wire/frames.ts";
export { type IncomingMessage, MessageType, type OutgoingMessage } from "./wire/message-type.ts";

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
export {
  type ExtensionInfo,
  ExtensionManager,
  type ExtensionManagerOptions,
  type LoadExtensionOptions,
} from "./extension/manager.ts";
export type { ExtensionPreview } from "./extension/preview.ts";
export { createExtensionTools, type ExtensionTools, type ExtensionToolsOptions } from "./extension/extension-tools.ts";
export type { ExtensionBridge } from "./extension/host-functions.ts";
export type {
  ExtensionContext,
  ExtensionDeclaration,
  ExtensionHook,
  ExtensionManifest,
  ExtensionPermissions,
} from "./extension/manifest.ts";
export type { ExtensionTurnConfig } from "./extension/turn-config.ts";

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
export { getSchedulePrompt, type ParsedSchedule, scheduleSchema } from "./fiber/schedule-prompt.ts";
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

// Addresses
export {
  type AgentPathOptions,
  type AgentPathOptions as BuildAgentPathOptions,
  buildAgentPath,
  buildAgentUrl,
} from "./wire/agent-path.ts";
export { kebabCase as camelCaseToKebabCase } from "./wire/kebab.ts";
export { SUB_SEGMENT as SUB_PREFIX } from "./wire/class-table.ts";
export type { AgentPath, AgentStep, AgentStep as AgentPathStep } from "./port.ts";
export type { Admitted, Verdict } from "./wire/fetch-object.ts";

// Errors, events, and what a host must provide
export { defer } from "./defer.ts";
export { PerdureError, type PerdureErrorCode } from "./error.ts";
export type {
  AgentEvent,
  AgentEventPattern,
  AgentEvents,
  AgentEventType,
  EventOf,
  RecoveryBound,
  RecoveryFacts,
} from "./event.ts";
export type { Clock } from "./id.ts";
export { type Identity, type JsonValue, MAX_IDENTITY_BYTES } from "./identity.ts";
export type {
  AgentEnv,
  AgentHost,
  Blobs,
  HostedAgentClass,
  HostedAgentClass as SubAgentClass,
  Socket,
  Sockets,
  Sql,
  SqlRow,
  SqlValue,
  WriteLevel,
} from "./port.ts";
