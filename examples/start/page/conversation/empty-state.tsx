import "./empty-state.css";
import type { ReactNode } from "react";
import { SUGGESTIONS } from "../../contract.ts";
import { Icon } from "../control/icon.tsx";
import { Mark } from "../control/mark.tsx";

/** What a conversation shows before anything was said: what this is, and things to try. */
export function EmptyState({ onSend }: { readonly onSend: (text: string) => void }): ReactNode {
  return (
    <div className="empty" data-testid="empty">
      <Mark className="empty-mark" />
      <h2>Say something. It will last.</h2>
      <p>
        A chat with a durable agent. Refresh in the middle of an answer, open a second tab, stop the server: it carries
        on where it was.
      </p>
      <ul>
        {SUGGESTIONS.map(({ label, text }) => (
          <li key={text}>
            <button type="button" onClick={() => onSend(text)} data-testid="suggestion">
              <span className="suggestion-label">{label}</span>
              {text !== label && <span className="suggestion-text">{text}</span>}
              <Icon name="arrow" />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
