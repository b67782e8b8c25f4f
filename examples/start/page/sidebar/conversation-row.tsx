import "./conversation-row.css";
import { type MouseEvent, type ReactNode, useState } from "react";
import type { ConversationItem } from "../../contract.ts";
import { IconButton } from "../control/icon-button.tsx";
import { pathOf } from "../route/route.ts";
import { relativeTime } from "./relative-time.ts";
import { RenameForm } from "./rename-form.tsx";

interface Props {
  readonly item: ConversationItem;
  readonly isCurrent: boolean;
  readonly now: number;
  readonly onOpen: (id: string) => void;
  readonly onRename: (id: string, title: string) => void;
  readonly onDelete: (item: ConversationItem) => void;
}

/** One line of the list: a link to a conversation, and what can be done with it. */
export function ConversationRow({ item, isCurrent, now, onOpen, onRename, onDelete }: Props): ReactNode {
  const [renaming, setRenaming] = useState(false);
  const { id, title, updatedAt, from } = item;
  const open = (event: MouseEvent) => {
    // With a key held, the browser opens another tab or window.
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onOpen(id);
  };
  if (renaming) {
    return (
      <li className="row row-renaming" data-testid="conversation-item" data-id={id}>
        <RenameForm
          title={title}
          onDone={(changed) => {
            setRenaming(false);
            if (changed !== undefined) onRename(id, changed);
          }}
        />
      </li>
    );
  }
  return (
    <li className="row" data-testid="conversation-item" data-id={id} data-current={isCurrent || undefined}>
      <a href={pathOf(id)} onClick={open} aria-current={isCurrent ? "page" : undefined}>
        <span className="row-title">{title}</span>
        {from !== undefined && (
          <span className="row-from" data-testid="row-from">
            {from}
          </span>
        )}
        <time dateTime={new Date(updatedAt).toISOString()} title={new Date(updatedAt).toLocaleString()}>
          {relativeTime(updatedAt, now)}
        </time>
      </a>
      <div className="row-actions">
        <IconButton icon="pencil" label={`Rename ${title}`} onClick={() => setRenaming(true)} data-testid="rename" />
        <IconButton icon="trash" label={`Delete ${title}`} onClick={() => onDelete(item)} data-testid="delete" />
      </div>
    </li>
  );
}
