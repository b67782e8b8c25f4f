import "./context-meter.css";
import type { UseAgentChat } from "perdure/react";
import { type ReactNode, useState } from "react";
import { CompactDialog } from "./compact-dialog.tsx";
import { ContextDialog } from "./context-dialog.tsx";
import { inNumbers, inTokens, percentOf } from "./tokens.ts";

/** From here on it is said that there is not much room left, in percent. */
const NARROW = 80;

interface Props {
  readonly chat: UseAgentChat;
  /** Something is under way: nothing can be summarised now. */
  readonly busy: boolean;
}

/** How full the model's window is. Opens what fills it. Nothing where nobody knows. */
export function ContextMeter({ chat, busy }: Props): ReactNode {
  const [open, setOpen] = useState<"report" | "compact">();
  const state = chat.contextState;
  const percent = state === null ? 0 : percentOf(state.tokens, state.usable);
  const close = () => setOpen(undefined);
  return (
    <>
      {state !== null && chat.messages.length > 0 && (
        <button
          type="button"
          className="meter"
          onClick={() => setOpen("report")}
          aria-haspopup="dialog"
          aria-label={`The model's window is ${state.estimated ? "about " : ""}${percent} percent full: ${inNumbers(state.tokens)} of ${inTokens(state.usable)}`}
          title={`${state.estimated ? "About " : ""}${inNumbers(state.tokens)} of ${inTokens(state.usable)}`}
          data-testid="meter"
          data-percent={percent}
          data-estimated={state.estimated || undefined}
          data-narrow={percent >= NARROW || undefined}
        >
          <span className="meter-bar" aria-hidden="true">
            <span style={{ width: `${percent}%` }} />
          </span>
          <span aria-hidden="true">
            {state.estimated && "~"}
            {percent} %<span className="meter-word"> of the window</span>
          </span>
        </button>
      )}
      {open === "report" && (
        <ContextDialog chat={chat} onCompact={busy ? undefined : () => setOpen("compact")} onClose={close} />
      )}
      {open === "compact" && <CompactDialog chat={chat} onClose={close} />}
    </>
  );
}
