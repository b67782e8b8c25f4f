import "../control/shimmer.css";
import "./hints.css";
import type { UseAgentChat } from "perdure/react";
import type { ReactNode } from "react";
import { Icon } from "../control/icon.tsx";
import { useLasting } from "../control/use-lasting.ts";
import type { View } from "./view.ts";

/** Turns that run are found soon after the connection is there; before that one cannot know. */
const UNANSWERED_MS = 2000;

interface Props {
  readonly chat: UseAgentChat;
  readonly view: View;
  readonly isOffline: boolean;
  readonly onRetry: () => void;
}

/** What there is to say behind the last message: that somebody is at work, or what went wrong. */
export function Hints({ chat, view, isOffline, onRetry }: Props): ReactNode {
  const { error, isRecovering, clearError } = chat;
  const isUnanswered = useLasting(view.isUnanswered && !isOffline, UNANSWERED_MS);
  if (error !== undefined) {
    return (
      <div className="notice notice-bad" role="alert" data-testid="error">
        <Icon name="alert" />
        <p>{error.message}</p>
        <div className="notice-actions">
          <button type="button" className="button" onClick={onRetry} data-testid="retry">
            Try again
          </button>
          <button type="button" className="button button-plain" onClick={clearError}>
            Dismiss
          </button>
        </div>
      </div>
    );
  }
  if (isRecovering) {
    return (
      <p className="working" role="status" data-testid="recovering">
        <span className="shimmer">The answer was cut off. The server carries it on…</span>
      </p>
    );
  }
  if (view.isWaiting) {
    return (
      <p className="working" data-testid="waiting">
        <span className="shimmer">{isOffline ? "Waiting for the connection…" : "Thinking…"}</span>
      </p>
    );
  }
  if (!isUnanswered) return null;
  return (
    <div className="notice" data-testid="unanswered">
      <p>There is no answer to this message.</p>
      <div className="notice-actions">
        <button type="button" className="button" onClick={onRetry}>
          Ask again
        </button>
      </div>
    </div>
  );
}
