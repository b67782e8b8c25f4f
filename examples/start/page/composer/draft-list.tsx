import type { ReactNode } from "react";
import { Icon } from "../control/icon.tsx";
import { IconButton } from "../control/icon-button.tsx";
import { type Draft, sizeText } from "./read-file.ts";

interface Props {
  readonly drafts: readonly Draft[];
  readonly onRemove: (key: string) => void;
}

/** The files that will go with the next message. */
export function DraftList({ drafts, onRemove }: Props): ReactNode {
  if (drafts.length === 0) return null;
  return (
    <ul className="drafts" aria-label="Attached files">
      {drafts.map(({ key, part, bytes }) => (
        <li key={key} data-testid="attachment">
          {part.mediaType.startsWith("image/") ? <img src={part.url} alt="" /> : <Icon name="file" />}
          <span className="draft-name">{part.filename}</span>
          <span className="draft-size">{sizeText(bytes)}</span>
          <IconButton icon="close" label={`Remove ${part.filename ?? "file"}`} onClick={() => onRemove(key)} />
        </li>
      ))}
    </ul>
  );
}
