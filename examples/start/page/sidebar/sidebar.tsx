import "./sidebar.css";
import { type ReactNode, useState } from "react";
import type { ConversationItem } from "../../contract.ts";
import { Confirm } from "../control/confirm.tsx";
import { Icon } from "../control/icon.tsx";
import { IconButton } from "../control/icon-button.tsx";
import { Mark } from "../control/mark.tsx";
import { ConversationRow } from "./conversation-row.tsx";
import { useNow } from "./use-now.ts";

interface Props {
  /** Undefined until the list has come. */
  readonly items: readonly ConversationItem[] | undefined;
  readonly currentId: string;
  readonly isOffline: boolean;
  /** Why the last change was not made. */
  readonly problem: string | undefined;
  /** Closes the drawer; undefined where the list is always in sight. */
  readonly onClose: (() => void) | undefined;
  readonly onNew: () => void;
  readonly onOpen: (id: string) => void;
  readonly onRename: (id: string, title: string) => void;
  readonly onDelete: (id: string) => void;
}

/** The list of conversations. */
export function Sidebar(props: Props): ReactNode {
  const { items, currentId, isOffline, problem, onClose, onNew, onOpen, onRename, onDelete } = props;
  const now = useNow();
  const [doomed, setDoomed] = useState<ConversationItem>();
  return (
    <nav className="sidebar" aria-label="Conversations" data-testid="sidebar">
      <div className="brand">
        <Mark className="brand-mark" />
        <span>Perdure</span>
        {onClose !== undefined && <IconButton icon="close" label="Close" onClick={onClose} data-testid="close-menu" />}
      </div>
      <button type="button" className="new" onClick={onNew} data-testid="new-conversation">
        <Icon name="plus" />
        New conversation
      </button>
      {problem !== undefined && (
        <p className="list-problem" role="alert">
          {problem}
        </p>
      )}
      {items?.length === 0 && <p className="list-empty">What you talk about is listed here.</p>}
      <ul className="list">
        {items?.map((item) => (
          <ConversationRow
            key={item.id}
            item={item}
            isCurrent={item.id === currentId}
            now={now}
            onOpen={onOpen}
            onRename={onRename}
            onDelete={setDoomed}
          />
        ))}
      </ul>
      <p className="connection" data-offline={isOffline || undefined} data-testid="connection">
        {isOffline ? "Waiting for the server" : "In sync with the server"}
      </p>
      {doomed !== undefined && (
        <Confirm
          title={`Delete “${doomed.title}”?`}
          text="The conversation and everything it kept are gone for good."
          action="Delete"
          onConfirm={() => onDelete(doomed.id)}
          onClose={() => setDoomed(undefined)}
        />
      )}
    </nav>
  );
}
