// Runs of other agents: teams of them, and what is known of a run.
export type { AgentToolReceipt } from "../agent/agent-tool.ts";
export {
  fanOut,
  firstGood,
  supervise,
  type FanOutOptions,
  type FirstGoodOptions,
  type SuperviseOptions,
  type TeamOptions,
  type TeamTask,
} from "../agent/team.ts";
export type {
  AgentToolChunk,
  AgentToolDisplayMetadata,
  AgentToolFailure,
  AgentToolListener,
  AgentToolMilestone,
  AgentToolProgress,
  AgentToolProgressSnapshot,
  AgentToolRequest,
  AgentToolRunInspection,
  AgentToolRunStatus,
  AgentToolTerminalStatus,
  DetachedAgentToolConfig,
  DetachedRunAgentToolOptions,
  DetachedRunAgentToolResult,
  RunAgentToolOptions,
} from "../parts/runs/types.ts";
