import { type ReactNode, useRef } from "react";
import { IconButton } from "../control/icon-button.tsx";

/** Opens the system's file dialog. */
export function AttachButton({ onFiles }: { readonly onFiles: (files: FileList) => void }): ReactNode {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        tabIndex={-1}
        aria-label="Files"
        data-testid="attach-input"
        onChange={({ target }) => {
          if (target.files !== null) onFiles(target.files);
          // So that the same file can be chosen again.
          target.value = "";
        }}
      />
      <IconButton icon="clip" label="Attach files" onClick={() => input.current?.click()} data-testid="attach" />
    </>
  );
}
