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
  const { pins, setPinned } = use(MarksContext);
  const isPinned = pins.has(id);
  return (
    <div className="message-actions">
      <BranchSwitch messageId={id} />
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
        icon="pin"
        label={isPinned ? "Do not keep it word by word" : "Keep it word by word for the model"}
        className="pin"
        aria-pressed={isPinned}
        onClick={() => setPinned(id, !isPinned)}
        data-testid="pin"
      />
    </div>
  );
}
