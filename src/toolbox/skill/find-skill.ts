import { nearest } from "../../base/nearest.ts";
import type { SkillRegistry } from "./registry.ts";
import { extensionOf, resourcePath } from "./resource-path.ts";
import type { Skill, SkillScriptRunner } from "./types.ts";

/** A text that lets the model correct itself. */
export interface Failed {
  readonly error: string;
}

/** The scripts of a skill that can be run. */
export function scriptsOf(skill: Skill, runner: SkillScriptRunner | undefined): string[] {
  if (runner === undefined) return [];
  return skill.resources
    .map(({ path }) => path)
    .filter((path) => path.startsWith("scripts/") && runner.extensions.includes(extensionOf(path)));
}

/** The skill of that name, or a text that names those that there are. */
export function skillOf(registry: SkillRegistry, name: unknown): Skill | Failed {
  const skill = typeof name === "string" ? registry.get(name) : undefined;
  if (skill !== undefined) return skill;
  const names = registry.list().map((one) => one.name);
  if (typeof name !== "string") return { error: `Give the name of a skill: ${nearest("", names).join(", ")}.` };
  return { error: `There is no skill "${name.slice(0, 100)}". Near to it: ${nearest(name, names).join(", ")}.` };
}

/** Which file of which skill is meant: `name` and `path`, or a path that begins with the name. */
export function placeOf(
  registry: SkillRegistry,
  name: unknown,
  path: unknown,
): { skill: Skill; path: string } | Failed {
  const clean = typeof path === "string" ? resourcePath(path) : undefined;
  if (clean === undefined) {
    return { error: "`path` must be a path below the skill's directory, such as references/style.md, without `..`." };
  }
  const [first = "", ...rest] = clean.split("/");
  const qualified = name === undefined || name === "";
  const skill = skillOf(registry, qualified ? first : name);
  if ("error" in skill) return skill;
  if (qualified)
    return rest.length === 0
      ? { error: `Which file of "${first}"? Give \`path\` too.` }
      : { skill, path: rest.join("/") };
  // Some give both: the name, and a path that begins with it.
  const known = skill.resources.some((one) => one.path === clean);
  return { skill, path: !known && first === skill.name && rest.length > 0 ? rest.join("/") : clean };
}
