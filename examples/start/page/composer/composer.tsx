import "./composer.css";
import { type ClipboardEvent, type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import { Icon } from "../control/icon.tsx";
import { IconButton } from "../control/icon-button.tsx";
import type { FilePart } from "../message/parts.ts";
import { AttachButton } from "./attach-button.tsx";
import { DraftList } from "./draft-list.tsx";
import { useAttachments } from "./use-attachments.ts";
import { useDraft } from "./use-draft.ts";
import { useFileDrop } from "./use-file-drop.ts";
import { useGrowing } from "./use-growing.ts";

export const COMPOSER_ID = "composer-text";

interface Props {
  readonly conversation: string;
  readonly placeholder: string;
  /** Something is under way that can be stopped. */
  readonly busy: boolean;
  readonly onSend: (text: string, files: readonly FilePart[]) => void;
  readonly onStop: () => void;
}

/** Where the next message is written. Takes messages at any time: what cannot be sent now waits. */
export function Composer({ conversation, placeholder, busy, onSend, onStop }: Props): ReactNode {
  const [text, setText] = useDraft(conversation);
  const attachments = useAttachments();
  const { drafts, problem, add } = attachments;
  const area = useRef<HTMLTextAreaElement>(null);
  useGrowing(area, text);
  useEffect(() => {
    // On a touch screen the focus would open the keyboard over the conversation.
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, []);
  const isOver = useFileDrop((files) => void add(files));
  const canSend = text.trim() !== "" || drafts.length > 0;

  const send = () => {
    if (!canSend) return;
    onSend(
      text.trim(),
      drafts.map(({ part }) => part),
    );
    setText("");
    attachments.clear();
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    void add(event.clipboardData.files);
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      data-testid="composer"
      onClick={(event) => event.target === event.currentTarget && area.current?.focus()}
    >
      <DraftList drafts={drafts} onRemove={attachments.remove} />
      <p className="composer-problem" role="alert" hidden={problem === undefined} data-testid="attach-problem">
        {problem}
      </p>
      <div className="composer-row">
        <AttachButton onFiles={(files) => void add(files)} />
        <textarea
          ref={area}
          id={COMPOSER_ID}
          rows={1}
          value={text}
          placeholder={placeholder}
          aria-label="Message"
          enterKeyHint="send"
          data-testid="composer-input"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        {busy && <IconButton icon="stop" className="stop" label="Stop (Esc)" onClick={onStop} data-testid="stop" />}
        {(!busy || canSend) && (
          <button type="submit" className="send" aria-label="Send" title="Send" disabled={!canSend} data-testid="send">
            <Icon name="up" />
          </button>
        )}
      </div>
      {isOver && <div className="drop-hint">Drop files to attach them</div>}
    </form>
  );
}
