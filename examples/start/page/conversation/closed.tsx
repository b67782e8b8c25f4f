import "./closed.css";
import type { ReactNode } from "react";
import { goTo, newConversationId } from "../route/route.ts";
import { type BarProps, Topbar } from "./topbar.tsx";

interface Props extends BarProps {
  /** What the server said, if it said anything. */
  readonly reason?: string;
  readonly onRetry?: () => void;
}

/** Stands for a conversation that is not there: it was deleted, or never was. */
export function Closed({ reason, onRetry, ...bar }: Props): ReactNode {
  return (
    <>
      <Topbar {...bar} onClear={undefined} />
      <div className="scroll closed" role="alert" data-testid="closed">
        <h2>This conversation is gone</h2>
        <p>It was deleted, or the address is wrong.</p>
        {reason !== undefined && <p className="closed-reason">{reason}</p>}
        <div className="closed-actions">
          <button type="button" className="button button-primary" onClick={() => goTo(newConversationId(), "replace")}>
            Start a new one
          </button>
          {onRetry !== undefined && (
            <button type="button" className="button" onClick={onRetry}>
              Connect again
            </button>
          )}
        </div>
      </div>
    </>
  );
}
