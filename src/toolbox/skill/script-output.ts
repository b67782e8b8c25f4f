import { toBase64 } from "../../base/bytes.ts";
import { PerdureError } from "../../base/error.ts";
import { mediaTypeOf, resourcePath, textOfBytes } from "./resource-path.ts";
import type { SkillArtifact } from "./types.ts";

/** What a script may leave behind. */
export const MAX_ARTIFACTS = 20;
export const MAX_ARTIFACT_BYTES = 64_000;

/** Collects what a script leaves, within its bounds. */
export class ScriptOutput {
  readonly #files = new Map<string, Uint8Array>();

  /** @throws PerdureError `bad_input` or `limit`, for the script to read */
  add(name: unknown, bytes: Uint8Array): void {
    const clean = typeof name === "string" ? resourcePath(name) : undefined;
    if (clean === undefined)
      throw new PerdureError("bad_input", "An output needs a name such as notes.md, without `..`.");
    if (bytes.length > MAX_ARTIFACT_BYTES) {
      throw new PerdureError(
        "limit",
        `${clean} has ${bytes.length} bytes; the limit for an output is ${MAX_ARTIFACT_BYTES}.`,
      );
    }
    if (!this.#files.has(clean) && this.#files.size >= MAX_ARTIFACTS) {
      throw new PerdureError("limit", `A script may leave at most ${MAX_ARTIFACTS} files.`);
    }
    this.#files.set(clean, bytes);
  }

  list(): SkillArtifact[] {
    return [...this.#files].map(([name, bytes]) => {
      const text = textOfBytes(bytes);
      const mediaType = mediaTypeOf(name, text !== undefined);
      if (text !== undefined) return { name, mediaType, encoding: "text", content: text };
      return { name, mediaType, encoding: "base64", content: toBase64(bytes) };
    });
  }
}
