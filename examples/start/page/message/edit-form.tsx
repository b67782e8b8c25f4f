import "./edit-form.css";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useGrowing } from "../composer/use-growing.ts";

interface Props {
  readonly text: string;
  readonly onSave: (text: string) => void;
  readonly onCancel: () => void;
}

/** Changes a message in its place. */
export function EditForm({ text, onSave, onCancel }: Props): ReactNode {
  const [value, setValue] = useState(text);
  const area = useRef<HTMLTextAreaElement>(null);
  useGrowing(area, value);
  useEffect(() => {
    area.current?.focus();
    area.current?.setSelectionRange(text.length, text.length);
    // The conversation makes room for the form, which may push its beginning out of sight.
    const frame = requestAnimationFrame(() => area.current?.scrollIntoView({ block: "nearest" }));
    return () => cancelAnimationFrame(frame);
  }, [text]);
  const canSave = value.trim() !== "";
  const save = () => {
    if (canSave) onSave(value);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      onCancel();
    }
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    save();
  };
  return (
    <form
      className="edit-form"
      data-testid="edit-form"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <textarea
        ref={area}
        rows={1}
        value={value}
        aria-label="Edit message"
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="edit-actions">
        <span>Sent as another version. This one stays, with what came after it.</span>
        <button type="button" className="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" className="button button-primary" disabled={!canSave}>
          Send
        </button>
      </div>
    </form>
  );
}
