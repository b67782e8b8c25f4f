import type { UseAgentChat } from "perdure/react";
import { createContext } from "react";

/** What there is to say about the messages of a conversation besides what is in them, and what can be done about it. */
export interface Marks {
  /** Which of its versions a message is; undefined when it is the only one. */
  readonly branches: UseAgentChat["branches"];
  /** Ids of messages that the model reads word by word, whatever is summarised. */
  readonly pins: ReadonlySet<string>;
  /** Shows the version before or behind this one. */
  readonly step: (messageId: string, by: -1 | 1) => void;
  readonly setPinned: (messageId: string, pinned: boolean) => void;
  /** Goes on behind a message in a copy of the conversation. */
  readonly copy: (messageId: string) => void;
}

/** The marks of the conversation that is shown. */
export const MarksContext = createContext<Marks>({
  branches: () => undefined,
  pins: new Set(),
  step: () => {},
  setPinned: () => {},
  copy: () => {},
});
