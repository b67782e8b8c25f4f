import { Fragment, memo, type ReactNode, useCallback, useRef } from "react";
import { SummaryAfter } from "../context/summary-line.tsx";
import { Message, type MessageHandlers } from "../message/message.tsx";
import type { Stretch } from "./stretches.ts";
import { useNear } from "./use-near.ts";

/** How tall a message is taken for that was never drawn. */
const GUESS_REM = 8;

interface Props {
  readonly stretch: Stretch;
  readonly startsNear: boolean;
  /** Draw it, wherever it is. */
  readonly mustShow: boolean;
  readonly firstId: string | undefined;
  readonly lastId: string | undefined;
  readonly liveId: string | undefined;
  readonly foundId: string | undefined;
  readonly busy: boolean;
  readonly handlers: MessageHandlers;
}

/** Some messages, or as much room as they took when they were drawn last. */
export const StretchView = memo(function StretchView(props: Props): ReactNode {
  const { stretch, startsNear, mustShow, firstId, lastId, liveId, foundId, busy, handlers } = props;
  const box = useRef<HTMLDivElement>(null);
  const height = useRef<number>(undefined);
  const measure = useCallback(() => {
    // Room that stands for messages tells nothing about them.
    if (box.current?.hasChildNodes() === true) height.current = box.current.getBoundingClientRect().height;
  }, []);
  const isNear = useNear(box, startsNear, measure);
  const { messages } = stretch;
  if (!isNear && !mustShow) {
    const room = height.current === undefined ? `${messages.length * GUESS_REM}rem` : `${height.current}px`;
    return <div ref={box} className="stretch" data-count={messages.length} style={{ height: room }} />;
  }
  return (
    <div ref={box} className="stretch" data-count={messages.length}>
      {messages.map((message) => (
        <Fragment key={message.id}>
          <Message
            message={message}
            live={message.id === liveId}
            isFirst={message.id === firstId}
            isLast={message.id === lastId}
            isFound={message.id === foundId}
            busy={busy}
            handlers={handlers}
          />
          <SummaryAfter messageId={message.id} />
        </Fragment>
      ))}
    </div>
  );
});
