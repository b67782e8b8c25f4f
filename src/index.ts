// Durable agents: what apps are written with. What runs them is in `perdure/node`; the rest of the names is in `public/`.

// Agents
export { Agent } from "./agent/agent.ts";
export type { AgentOptions, AgentOptions as AgentStaticOptions } from "./parts/agent-parts.ts";
export { callable, type CallableOptions, type CallableOptions as CallableMetadata } from "./agent/callable.ts";
export { StreamingResponse } from "./agent/rpc.ts";
export type { Act, ActEffect, ActTarget, Caller, RequestCaller } from "./door/authorize.ts";
export { Connection, type ConnectionContext, type WSMessage } from "./door/connection.ts";
export type { StateSource } from "./parts/state.ts";
export type { SqlParameter } from "./agent/user-sql.ts";
export type { ChildRow } from "./store/child.ts";
export type { ChildClass } from "./parts/children.ts";
export { getCurrentAgent, type CurrentAgent } from "./agent/current-agent.ts";
export type { AgentCollection, RowEntry } from "./parts/rows/collection.ts";
export type { RowOutcome, RowSource } from "./parts/rows/rows.ts";
export type { CollectionRules, Collections } from "./parts/rows/rules.ts";
export type { AppliedRowChange, RowChange, RowCondition, RowProducer, RowWrite } from "./wire/row-frames.ts";
export type { AgentStub, AgentStub as SubAgentStub } from "./stub.ts";

// Chat
export { AIChatAgent } from "./agent/ai-chat-agent.ts";
export { Think } from "./agent/think.ts";
export { agent, type AgentDeclaration, type Declared } from "./agent/declared-agent.ts";
export type { StreamCallback } from "./parts/run-turn.ts";
export type {
  ChatClassifyContext,
  ChatErrorContext,
  ChatTurnOptions,
  ChatTurnOptions as OnChatMessageOptions,
  ChunkContext,
  PrepareStepContext,
  StepConfig,
  StepContext,
  TurnConfig,
  TurnContext,
} from "./turn/step/config.ts";
export type {
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
  ToolResultDecision,
} from "./tool/call-hooks.ts";
export { defaultContextOverflowClassifier } from "./model/provider-error.ts";
export type { ChatErrorClassification } from "./store/usage.ts";
export type { Budget, Budgets } from "./ledger/budget.ts";
export { runStep, type StepContext as ToolStepContext, type ToolStep } from "./tool/step.ts";
export {
  durableTool,
  type ApprovalRuleOptions,
  type CallApproval,
  type DurableExecutionOptions,
  type DurableToolOptions,
  type ReplayPolicy,
} from "./tool/define.ts";
export { action, type ActionContext, type AnyAction } from "./tool/action.ts";
export type { ActionAuthorization, ActionAuthorizationContext } from "./tool/action-authorize.ts";
export { createToolsFromClientSchemas } from "./tool/client-tools.ts";
export type {
  ChatRecoveryConfig,
  ApprovalRequest,
  ChatRecoveryContext,
  ChatRecoveryOptions,
  ChatResponseResult,
  SaveMessagesResult,
} from "./turn/policy.ts";
export type { ChatAnswer } from "./turn/engine/by-stream.ts";
export type { MessageConcurrency } from "./turn/policy.ts";
export type { MessageInput, NewMessage } from "./message/input.ts";
export type { ToolPart, UIMessage as ChatMessage } from "./message/types.ts";
export type { ClientTool } from "./wire/frames.ts";

// Sessions
export type { SearchOptions } from "./search/search.ts";
export type { SearchHit } from "./wire/session-types.ts";
export type { EraseReceipt } from "./erase/erase.ts";
export type { MediaRetention } from "./media/media.ts";
export { Session } from "./session/session.ts";
export { SessionManager } from "./session/session-manager.ts";
export type { SessionInfo } from "./wire/session-types.ts";
export type { ChatAgent as SessionAgent, InSession } from "./agent/chat-agent.ts";
export type { TitleOptions } from "./parts/titles.ts";

// Extensions
export type { ExtensionDeclaration } from "./toolbox/extension/manifest.ts";

// Agents together
export { agentTool, type AgentToolOptions } from "./agent/agent-tool.ts";
export type { AgentToolLifecycleResult, AgentToolRunInfo, RunAgentToolResult } from "./parts/runs/types.ts";

// Work
export type { RetryOptions } from "./work/retry.ts";
export type { Schedule, ScheduleOptions } from "./work/schedules.ts";
export {
  defineScheduledTasks,
  type ScheduledTaskContext,
  type ScheduledTasks,
  type ScheduledTasks as ThinkScheduledTasks,
} from "./work/task-types.ts";
export type { QueueItem, QueueOptions } from "./work/queue.ts";
export type { FiberContext, FiberRecoveryContext, FiberRecoveryResult } from "./work/fiber-view.ts";

// Skills
export { skills } from "./toolbox/skill/skills.ts";
export type { SkillRunContext, SkillSource } from "./toolbox/skill/types.ts";

// Errors, events, people
export { PerdureError, type PerdureErrorCode } from "./base/error.ts";
export type { AgentEvent } from "./base/event.ts";
export type { Identity, JsonValue } from "./base/identity.ts";
export type { AgentEnv, AgentHost, HostedAgentClass as SubAgentClass } from "./port.ts";
