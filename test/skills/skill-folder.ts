import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { SkillManifest } from "perdure/skills";

/** A `SKILL.md` with the least that it needs. */
export function skillText(name: string, description = `About ${name}.`, body = `Do ${name}.`): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}\n`;
}

/** A directory of skills on the disk, from files by path. The caller removes it. */
export function skillFolder(files: Readonly<Record<string, string | Uint8Array>>): string {
  const root = mkdtempSync(join(tmpdir(), "perdure-skills-"));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

/** The same as a manifest: `{ "greet/SKILL.md": "…" }`. */
export function manifestOf(files: Readonly<Record<string, string>>): SkillManifest {
  const names = [...new Set(Object.keys(files).map((path) => path.split("/")[0] ?? ""))];
  return {
    skills: names.map((name) => ({
      name,
      files: Object.entries(files)
        .filter(([path]) => path.startsWith(`${name}/`))
        .map(([path, content]) => ({ path: path.slice(name.length + 1), encoding: "text", content })),
    })),
  };
}
