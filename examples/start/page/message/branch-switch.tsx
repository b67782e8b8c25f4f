import { type ReactNode, use } from "react";
import { IconButton } from "../control/icon-button.tsx";
import { MarksContext } from "./marks.ts";

/** Goes from one version of a message to the next: other answers to the same question, or edits of it. */
export function BranchSwitch({ messageId }: { readonly messageId: string }): ReactNode {
  const { branches, step } = use(MarksContext);
  const place = branches(messageId);
  if (place === undefined || place.count < 2) return null;
  const { index, count } = place;
  return (
    <div
      className="branch-switch"
      role="group"
      aria-label={`Version ${index + 1} of ${count}`}
      data-testid="branches"
      data-place={`${index + 1}/${count}`}
    >
      <IconButton
        icon="previous"
        label="Previous version"
        aria-disabled={index === 0}
        onClick={() => index > 0 && step(messageId, -1)}
        data-testid="previous-branch"
      />
      <span aria-hidden="true">
        {index + 1}/{count}
      </span>
      <IconButton
        icon="next"
        label="Next version"
        aria-disabled={index === count - 1}
        onClick={() => index < count - 1 && step(messageId, 1)}
        data-testid="next-branch"
      />
    </div>
  );
}
