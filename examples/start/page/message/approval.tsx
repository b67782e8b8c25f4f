import { type ReactNode, use, useId, useRef } from "react";
import type { ToolLike } from "./parts.ts";
import { inWords, pretty } from "./pretty.ts";
import { toolNameOf } from "./parts.ts";
import { Speaker } from "./speaker.ts";

const SHORT_LINES = 4;

interface Props {
  readonly part: ToolLike;
  readonly onAnswer: (id: string, approved: boolean) => void;
}

/** Asks whether a call may run, and afterwards says what was answered, here or elsewhere. */
export function Approval({ part, onAnswer }: Props): ReactNode {
  const id = useId();
  const speaker = use(Speaker);
  const asked = useRef(part.state === "approval-requested");
  /** A call may ask again in the middle: each question has an id of its own. */
  const answered = useRef<string>(undefined);
  const { approval } = part;
  if (approval === undefined) return null;
  if (part.state !== "approval-requested") {
    const elsewhere = asked.current && answered.current !== approval.id;
    return <p className="approval-answer">{answerOf(approval.approved, elsewhere)}</p>;
  }
  const answer = (approved: boolean) => {
    answered.current = approval.id;
    onAnswer(approval.id, approved);
  };
  return (
    <div className="approval" data-testid="approval" role="group" aria-labelledby={id}>
      <p id={id} className="approval-question">
        {speaker} wants to <strong>{wishOf(toolNameOf(part))}</strong>. Allow it?
      </p>
      {approval.requestReason !== undefined && <p className="approval-reason">{approval.requestReason}</p>}
      <dl className="approval-arguments">
        {Object.entries(argumentsOf(part.input)).map(([name, value]) => (
          <div key={name}>
            <dt>{inWords(name)}</dt>
            <dd>
              {(Array.isArray(value) ? value : [value]).map((one, index) => (
                <Argument key={index} name={inWords(name)} text={pretty(one)} />
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <div className="approval-actions">
        <button type="button" className="button button-primary" data-testid="approve" onClick={() => answer(true)}>
          Approve
        </button>
        <button type="button" className="button" data-testid="deny" onClick={() => answer(false)}>
          Deny
        </button>
      </div>
    </div>
  );
}

/** What is long, like code, scrolls in a box of its own. */
function Argument({ name, text }: { readonly name: string; readonly text: string }): ReactNode {
  if (text.split("\n").length <= SHORT_LINES) return <span>{text}</span>;
  return (
    <pre tabIndex={0} role="region" aria-label={name}>
      {text}
    </pre>
  );
}

/** Code asks in its middle, for one of the tools that it calls. */
function wishOf(toolName: string): string {
  return toolName === "execute" ? "go on with its code" : inWords(toolName);
}

function answerOf(approved: boolean | undefined, elsewhere: boolean): string {
  if (approved === undefined) return "The question was not answered.";
  return `${approved ? "Approved" : "Denied"}${elsewhere ? " in another tab" : ""}.`;
}

function argumentsOf(input: unknown): Record<string, unknown> {
  if (typeof input !== "object" || input === null) return input === undefined ? {} : { with: input };
  return Array.isArray(input) ? { with: input } : { ...input };
}
