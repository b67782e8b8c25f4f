import type { AgentToolRunState } from "perdure/react";
import { callStateOf, isTool, type Part, type ToolLike, toolNameOf } from "../message/parts.ts";
import { brief, inWords } from "../message/pretty.ts";
import type { Step } from "../route/route.ts";

/** Where a helper stands, as the page tells it. `lost`: nobody knows what became of it. */
export type RunState = "starting" | "working" | "waiting" | "done" | "failed" | "stopped" | "lost";

/** What a card shows of a helper. */
export interface RunView {
  /** Undefined as long as only its call is known. */
  readonly runId: string | undefined;
  readonly name: string;
  /** What it was asked for, in a line. */
  readonly task: string;
  readonly state: RunState;
  readonly progress: { readonly fraction: number | undefined; readonly words: string } | undefined;
  readonly milestones: readonly string[];
  readonly parts: readonly Part[];
  /** Why it ended without a result. */
  readonly note: string | undefined;
  /** Where its own conversation is. */
  readonly step: Step | undefined;
}

const ENDS = { completed: "done", error: "failed", aborted: "stopped", interrupted: "lost" } as const;

export function viewOfRun(run: AgentToolRunState): RunView {
  const { runId, status, parts, progress, milestones = [] } = run;
  const asks = parts.some((part) => isTool(part) && part.state === "approval-requested");
  const isOpen = status === "running";
  return {
    runId,
    name: run.display?.name ?? titleOf(run.agentType),
    task: brief(run.inputPreview),
    state: isOpen ? (asks ? "waiting" : "working") : ENDS[status],
    progress:
      isOpen && !asks && progress !== undefined
        ? { fraction: progress.fraction, words: [progress.phase, progress.message].filter(Boolean).join(": ") }
        : undefined,
    // A tool that runs again after a crash reaches them again.
    milestones: [...new Set(milestones.map(({ name }) => name))],
    // A run of long ago is told without what its child said.
    parts: parts.length === 0 && run.summary !== undefined ? textParts(run.summary) : parts,
    note: status === "completed" || isOpen ? undefined : run.error,
    step: run.subAgent,
  };
}

/** What is shown of a call while nothing was heard of its run: just now asked for, or the page was just loaded. */
export function viewOfCall(part: ToolLike, live: boolean): RunView {
  const call = callStateOf(part, live);
  const output = part.state === "output-available" ? part.output : undefined;
  return {
    runId: undefined,
    name: titleOf(toolNameOf(part)),
    task: brief(part.input),
    state: call === "done" ? "done" : call === "running" ? "starting" : "stopped",
    progress: undefined,
    milestones: [],
    parts: typeof output === "string" ? textParts(output) : [],
    note: undefined,
    step: undefined,
  };
}

/** `tidy-up` and `TidyUp` are "Tidy up". */
export function titleOf(name: string): string {
  const words = inWords(name).trim();
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

function textParts(text: string): Part[] {
  return text === "" ? [] : [{ type: "text", text }];
}
