import { memo, type ReactNode } from "react";
import { Attachment } from "./attachment.tsx";
import { Markdown } from "./markdown.tsx";
import type { Part } from "./parts.ts";
import { Reasoning } from "./reasoning.tsx";

interface Props {
  readonly part: Part;
  /** The message may still change by itself. */
  readonly live: boolean;
  /** Nothing comes after it yet. */
  readonly isEnd: boolean;
}

/** One part of an answer that is no tool call. Kinds that the page does not know are not shown. */
export const MessagePart = memo(function MessagePart({ part, live, isEnd }: Props): ReactNode {
  switch (part.type) {
    case "text":
      return part.text.trim() === "" ? null : <Markdown text={part.text} live={live && isEnd} />;
    case "reasoning": {
      const thinking = live && isEnd && part.state !== "done";
      return part.text.trim() === "" && !thinking ? null : <Reasoning text={part.text} live={thinking} />;
    }
    case "file":
      return (
        <div className="attachments">
          <Attachment part={part} />
        </div>
      );
    case "source-url":
      if (!/^https?:/i.test(part.url)) return null;
      return (
        <a className="source" href={part.url} target="_blank" rel="noopener noreferrer nofollow">
          {part.title ?? part.url}
        </a>
      );
    default:
      return null;
  }
});
