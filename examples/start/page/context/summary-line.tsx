import "./summary-line.css";
import type { UseAgentChat } from "perdure/react";
import { createContext, type ReactNode, use, useId, useState } from "react";
import { Icon } from "../control/icon.tsx";
import { Markdown } from "../message/markdown.tsx";
import { inTokens } from "./tokens.ts";

/** A place up to which the model reads a summary. */
export type Summary = UseAgentChat["compactions"][number];

/** The summaries of a conversation, by the last message that they cover, and what can be done with them. */
export interface Summaries {
  readonly byMessage: ReadonlyMap<string, Summary>;
  /** How many messages the model reads a summary of; undefined when not all are loaded. */
  readonly covered: number | undefined;
  /** Undefined while something is under way. */
  readonly undo: ((id: string) => Promise<void>) | undefined;
}

export const SummariesContext = createContext<Summaries>({
  byMessage: new Map(),
  covered: undefined,
  undo: undefined,
});

/** What stands behind a message up to which the conversation is summarised; nothing behind others. */
export function SummaryAfter({ messageId }: { readonly messageId: string }): ReactNode {
  const summary = use(SummariesContext).byMessage.get(messageId);
  return summary === undefined ? null : <SummaryLine key={summary.id} summary={summary} />;
}

function SummaryLine({ summary }: { readonly summary: Summary }): ReactNode {
  const { covered, undo } = use(SummariesContext);
  const [open, setOpen] = useState(false);
  const [problem, setProblem] = useState<string>();
  const id = useId();
  const { active, tokensBefore, tokensAfter } = summary;
  return (
    <section
      className="summary"
      aria-label="Summary for the model"
      data-testid="summary"
      data-active={active || undefined}
    >
      <div className="summary-line">
        <Icon name="compact" />
        <p>{wordsFor(summary, covered)}</p>
        {summary.summary.trim() !== "" && (
          <button
            type="button"
            className="fold"
            aria-expanded={open}
            aria-controls={open ? id : undefined}
            onClick={() => setOpen(!open)}
            data-testid="summary-open"
          >
            Summary
            <Icon name="chevron" />
          </button>
        )}
        {active && (
          <button
            type="button"
            className="fold"
            disabled={undo === undefined}
            data-testid="summary-undo"
            onClick={() => {
              setProblem(undefined);
              undo?.(summary.id).catch((error: unknown) =>
                setProblem(String(error instanceof Error ? error.message : error)),
              );
            }}
          >
            Undo
          </button>
        )}
      </div>
      {problem !== undefined && (
        <p className="summary-problem" role="alert">
          {problem}
        </p>
      )}
      {open && (
        <div id={id} className="summary-text">
          <Markdown text={summary.summary} live={false} />
          {tokensAfter !== null && (
            <p className="summary-size">
              {inTokens(tokensBefore)} became {inTokens(tokensAfter)}. Nothing was deleted: the messages above are as
              they were.
            </p>
          )}
        </div>
      )}
    </section>
  );
}

function wordsFor({ active, kind }: Summary, covered: number | undefined): string {
  if (kind === "prune") return "Long outputs of tools above are left out for the model";
  if (!active) return "An earlier summary for the model ended here";
  const what =
    covered === undefined
      ? "Everything above is"
      : covered === 1
        ? "One message is"
        : `${covered.toLocaleString("en")} messages are`;
  return kind === "truncate" ? `${what} left out for the model` : `${what} summarised for the model`;
}
