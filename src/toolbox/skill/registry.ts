import { errorText, PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import type { Skill, SkillSet, SkillSource, SkillWarning } from "./types.ts";

/** How a {@link SkillRegistry} reports. */
export interface SkillRegistryOptions {
  /** Told once of everything that is left out. What it throws is ignored. */
  readonly onWarning?: (warning: SkillWarning) => void;
}

const skillRegistryOptionsNames = namesOf<SkillRegistryOptions>()("onWarning");

/** What the catalog may take of the prompt, in characters. */
const MAX_CATALOG = 20_000;

const intro = `# Skills

Skills are instructions for certain tasks. Only their names and purposes are listed here. When a task fits one, call \`activate_skill\` with its name before you begin, and follow what it says.
`;

interface Loaded {
  readonly fingerprint: string;
  readonly set: SkillSet;
}

/**
 * An agent's skills from several sources; of two with one name the first source's wins. Failing sources and malformed skills are
 * left out with a warning; a source that fails later keeps what it had.
 */
export class SkillRegistry {
  readonly #sources: readonly SkillSource[];
  readonly #onWarning: ((warning: SkillWarning) => void) | undefined;
  readonly #loaded = new Map<SkillSource, Loaded>();
  readonly #warned = new Set<string>();
  #skills = new Map<string, Skill>();
  #catalog = "";
  #refreshing: Promise<void> | undefined;

  constructor(sources: readonly SkillSource[], options: SkillRegistryOptions = {}) {
    refuseUnknown(options, skillRegistryOptionsNames, "SkillRegistry");
    this.#sources = sources;
    this.#onWarning = options.onWarning;
  }

  /** Looks at every source, and loads those that changed. Never rejects. Calls at the same time share one look. */
  refresh(): Promise<void> {
    return (this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    }));
  }

  /** The skills in the order of their sources, as of the last refresh. */
  list(): readonly Skill[] {
    return [...this.#skills.values()];
  }

  get(name: string): Skill | undefined {
    return this.#skills.get(name);
  }

  /** What the prompt says of the skills: the same text as long as they do not change, empty when there are none. */
  catalog(): string {
    return this.#catalog;
  }

  async #refresh(): Promise<void> {
    const changed = await Promise.all(this.#sources.map((source) => this.#look(source)));
    if (!changed.includes(true)) return;
    const skills = new Map<string, Skill>();
    for (const source of this.#sources) {
      const { set } = this.#loaded.get(source) ?? {};
      for (const warning of set?.warnings ?? []) this.#warn(warning);
      for (const skill of set?.skills ?? []) {
        if (!skills.has(skill.name)) skills.set(skill.name, skill);
        else this.#warn(duplicate(source, skill));
      }
    }
    this.#skills = skills;
    this.#catalog = catalogOf([...skills.values()]);
  }

  /** Whether the source was loaded anew. */
  async #look(source: SkillSource): Promise<boolean> {
    try {
      const fingerprint = await source.fingerprint();
      if (this.#loaded.get(source)?.fingerprint === fingerprint) return false;
      this.#loaded.set(source, { fingerprint, set: await source.load() });
      return true;
    } catch (thrown) {
      const why = PerdureError.is(thrown) ? errorText(thrown) : reasonOf(thrown);
      this.#warn({ source: source.id, message: `The skills of "${source.id}" could not be read. ${why}` });
      return false;
    }
  }

  #warn(warning: SkillWarning): void {
    const key = JSON.stringify([warning.source, warning.skill, warning.message]);
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    try {
      this.#onWarning?.(warning);
    } catch {
      // A reporter that fails must not take the skills along.
    }
  }
}

function duplicate(source: SkillSource, { name }: Skill): SkillWarning {
  const message = `The skill "${name}" of "${source.id}" was left out: an earlier source has one of that name.`;
  return { source: source.id, skill: name, message };
}

/** Errors of a file system tell their code; the rest of them names places of the host. */
function reasonOf(thrown: unknown): string {
  const code: unknown = typeof thrown === "object" && thrown !== null && "code" in thrown ? thrown.code : undefined;
  return typeof code === "string" ? `(${code})` : errorText(thrown);
}

/** The skills for the prompt: a line for each; only the names of those that do not fit. Empty when there are none. */
function catalogOf(skills: readonly Skill[]): string {
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
