import type { Skill } from "./types.ts";

/** What the catalog may take of the prompt, in characters. */
const MAX_CATALOG = 20_000;

const intro = `# Skills

Skills are instructions for certain tasks. Only their names and purposes are listed here. When a task fits one, call \`activate_skill\` with its name before you begin, and follow what it says.
`;

/** The skills for the prompt: a line for each; only the names of those that do not fit. Empty when there are none. */
export function catalogOf(skills: readonly Skill[]): string {
  if (skills.length === 0) return "";
  let text = intro;
  const rest: string[] = [];
  for (const { name, description } of skills) {
    const line = `\n- ${name}: ${description}`;
    if (rest.length === 0 && text.length + line.length <= MAX_CATALOG) text += line;
    else rest.push(name);
  }
  return rest.length === 0 ? text : `${text}\n\nMore skills, without their purposes: ${rest.join(", ")}.`;
}
