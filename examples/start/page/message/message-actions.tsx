import { type ReactNode, use } from "react";
import { IconButton } from "../control/icon-button.tsx";
import { useCopy } from "../control/use-copy.ts";
import { BranchSwitch } from "./branch-switch.tsx";
import { MarksContext } from "./marks.ts";

interface Props {
  readonly id: string;
  readonly text: string;
  readonly onEdit: (() => void) | undefined;
  readonly onRegenerate: (() => void) | undefined;
}

/** What can be done with a message. */
export function MessageActions({ id, text, onEdit, onRegenerate }: Props): ReactNode {
  const { copied, copy } = useCopy();
  const marks = use(MarksContext);
  const isPinned = marks.pins.has(id);
  return (
    <div className="message-actions">
      <BranchSwitch messageId={id} />
      <IconButton
        icon="pin"
        label={isPinned ? "Do not keep it word by word" : "Keep it word by word for the model"}
        className="pin"
        aria-pressed={isPinned}
        onClick={() => marks.setPinned(id, !isPinned)}
        data-testid="pin"
      />
      {text !== "" && (
        <IconButton
          icon={copied ? "check" : "copy"}
          label={copied ? "Copied" : "Copy message"}
          onClick={() => copy(text)}
          data-testid="copy"
        />
      )}
      {onEdit !== undefined && <IconButton icon="pencil" label="Edit message" onClick={onEdit} data-testid="edit" />}
      {onRegenerate !== undefined && (
        <IconButton icon="again" label="Answer again" onClick={onRegenerate} data-testid="regenerate" />
      )}
      <IconButton
        icon="branch"
        label="Continue from here in a copy"
        onClick={() => marks.copy(id)}
        data-testid="fork"
      />
    </div>
  );
}
