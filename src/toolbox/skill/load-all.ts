import { errorText, PerdureError } from "../../base/error.ts";
import { type ListedFile, readSkill } from "./read-skill.ts";
import type { Skill, SkillSet, SkillWarning } from "./types.ts";

/** A directory that may be a skill. */
export interface SkillFolder {
  readonly name: string;
  readonly files: readonly ListedFile[];
  read(path: string): Promise<Uint8Array>;
  /** Known to be no good already. */
  readonly fault?: string;
}

const MAX_SKILLS = 200;

/** Reads every folder. One that is malformed is left out with a warning, the others stay. */
export async function loadAll(source: string, folders: readonly SkillFolder[]): Promise<SkillSet> {
  const skills: Skill[] = [];
  const warnings: SkillWarning[] = [];
  if (folders.length > MAX_SKILLS) {
    warnings.push({ source, message: `There are more than ${MAX_SKILLS} skills; the others were left out.` });
  }
  for (const folder of folders.slice(0, MAX_SKILLS)) {
    try {
      if (folder.fault !== undefined) throw new PerdureError("bad_input", folder.fault);
      skills.push(await readSkill(folder.name, folder.files, (path) => folder.read(path)));
    } catch (thrown) {
      // Other errors name places of the host.
      const why = PerdureError.is(thrown) ? errorText(thrown) : "Its files could not be read.";
      warnings.push({ source, skill: folder.name, message: `The skill "${folder.name}" was left out. ${why}` });
    }
  }
  return { skills, warnings };
}
