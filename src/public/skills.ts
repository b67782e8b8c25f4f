// Skills without `Think`, and what their sources and runners are made of.
export { SkillRegistry, type SkillRegistryOptions } from "../toolbox/skill/registry.ts";
export { skillsForTurn, type TurnSkills } from "../toolbox/skill/for-turn.ts";
export { createSkillTools, type ActivatedSkill, type ReadSkillResource } from "../toolbox/skill/tools.ts";
export type { RunScriptInput } from "../toolbox/skill/tools.ts";
export type { BucketObject, SkillBucket } from "../toolbox/skill/bucket-source.ts";
export type { ManifestFile, SkillManifest } from "../toolbox/skill/manifest-source.ts";
export type { SkillRunnerOptions } from "../toolbox/skill/runner.ts";
export type { ScriptTool } from "../toolbox/skill/script-tools.ts";
export type {
  Skill,
  SkillArtifact,
  SkillResource,
  SkillScriptCall,
  SkillScriptResult,
  SkillScriptRunner,
  SkillSet,
  SkillWarning,
  SkillWorkspace,
} from "../toolbox/skill/types.ts";
