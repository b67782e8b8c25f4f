import { type ReactNode, useMemo, useState } from "react";
import type { MessageHandlers } from "../message/message.tsx";
import { type ChatMessage, hasContent } from "../message/parts.ts";
import { StretchView } from "./stretch-view.tsx";
import { Stretches } from "./stretches.ts";
import type { Reveal } from "./use-reveal.ts";
import type { View } from "./view.ts";

/** How many stretches at the end are drawn at once, before it is known what is in sight. */
const DRAWN_FIRST = 3;

interface Props {
  readonly messages: readonly ChatMessage[];
  readonly view: View;
  readonly handlers: MessageHandlers;
  /** The message that the reader was taken to. */
  readonly found: Reveal["found"];
}

/** All messages that are loaded; those that are far from sight are only room for them. */
export function MessageList({ messages, view, handlers, found }: Props): ReactNode {
  const [stretches] = useState(() => new Stretches());
  const cut = useMemo(
    () => stretches.split(messages.filter((message) => message.role !== "system" && hasContent(message))),
    [stretches, messages],
  );
  const foundIn = found === undefined ? -1 : cut.findIndex((one) => one.messages.some(({ id }) => id === found.id));
  return cut.map((stretch, at) => {
    const has = (id: string | undefined) => id !== undefined && stretch.messages.some((message) => message.id === id);
    return (
      <StretchView
        key={stretch.key}
        stretch={stretch}
        startsNear={at >= cut.length - DRAWN_FIRST}
        // What stands above it must not grow while the reader is taken there.
        mustShow={foundIn !== -1 && Math.abs(at - foundIn) <= 1}
        firstId={at === 0 ? stretch.messages[0]?.id : undefined}
        lastId={at === cut.length - 1 ? stretch.messages.at(-1)?.id : undefined}
        liveId={has(view.liveId) ? view.liveId : undefined}
        foundId={at === foundIn && found?.isSearched === true ? found.id : undefined}
        busy={view.isBusy}
        handlers={handlers}
      />
    );
  });
}
