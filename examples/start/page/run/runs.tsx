import { type AgentClient, type AgentToolRunState, useAgentToolEvents, type UseAgentToolEvents } from "perdure/react";
import { createContext, type ReactNode, use, useMemo } from "react";
import type { Step } from "../route/route.ts";

interface Runs extends Pick<UseAgentToolEvents, "getRunsForToolCall" | "unboundRuns"> {
  /** Shows the conversation of a helper. */
  readonly open: (step: Step) => void;
  /** Stops a helper; undefined where that cannot be asked for. */
  readonly stop: ((runId: string) => Promise<void>) | undefined;
}

const RunsContext = createContext<Runs>({
  getRunsForToolCall: () => [],
  unboundRuns: [],
  open: () => {},
  stop: undefined,
});

interface Props {
  readonly agent: AgentClient;
  readonly canStop: boolean;
  readonly onOpen: (step: Step) => void;
  readonly children: ReactNode;
}

/** Follows the helpers of a conversation. Only what shows them is drawn again when they say something. */
export function RunsProvider({ agent, canStop, onOpen, children }: Props): ReactNode {
  const { getRunsForToolCall, unboundRuns } = useAgentToolEvents({ agent });
  const stop = useMemo(() => {
    return canStop ? async (runId: string) => void (await agent.call("stopRun", [runId])) : undefined;
  }, [agent, canStop]);
  const value = useMemo(
    () => ({ getRunsForToolCall, unboundRuns, open: onOpen, stop }),
    [getRunsForToolCall, unboundRuns, onOpen, stop],
  );
  return <RunsContext value={value}>{children}</RunsContext>;
}

export function useRuns(): Runs {
  return use(RunsContext);
}

/** The helpers that a tool call asked for. */
export function useRunsOf(toolCallId: string): readonly AgentToolRunState[] {
  return use(RunsContext).getRunsForToolCall(toolCallId);
}
