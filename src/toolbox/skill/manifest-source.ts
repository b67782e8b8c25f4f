import { fromBase64 } from "../../base/bytes.ts";
import { PerdureError } from "../../base/error.ts";
import { loadAll, type SkillFolder } from "./load-all.ts";
import { SKILL_FILE } from "./read-skill.ts";
import type { SkillSource } from "./types.ts";

/** One file of a bundled skill. */
export interface ManifestFile {
  /** Below the skill's directory: `SKILL.md`, `references/style.md`. */
  readonly path: string;
  readonly encoding: "text" | "base64";
  readonly content: string;
}

/** Skills as one JSON value, for hosts without a file system and for bundles. */
export interface SkillManifest {
  readonly skills: readonly { readonly name: string; readonly files: readonly ManifestFile[] }[];
}

/** Skills that came with the program. `files` holds `SKILL.md` and the resources. A bad encoding makes its skill malformed. */
export function manifestSource(manifest: SkillManifest): SkillSource {
  const id = idOf(manifest);
  return {
    id,
    // What is part of the program does not change.
    fingerprint: async () => "1",
    load: () => loadAll(id, listOf(manifest).map(folderOf)),
  };
}

/** Tells manifests apart, and the same one made twice not. */
function idOf(manifest: SkillManifest): string {
  const list: unknown = (manifest as { skills?: unknown } | undefined)?.skills;
  if (!Array.isArray(list)) return "manifest";
  const entries = list as Partial<SkillManifest["skills"][number]>[];
  const chars = entries
    .flatMap((entry) => (Array.isArray(entry?.files) ? entry.files : []))
    .reduce((sum, file) => sum + (typeof file?.content === "string" ? file.content.length : 0), 0);
  return `manifest of ${entries.map((entry) => String(entry?.name)).join(", ")} (${chars})`;
}

function listOf(manifest: SkillManifest): SkillManifest["skills"] {
  const list: unknown = (manifest as { skills?: unknown } | undefined)?.skills;
  if (!Array.isArray(list)) throw new PerdureError("bad_input", "A skill manifest must be { skills: [...] }.");
  return list as SkillManifest["skills"];
}

function folderOf(entry: SkillManifest["skills"][number]): SkillFolder {
  const name = String(entry?.name);
  const none = async (): Promise<Uint8Array> => new Uint8Array();
  if (!Array.isArray(entry?.files)) return { name, files: [], read: none, fault: "Its `files` are no list." };
  const bytes = new Map<string, Uint8Array>();
  for (const file of entry.files) {
    const decoded = decode(file);
    if (decoded === undefined) {
      const fault = `The file ${JSON.stringify(file?.path)} must have a path, a content, and "text" or "base64" as its encoding.`;
      return { name, files: [], read: none, fault };
    }
    bytes.set(file.path, decoded);
  }
  return {
    name,
    files: entry.files.map(({ path, encoding }) => ({
      path,
      size: bytes.get(path)?.length ?? 0,
      // A manifest says which it is; only SKILL.md must be text.
      text: encoding === "text" || path === SKILL_FILE,
    })),
    read: async (path) => bytes.get(path)?.slice() ?? new Uint8Array(),
  };
}

function decode(file: ManifestFile): Uint8Array | undefined {
  if (typeof file?.path !== "string" || typeof file.content !== "string") return undefined;
  if (file.encoding === "text") return new TextEncoder().encode(file.content);
  try {
    return file.encoding === "base64" ? fromBase64(file.content) : undefined;
  } catch {
    return undefined;
  }
}
