import "./confirm.css";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";

interface Props {
  readonly title: string;
  readonly text: string;
  /** What the button that does it says. */
  readonly action: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before something that cannot be undone. Modal for as long as it is there; gives the focus back. */
export function Confirm({ title, text, action, onConfirm, onClose }: Props): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [before] = useState(() => document.activeElement);
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [before]);
  return (
    <dialog
      ref={dialog}
      className="confirm"
      aria-labelledby={`${id}title`}
      aria-describedby={`${id}text`}
      data-testid="confirm"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className="confirm-body">
        <h2 id={`${id}title`}>{title}</h2>
        <p id={`${id}text`}>{text}</p>
        <div className="confirm-actions">
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
      </div>
    </dialog>
  );
}
