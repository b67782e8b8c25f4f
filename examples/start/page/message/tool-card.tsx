import "./tool-card.css";
import { memo, type ReactNode, use, useId, useState } from "react";
import { Icon } from "../control/icon.tsx";
import { Approval } from "./approval.tsx";
import { type Section, viewOfToolCall } from "./call-view.ts";
import { FilesAddress } from "./files.ts";
import { type CallState, callStateOf, toolNameOf, type ToolLike } from "./parts.ts";

const words: Record<CallState, string> = {
  running: "Running",
  waiting: "Needs approval",
  done: "Done",
  failed: "Failed",
  denied: "Denied",
  stopped: "Stopped",
};

interface Props {
  readonly part: ToolLike;
  /** The message may still change by itself. */
  readonly live: boolean;
  readonly onAnswer: (id: string, approved: boolean) => void;
}

/** A tool call: what was called with what, where it stands, and what came of it. */
export const ToolCard = memo(function ToolCard({ part, live, onAnswer }: Props): ReactNode {
  const [open, setOpen] = useState(false);
  const id = useId();
  const name = toolNameOf(part);
  const state = callStateOf(part, live);
  const view = viewOfToolCall(name, part.input, part.state === "output-available" ? part.output : undefined);
  const files = use(FilesAddress);
  return (
    <div className="tool-card" data-testid="tool-card" data-tool={name} data-state={state}>
      <button
        type="button"
        className="tool-head"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        <span className="tool-name">{name}</span>
        <span className="tool-brief">{state === "waiting" ? "" : view.brief}</span>
        {view.result !== "" && <span className="tool-result">{view.result}</span>}
        <span className="tool-state">{words[state]}</span>
        <Icon name="chevron" />
      </button>
      {part.approval !== undefined && <Approval part={part} onAnswer={onAnswer} />}
      {part.state === "output-error" && <p className="tool-error">{part.errorText}</p>}
      {view.problem !== undefined && <p className="tool-error">{view.problem}</p>}
      {view.picture !== undefined && files !== undefined && (
        <img className="tool-picture" src={files + view.picture.hash} alt={view.picture.path} loading="lazy" />
      )}
      {open && (
        <div id={id} className="tool-detail">
          {view.sections.map((section) => (
            <Value key={section.name} {...section} />
          ))}
        </div>
      )}
    </div>
  );
});

function Value({ name, text }: Section): ReactNode {
  return (
    <section className="tool-value">
      <h3>{name}</h3>
      <pre tabIndex={0} role="region" aria-label={name}>
        {text}
      </pre>
    </section>
  );
}
