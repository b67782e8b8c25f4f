import type { AgentToolRunState } from "perdure/react";
import { memo, type ReactNode } from "react";
import { HELPER_TOOLS } from "../../contract.ts";
import { type ToolLike, toolNameOf } from "../message/parts.ts";
import { ToolCard } from "../message/tool-card.tsx";
import { RunCard } from "./run-card.tsx";
import { viewOfCall, viewOfRun } from "./run-view.ts";
import { useRuns, useRunsOf } from "./runs.tsx";

interface Props {
  readonly part: ToolLike;
  /** The message may still change by itself. */
  readonly live: boolean;
  readonly onAnswer: (id: string, approved: boolean) => void;
}

/** A tool call: the helpers that do it, or a card of its own. */
export const ToolCall = memo(function ToolCall(props: Props): ReactNode {
  const { part, live } = props;
  const runs = useRunsOf(part.toolCallId);
  if (runs.length > 0) return runs.map((run) => <Run key={run.runId} run={run} />);
  const isHelper = HELPER_TOOLS.has(toolNameOf(part)) && part.state !== "output-error";
  return isHelper ? <CallOfRun part={part} live={live} /> : <ToolCard {...props} />;
});

/** Helpers that no tool call asked for. */
export function UnboundRuns(): ReactNode {
  const { unboundRuns } = useRuns();
  if (unboundRuns.length === 0) return null;
  return (
    <section className="unbound" aria-label="In the background" data-testid="unbound">
      <h2>In the background</h2>
      <div className="calls">
        {unboundRuns.map((run) => (
          <Run key={run.runId} run={run} />
        ))}
      </div>
    </section>
  );
}

const Run = memo(function Run({ run }: { readonly run: AgentToolRunState }): ReactNode {
  const { open, stop } = useRuns();
  return <RunCard view={viewOfRun(run)} onOpen={open} onStop={stop} />;
});

function CallOfRun({ part, live }: Pick<Props, "part" | "live">): ReactNode {
  const { open } = useRuns();
  return <RunCard view={viewOfCall(part, live)} onOpen={open} onStop={undefined} />;
}
