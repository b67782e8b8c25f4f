import "./dialog.css";
import { type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";

interface Props {
  readonly title: string;
  /** A sentence that belongs to the title. */
  readonly text?: string | undefined;
  readonly className?: string;
  readonly testId: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A window over the page. Modal for as long as it is there; gives the focus back. */
export function Dialog({ title, text, className = "", testId, onClose, children }: Props): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [before] = useState(() => document.activeElement);
  // In the layout, so that the focus is back before something else takes it.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element?.open === false) element.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [before]);
  return (
    <dialog
      ref={dialog}
      className={`dialog ${className}`}
      aria-labelledby={`${id}title`}
      aria-describedby={text === undefined ? undefined : `${id}text`}
      data-testid={testId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className="dialog-body">
        <h2 id={`${id}title`}>{title}</h2>
        {text !== undefined && <p id={`${id}text`}>{text}</p>}
        {children}
      </div>
    </dialog>
  );
}
