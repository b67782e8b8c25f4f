import type { Tool } from "ai";
import { placeOf, scriptsOf } from "./find-skill.ts";
import { nearest } from "../../base/nearest.ts";
import type { SkillRegistry } from "./registry.ts";
import type { SkillScriptResult, SkillScriptRunner } from "./types.ts";
import { objectInput } from "../../tool/object-input.ts";

/** What the model says to `run_skill_script`. */
export interface RunScriptInput {
  readonly name?: string;
  readonly script?: string;
  readonly path?: string;
  readonly input?: unknown;
}

const MAX_INPUT = 1_000_000;

export function runSkillScriptTool(
  registry: SkillRegistry,
  runner: SkillScriptRunner,
): Tool<RunScriptInput, SkillScriptResult | { readonly error: string }> {
  return {
    description:
      "Runs a script of a skill in a sandbox, with `input` as its input. Gives its result or output, and the files that it left.",
    inputSchema: objectInput<RunScriptInput>([], {
      name: { type: "string", description: "The name of the skill." },
      script: { type: "string", description: "The script, such as scripts/format.ts." },
      path: { type: "string", description: "Instead of both: skill/scripts/format.ts." },
      input: { description: "Any JSON value that the script takes." },
    }),
    async execute(given, { abortSignal }) {
      const script = given.script ?? given.path;
      if (script === undefined) return { error: "Give `name` and `script`, or `path` as skill/scripts/file." };
      const place = placeOf(registry, given.name, withFolder(registry, given.name, script));
      if ("error" in place) return place;
      const { skill, path } = place;
      const scripts = scriptsOf(skill, runner);
      if (!scripts.includes(path)) {
        const there =
          scripts.length === 0 ? "It has none that can be run." : `It has: ${nearest(path, scripts).join(", ")}.`;
        return { error: `The skill "${skill.name}" has no script "${path}". ${there}` };
      }
      const input: unknown = given.input ?? null;
      if (JSON.stringify(input).length > MAX_INPUT) {
        return {
          error: `\`input\` is longer than ${MAX_INPUT} characters as JSON. Put large data into a file of the workspace.`,
        };
      }
      return runner.run({ skill, script: path, input, ...(abortSignal !== undefined && { signal: abortSignal }) });
    },
  };
}

/** `format.ts` means `scripts/format.ts` where a skill was named. */
function withFolder(registry: SkillRegistry, name: string | undefined, script: unknown): unknown {
  if (typeof script !== "string" || name === undefined || script.includes("/")) return script;
  return registry.get(name)?.resources.some((one) => one.path === script) === true ? script : `scripts/${script}`;
}
