import { errorText } from "../base/error.ts";
import { bytesOfDataUrl, toReference } from "../message/media-ref.ts";
import type { Part } from "../message/types.ts";
import { attachmentsOf, type ReplyAttachment } from "../tool/action-attachment.ts";
import { mediaTypeOf } from "../toolbox/skill/resource-path.ts";
import type { RenderedAttachment } from "../turn/step/channels.ts";
import type { SentFile } from "./channel.ts";

/** Where the bytes of an answer are. All may be slow, and may reject. */
export interface FileSources {
  /** A file of the agent's messages, by its name. */
  kept(name: string): Promise<Uint8Array | undefined>;
  /** A file of the workspace. */
  workspace(path: string): Promise<Uint8Array | null | undefined>;
  /** What the app shows for something that was attached; undefined: it says nothing of that. */
  render?: (attachment: ReplyAttachment) => RenderedAttachment | undefined | Promise<RenderedAttachment | undefined>;
}

/** What is sent for a part of an answer. */
export type PartFile =
  | { readonly kind: "file"; readonly file: SentFile }
  | { readonly kind: "text"; readonly text: string }
  /** There is nothing to show. */
  | { readonly kind: "none" }
  /** Its bytes are not to be had. */
  | { readonly kind: "left"; readonly name: string; readonly why: string };

/** An attachment that needs nobody to say how it looks: `{ type: "file", path }` is a file of the workspace. */
export function isWorkspaceFile(attachment: ReplyAttachment): boolean {
  return attachment.type === "file" && typeof attachment.path === "string";
}

/**
 * What is sent for a part. Bytes come from the answer, the agent's own files or the app, never from an address: whoever wrote
 * that would have this process fetch it. Never rejects.
 */
export async function fileOf(part: Part, sources: FileSources): Promise<PartFile> {
  const [attachment] = attachmentsOf({ parts: [part] });
  const name = part.type === "file" ? (part.filename ?? nameOf(part.mediaType)) : (attachment?.type ?? "");
  try {
    if (part.type === "file") {
      const kept = toReference(part.url)?.name;
      const bytes = kept === undefined ? bytesOfDataUrl(part.url) : await sources.kept(kept);
      if (bytes === undefined) return { kind: "left", name, why: "its bytes are not stored here" };
      return { kind: "file", file: { name, mediaType: part.mediaType, bytes } };
    }
    if (attachment === undefined) return { kind: "none" };
    const shown =
      (await sources.render?.(attachment)) ?? (isWorkspaceFile(attachment) ? ownFile(attachment) : undefined);
    return shown === undefined ? { kind: "none" } : await shownAs(shown, sources);
  } catch (thrown) {
    return { kind: "left", name, why: errorText(thrown) };
  }
}

async function shownAs(shown: RenderedAttachment, sources: FileSources): Promise<PartFile> {
  if (typeof shown === "string") return shown.trim() === "" ? { kind: "none" } : { kind: "text", text: shown };
  if ("bytes" in shown) return { kind: "file", file: shown };
  const { path, name = path.split("/").at(-1) ?? path } = shown;
  try {
    const bytes = await sources.workspace(path);
    if (!bytes) return { kind: "left", name, why: `there is no file ${path} in the workspace` };
    return { kind: "file", file: { name, mediaType: shown.mediaType ?? mediaTypeOf(path, false), bytes } };
  } catch (thrown) {
    return { kind: "left", name, why: errorText(thrown) };
  }
}

function ownFile({ path, name, mediaType }: ReplyAttachment): RenderedAttachment {
  return {
    path: String(path),
    ...(typeof name === "string" && { name }),
    ...(typeof mediaType === "string" && { mediaType }),
  };
}

/** Models give their pictures no names. */
function nameOf(mediaType: string): string {
  const [kind = "file", ending = ""] = mediaType.split(";")[0]?.split("/") ?? [];
  return ending === "" ? kind : `${kind}.${ending.replace(/^x-|\+.*$/g, "")}`;
}
