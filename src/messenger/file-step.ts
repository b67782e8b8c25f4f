import { newId } from "../base/id.ts";
import type { PartRow } from "../store/delivery.ts";
import type { PartFile } from "./answer-files.ts";
import { FILE_KEY, type Place, type SentFile } from "./channel.ts";
import type { SpeakCall } from "./speaker.ts";

/** A part of an answer that is a message of its own, and has to be sent. */
export interface FileStep {
  readonly n: number;
  /** Which part it is. */
  readonly at: number;
  /** It cannot be sent: people read that instead. */
  readonly left: FileNote | undefined;
}

/** What is stored of it: what it is called, and why it is not sent. */
export interface FileNote {
  readonly name: string;
  readonly why?: string;
}

/** What is stored of a part that shows nothing there. */
export const NOTHING: string = JSON.stringify({ name: "" } satisfies FileNote);

/** The first of these parts that is no message yet. */
export function nextFile(parts: readonly PartRow[], files: readonly number[]): FileStep | undefined {
  for (const at of files) {
    const row = parts.find(({ file, start }) => file !== null && start === at);
    if (row !== undefined && row.providerId !== null) continue;
    const note = JSON.parse(row?.file ?? NOTHING) as FileNote;
    return { n: row?.n ?? parts.length, at, left: note.why === undefined ? undefined : note };
  }
  return undefined;
}

/** What people read in the place of a file that is not sent. Why is for the log alone. */
export function textFor({ name }: FileNote): PartFile {
  return { kind: "text", text: `(The file ${name} could not be sent.)` };
}

/** Whether a file is more than the network takes. */
export function tooLargeFor(part: PartFile, fileBytes: number): Required<FileNote> | undefined {
  if (part.kind !== "file" || (fileBytes > 0 && part.file.bytes.length <= fileBytes)) return undefined;
  const why = fileBytes === 0 ? "files cannot be sent there" : "it is too large to be sent there";
  return { name: part.file.name, why };
}

/** The call that sends it, with its key. A text that is too long for a message is a file. */
export function callFor(
  part: Extract<PartFile, { kind: "file" | "text" }>,
  { textLimit, fileBytes }: { readonly textLimit: number; readonly fileBytes: number },
  place: Place,
): Extract<SpeakCall, { op: "create" | "file" }> {
  if (part.kind === "file") return { op: "file", place, file: part.file, key: newId(FILE_KEY) };
  const { text } = part;
  if (text.length <= textLimit || fileBytes === 0)
    return { op: "create", place, content: { text: text.slice(0, textLimit) }, key: newId("msg") };
  const file: SentFile = { name: "attachment.txt", mediaType: "text/plain", bytes: new TextEncoder().encode(text) };
  return { op: "file", place, file, key: newId(FILE_KEY) };
}
