import type { FilePart } from "../message/parts.ts";
import { shrinkImage } from "./shrink-image.ts";

/** An agent keeps a message in one row of at most 1.8 MB, and a data URL is a third larger than its file. */
export const MAX_FILE_BYTES = 1_200_000;

/** A file that is about to be sent. */
export interface Draft {
  readonly key: string;
  readonly part: FilePart;
  readonly bytes: number;
}

/**
 * Reads a file for a message. Pictures that are too large are made smaller.
 * @throws Error with a message for people.
 */
export async function readFile(given: File): Promise<Draft> {
  const file = given.size > MAX_FILE_BYTES && given.type.startsWith("image/") ? await shrinkImage(given) : given;
  if (file.size > MAX_FILE_BYTES) throw new Error(`${given.name} is too large: ${sizeText(MAX_FILE_BYTES)} at most.`);
  const url = await dataUrlOf(file);
  const mediaType = file.type === "" ? "application/octet-stream" : file.type;
  return {
    key: crypto.getRandomValues(new Uint32Array(2)).join("-"),
    part: { type: "file", mediaType, filename: given.name, url },
    bytes: file.size,
  };
}

/** "1.2 MB" */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(typeof reader.result === "string" ? reader.result : "");
    reader.onerror = () => reject(new Error(`${file.name} could not be read.`));
    reader.readAsDataURL(file);
  });
}
