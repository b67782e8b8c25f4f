import { type ReactNode, useEffect, useRef, useState } from "react";
import { MAX_TITLE } from "../../contract.ts";

interface Props {
  readonly title: string;
  /** Without a title: leave it as it is. */
  readonly onDone: (title?: string) => void;
}

/** Changes a title in its place. Enter and leaving the field keep it, Escape does not. */
export function RenameForm({ title, onDone }: Props): ReactNode {
  const [value, setValue] = useState(title);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  const finish = () => {
    const changed = value.trim();
    onDone(changed === "" || changed === title ? undefined : changed);
  };
  return (
    <input
      ref={input}
      value={value}
      maxLength={MAX_TITLE}
      aria-label="Title"
      data-testid="rename-input"
      onChange={(event) => setValue(event.target.value)}
      onBlur={finish}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Enter") finish();
        if (event.key !== "Escape") return;
        // The drawer stays open.
        event.preventDefault();
        event.stopPropagation();
        onDone();
      }}
    />
  );
}
