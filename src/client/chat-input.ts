import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import type { Part, UIMessage } from "../message/types.ts";

type FilePart = Extract<Part, { type: "file" }>;

/** What can be sent: a text, files, or a message. */
export type ChatInput<M extends UIMessage = UIMessage> =
  | {
      readonly text: string;
      readonly files?: FileList | readonly FilePart[];
      readonly metadata?: M["metadata"];
      readonly messageId?: string;
    }
  | { readonly files: FileList | readonly FilePart[]; readonly metadata?: M["metadata"]; readonly messageId?: string }
  | {
      readonly id?: string;
      readonly role?: M["role"];
      readonly parts: M["parts"];
      readonly metadata?: M["metadata"];
      readonly messageId?: string;
    };

/** Makes the message; a promise only if files must be read. @param id of the message that it replaces. */
export function toUserMessage(input: ChatInput, id?: string): UIMessage | Promise<UIMessage> {
  const metadata = input.metadata === undefined ? {} : { metadata: input.metadata };
  if ("parts" in input) {
    return { id: id ?? input.id ?? newId(), role: input.role ?? "user", ...metadata, parts: input.parts };
  }
  const finish = (files: readonly FilePart[]): UIMessage => ({
    id: id ?? newId(),
    role: "user",
    ...metadata,
    parts: [...files, ...("text" in input ? [{ type: "text" as const, text: input.text }] : [])],
  });
  const files: FileList | readonly FilePart[] = input.files ?? [];
  return isPartList(files) ? finish(files) : Promise.all(Array.from(files, readFile)).then(finish);
}

function isPartList(files: FileList | readonly FilePart[]): files is readonly FilePart[] {
  return Array.isArray(files);
}

async function readFile(file: File): Promise<FilePart> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(typeof reader.result === "string" ? reader.result : "");
    reader.onerror = () =>
      reject(new PerdureError("bad_input", `${file.name} could not be read.`, { cause: reader.error }));
    reader.readAsDataURL(file);
  });
  return { type: "file", mediaType: file.type, filename: file.name, url };
}
