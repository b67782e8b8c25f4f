import type { ReactNode } from "react";
import { IconButton } from "../control/icon-button.tsx";
import { useCopy } from "../control/use-copy.ts";

interface Props {
  readonly text: string;
  readonly onEdit: (() => void) | undefined;
  readonly onRegenerate: (() => void) | undefined;
}

/** What can be done with a message. */
export function MessageActions({ text, onEdit, onRegenerate }: Props): ReactNode {
  const { copied, copy } = useCopy();
  return (
    <div className="message-actions">
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
    </div>
  );
}
