import "./attachment.css";
import type { ReactNode } from "react";
import { Icon } from "../control/icon.tsx";
import type { FilePart } from "./parts.ts";

/** A file of a message: a picture is shown, anything else can be downloaded. */
export function Attachment({ part }: { readonly part: FilePart }): ReactNode {
  const { url, mediaType } = part;
  const name = part.filename ?? mediaType;
  if (!/^(https?:|data:|blob:)/i.test(url)) return <span className="file-chip">{name}</span>;
  if (mediaType.startsWith("image/")) {
    return <img className="attached-image" src={url} alt={part.filename ?? "Attached image"} loading="lazy" />;
  }
  return (
    <a className="file-chip" href={url} download={part.filename ?? true} target="_blank" rel="noopener noreferrer">
      <Icon name="file" />
      <span>{name}</span>
    </a>
  );
}
