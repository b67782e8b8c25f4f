import type { ReactNode } from "react";
import { Dialog } from "./dialog.tsx";

interface Props {
  readonly title: string;
  readonly text: string;
  /** What the button that does it says. */
  readonly action: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before something that cannot be undone. */
export function Confirm({ title, text, action, onConfirm, onClose }: Props): ReactNode {
  return (
    <Dialog title={title} text={text} testId="confirm" onClose={onClose}>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onClose} data-testid="confirm-cancel">
          Cancel
        </button>
        <button
          type="button"
          className="button button-danger"
          data-testid="confirm-action"
          onClick={() => {
            onConfirm();
            onClose();
          }}
        >
          {action}
        </button>
      </div>
    </Dialog>
  );
}
