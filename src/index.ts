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
export { CONTINUE_PROMPT } from "./turn/step/continue-prompt.ts";
export { type ChatErrorClassification, defaultContextOverflowClassifier } from "./model/provider-error.ts";
export type { InboxItem, NotWaiting, Withdrawal } from "./turn/intake/inbox.ts";
export type { SteerReceipt } from "./turn/intake/steer.ts";
export type { Submission, SubmitOptions, SubmitResult } from "./turn/intake/submissions.ts";
export type { Budget, Budgets } from "./ledger/budget.ts";
export { defaultPrices } from "./ledger/default-prices.ts";
export type { Price, PriceTable } from "./ledger/prices.ts";
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
export type { LedgerEntry } from "./ledger/charge.ts";
export type { UsageTotals } from "./ledger/ledger.ts";
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
} from "./turn/engine/chat-types.ts";
export type { ChatAnswer, OrdinaryTurn, StreamedAnswer } from "./turn/engine/chunk-source.ts";
export type { MessageConcurrency } from "./turn/intake/overlap.ts";
export type { MessageInput, NewMessage } from "./message/input.ts";
export type { ToolPart, UIMessage as ChatMessage } from "./message/types.ts";
export type { ClientTool, ClientTool as ClientToolSchema } from "./wire/frames.ts";
export { type IncomingMessage, MessageType, type OutgoingMessage } from "./wire/message-type.ts";

// Memory
export type { ContextBlock, ContextBlocks } from "./memory/context-blocks.ts";
export type { ContextOptions } from "./memory/definition.ts";
export type {
  ContextHit,
  ContextKind,
  ContextProvider,
  LoadableContext,
  ReadOnlyContext,
  SearchableContext,
  WritableContext,
} from "./memory/provider.ts";
export {
  type ContextEntries,
  type ContextEntry,
  type KeyDescription,
  loadableContext,
  loadableFrom,
  searchableFrom,
  staticContext,
} from "./memory/providers.ts";

// Finding, erasing and moving what was said
export type { MessageText, SearchHit, SearchOptions } from "./search/search.ts";
export { SESSION_SEARCH_TOOL } from "./search/search-text.ts";
export {
  sessionSearchTool,
  type SessionSearchHit,
  type SessionSearchInput,
  type SessionSearchOutput,
  type SessionSearchToolOptions,
} from "./tool/session-search.ts";
export type { EraseReceipt } from "./erase/erase.ts";
export type { ErasedScope, EraseScope } from "./erase/erase-plan.ts";
export type { MediaRetention } from "./media/media.ts";
export { type AppendOptions, type HistoryOptions, Session } from "./session/session.ts";
export { type ConfigureSession, SessionManager } from "./session/session-manager.ts";
export type { ForkOptions, NewSessionOptions } from "./session/session-changes.ts";
export type { SessionInfo } from "./session/session-info.ts";
export type { CompactFunction, OwnSummary, SessionSettings, TokenCounter } from "./session/session-settings.ts";
export type { OwnStore, SessionStore } from "./store/session-store.ts";
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
} from "./toolbox/extension/manager.ts";
export type { ExtensionPreview } from "./toolbox/extension/preview.ts";
export {
  createExtensionTools,
  type ExtensionTools,
  type ExtensionToolsOptions,
} from "./toolbox/extension/extension-tools.ts";
export type { ExtensionBridge } from "./toolbox/extension/host-functions.ts";
export type {
  ExtensionContext,
  ExtensionDeclaration,
  ExtensionHook,
  ExtensionManifest,
  ExtensionPermissions,
} from "./toolbox/extension/manifest.ts";
export type { ExtensionTurnConfig } from "./toolbox/extension/turn-config.ts";

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
export type { RetryCallOptions, RetryOptions } from "./work/retry.ts";
export type { Schedule, ScheduleCriteria, ScheduleOptions, ScheduleRun } from "./work/schedule-view.ts";
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
} from "./work/task-types.ts";
export { getSchedulePrompt, type ParsedSchedule, scheduleSchema } from "./work/schedule-prompt.ts";
export type { QueueItem, QueueOptions, QueueRun } from "./work/queue.ts";
export type {
  FiberContext,
  FiberInspection,
  FiberRecoveryContext,
  FiberRecoveryResult,
  FiberStatus,
  StartFiberResult,
} from "./work/fiber-view.ts";
export type {
  DeleteFibersOptions,
  ListFibersOptions,
  SpawnFiberOptions,
  StartFiberOptions,
} from "./work/fiber-options.ts";

// Skills
export { skills } from "./toolbox/skill/skills.ts";
export { SkillRegistry, type SkillRegistryOptions } from "./toolbox/skill/registry.ts";
export { skillsForTurn, type TurnSkills } from "./toolbox/skill/for-turn.ts";
export { createSkillTools, type ActivatedSkill, type ReadSkillResource } from "./toolbox/skill/tools.ts";
export type { RunScriptInput } from "./toolbox/skill/run-tool.ts";
export type { BucketObject, SkillBucket } from "./toolbox/skill/bucket-source.ts";
export type { ManifestFile, SkillManifest } from "./toolbox/skill/manifest-source.ts";
export type { SkillRunnerOptions } from "./toolbox/skill/runner.ts";
export type { ScriptTool } from "./toolbox/skill/script-tools.ts";
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
} from "./toolbox/skill/types.ts";

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
export { defer } from "./base/defer.ts";
export { PerdureError, type PerdureErrorCode } from "./base/error.ts";
export type {
  AgentEvent,
  AgentEventPattern,
  AgentEvents,
  AgentEventType,
  EventOf,
  RecoveryBound,
  RecoveryFacts,
} from "./base/event.ts";
export type { Clock } from "./base/id.ts";
export { type Identity, type JsonValue, MAX_IDENTITY_BYTES } from "./base/identity.ts";
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
