import "./context-meter.css";
import type { UseAgentChat } from "perdure/react";
import { type ReactNode, useEffect, useState } from "react";
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

/** How full the model's window is, if that is known. Opens what fills it. */
export function ContextMeter({ chat, busy }: Props): ReactNode {
  const [open, setOpen] = useState<"report" | "compact">();
  const state = useKnown(chat);
  const close = () => setOpen(undefined);
  return (
    <>
      {chat.messages.length > 0 && <MeterButton state={state} onClick={() => setOpen("report")} />}
      {open === "report" && (
        <ContextDialog chat={chat} onCompact={busy ? undefined : () => setOpen("compact")} onClose={close} />
      )}
      {open === "compact" && <CompactDialog chat={chat} onClose={close} />}
    </>
  );
}

type Known = Pick<NonNullable<UseAgentChat["contextState"]>, "tokens" | "usable" | "estimated">;

/** How full it is. An agent that was not asked anything since it woke has to work it out first, so that is done once. */
function useKnown({ contextState, session, messages, report }: UseAgentChat): Known | null {
  const [guess, setGuess] = useState<{ readonly of: string; readonly state: Known }>();
  const here = session?.id;
  const isUnknown = contextState === null && messages.length > 0;
  useEffect(() => {
    if (!isUnknown || here === undefined) return;
    let isCurrent = true;
    report().then(
      ({ used, usable }) => isCurrent && setGuess({ of: here, state: { tokens: used, usable, estimated: true } }),
      // Then it is not said.
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [isUnknown, here, report]);
  return contextState ?? (guess !== undefined && guess.of === here && isUnknown ? guess.state : null);
}

interface ButtonProps {
  readonly state: Known | null;
  readonly onClick: () => void;
}

function MeterButton({ state, onClick }: ButtonProps): ReactNode {
  const percent = state === null ? undefined : percentOf(state.tokens, state.usable);
  const estimated = state?.estimated === true;
  const size = state === null ? "" : `${inNumbers(state.tokens)} of ${inTokens(state.usable)}`;
  return (
    <button
      type="button"
      className="meter"
      onClick={onClick}
      aria-haspopup="dialog"
      title={size === "" ? "What fills the model's window" : `${estimated ? "About " : ""}${size}`}
      data-testid="meter"
      data-percent={percent}
      data-estimated={estimated || undefined}
      data-narrow={(percent ?? 0) >= NARROW || undefined}
    >
      <span className="meter-bar" aria-hidden="true">
        {percent !== undefined && <span style={{ width: `${percent}%` }} />}
      </span>
      <span>
        {percent === undefined ? "The window" : `${estimated ? "~" : ""}${percent} %`}
        {percent !== undefined && <span className="meter-word"> of the window</span>}
        {size !== "" && <span className="visually-hidden">{`, ${estimated ? "about " : ""}${size}`}</span>}
      </span>
    </button>
  );
}
