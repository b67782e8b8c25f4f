import "./context-dialog.css";
import type { UseAgentChat } from "perdure/react";
import { type ReactNode, useEffect, useState } from "react";
import { Dialog } from "../control/dialog.tsx";
import { inNumbers, inTokens, percentOf } from "./tokens.ts";

type Report = Awaited<ReturnType<UseAgentChat["report"]>>;
type Kind = keyof Report["byKind"];

const KINDS: readonly (readonly [Kind, string])[] = [
  ["system", "Instructions"],
  ["block", "Memory"],
  ["tools", "Tools"],
  ["summary", "Summary"],
  ["carried", "State carried over"],
  ["pinned", "Pinned messages"],
  ["message", "Messages"],
  ["tool-output", "Outputs of tools"],
  ["file", "Files"],
];
const LEFT_OUT: readonly (readonly [keyof Report["leftOutByKind"], string])[] = [
  ["summarised", "Summarised"],
  ["superseded", "Read again since"],
  ["cleared", "Cleared to make room"],
  ["bounded", "Too long to show at once"],
];
/** So many of the largest things are listed. */
const LARGEST = 5;

interface Props {
  readonly chat: UseAgentChat;
  /** Undefined when nothing can be summarised now. */
  readonly onCompact: (() => void) | undefined;
  readonly onClose: () => void;
}

/** What fills the model's window, kind by kind. */
export function ContextDialog({ chat, onCompact, onClose }: Props): ReactNode {
  const { report: ask, contextState } = chat;
  const [report, setReport] = useState<Report>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    ask().then(
      (told) => isCurrent && setReport(told),
      (error: unknown) => isCurrent && setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      isCurrent = false;
    };
    // Asked again when it has changed.
  }, [ask, contextState]);
  return (
    <Dialog title="What the model reads" className="context-dialog" testId="context" onClose={onClose}>
      {problem !== undefined && (
        <p className="dialog-problem" role="alert">
          {problem}
        </p>
      )}
      {report === undefined ? (
        problem === undefined && <p role="status">Counting…</p>
      ) : (
        <Filled report={report} next={contextState?.tokens ?? 0} />
      )}
      <div className="dialog-actions">
        <button
          type="button"
          className="button"
          disabled={onCompact === undefined}
          onClick={onCompact}
          data-testid="compact"
        >
          Summarise now…
        </button>
        <button type="button" className="button button-primary" onClick={onClose} data-testid="context-close">
          Close
        </button>
      </div>
    </Dialog>
  );
}

/** @param next how much the next request has at least: the last one and the answer to it. */
function Filled({ report, next }: { readonly report: Report; readonly next: number }): ReactNode {
  const { used, usable, limit, estimated, byKind } = report;
  const kinds = KINDS.filter(([kind]) => byKind[kind] > 0);
  const largest = report.items
    .filter(({ kind }) => kind !== "system" && kind !== "tools")
    .toSorted((a, b) => b.tokens - a.tokens)
    .slice(0, LARGEST);
  return (
    <>
      <p data-testid="context-used" data-estimated={estimated || undefined}>
        {estimated ? "About " : ""}
        <strong>{inNumbers(used)}</strong> of {inTokens(usable)}, {percentOf(used, usable)} %.{" "}
        {estimated ? "This is an estimate: the model has not counted yet." : "The model counted them."}
        {next > used && ` With the answer, the next request begins at ${inNumbers(next)}.`}
      </p>
      <div className="context-bar" aria-hidden="true">
        {kinds.map(([kind]) => (
          <span key={kind} data-kind={kind} style={{ width: `${(byKind[kind] / Math.max(used, usable)) * 100}%` }} />
        ))}
      </div>
      <dl className="context-kinds">
        {kinds.map(([kind, label]) => (
          <div key={kind} data-kind={kind} data-testid="context-kind">
            <dt>{label}</dt>
            <dd>{inNumbers(byKind[kind])}</dd>
          </div>
        ))}
        <div data-kind="free">
          <dt>Free</dt>
          <dd>{inNumbers(Math.max(0, usable - used))}</dd>
        </div>
      </dl>
      {largest.length > 0 && (
        <>
          <h3>The largest</h3>
          <ol className="context-largest">
            {largest.map(({ label, tokens }, at) => (
              <li key={at}>
                <span>{label}</span>
                <span>{inNumbers(tokens)}</span>
              </li>
            ))}
          </ol>
        </>
      )}
      <LeftOut report={report} />
      <p className="context-note">
        {report.model} reads {inTokens(limit)}; {inNumbers(limit - usable)} are kept free for its answer.
      </p>
    </>
  );
}

/** What the model does not read, and what it would cost to have it back. */
function LeftOut({ report }: { readonly report: Report }): ReactNode {
  const { leftOutByKind, leftOut, cost } = report;
  const kinds = LEFT_OUT.filter(([kind]) => leftOutByKind[kind] > 0);
  if (kinds.length === 0) return null;
  return (
    <>
      <h3>Left out</h3>
      <dl className="context-kinds">
        {kinds.map(([kind, label]) => (
          <div key={kind} data-kind={kind} data-testid="context-left-out">
            <dt>
              {label} ({leftOut.filter((item) => item.kind === kind).length})
            </dt>
            <dd>{inNumbers(leftOutByKind[kind])}</dd>
          </div>
        ))}
      </dl>
      {cost !== undefined && (
        <p className="context-note" data-testid="context-cost">
          A request costs ${cost.sent.toFixed(4)}; with all of it, ${cost.whole.toFixed(4)}.
        </p>
      )}
    </>
  );
}
