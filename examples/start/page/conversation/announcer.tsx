import { type ReactNode, use, useEffect, useRef, useState } from "react";
import { type ChatMessage, isTool, textOf, toolNameOf } from "../message/parts.ts";
import { inWords } from "../message/pretty.ts";
import { Speaker } from "../message/speaker.ts";

/** Nobody wants to listen to more at once; the rest can be read. */
const MAX_SPOKEN = 600;

/** Tells screen readers of answers when they are complete, not word by word. */
export function Announcer(props: { readonly messages: readonly ChatMessage[]; readonly isBusy: boolean }): ReactNode {
  const { messages, isBusy } = props;
  const [said, setSaid] = useState<readonly { readonly key: number; readonly text: string }[]>([]);
  const wasBusy = useRef(false);
  const last = messages.at(-1);
  const speaker = use(Speaker);
  useEffect(() => {
    if (wasBusy.current && !isBusy && last?.role === "assistant") {
      const text = `${speaker}: ${spoken(last)}`;
      // Two at a time: what is added is read out, what was said goes.
      setSaid((before) => [...before.slice(-1), { key: (before.at(-1)?.key ?? 0) + 1, text }]);
    }
    wasBusy.current = isBusy;
  }, [isBusy, last, speaker]);
  return (
    <div className="visually-hidden" role="log" aria-live="polite" aria-label="New answers" data-testid="announcer">
      {said.map(({ key, text }) => (
        <p key={key}>{text}</p>
      ))}
    </div>
  );
}

function spoken(message: ChatMessage): string {
  const waiting = message.parts.filter(isTool).find((part) => part.state === "approval-requested");
  const text = textOf(message).replaceAll(/[#*_`|>]+/g, " ");
  const asks = waiting === undefined ? "" : ` Your approval is needed to ${inWords(toolNameOf(waiting))}.`;
  return `${text.length > MAX_SPOKEN ? `${text.slice(0, MAX_SPOKEN)}…` : text}${asks}`;
}
