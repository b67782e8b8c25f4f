import type { Tool, ToolSet } from "ai";
import { toBase64 } from "../../base/bytes.ts";
import { durableTool } from "../../tool/define.ts";
import { type Failed, placeOf, scriptsOf, skillOf } from "./find-skill.ts";
import { nearest } from "../../base/nearest.ts";
import type { SkillRegistry } from "./registry.ts";
import { textOfBytes } from "./resource-path.ts";
import type { SkillScriptResult, SkillScriptRunner } from "./types.ts";
import { objectInput } from "../../base/json-schema.ts";

const MAX_TEXT = 40_000;
const MAX_BINARY = 200_000;
/** More than either tool gives: they bound themselves. */
const TOOL_OUTPUT = 300_000;
const MANY_LINES = 1_000_000;

/** What `activate_skill` gives. */
export type ActivatedSkill =
  | Failed
  | {
      readonly name: string;
      readonly instructions: string;
      readonly resources: readonly { readonly path: string; readonly size: number; readonly mediaType: string }[];
      readonly note?: string;
    };

/** What `read_skill_resource` gives. */
export type ReadSkillResource =
  | Failed
  | { readonly path: string; readonly mediaType: string; readonly text: string; readonly note?: string }
  | { readonly path: string; readonly mediaType: string; readonly base64: string };

/**
 * Tools to use skills: `activate_skill`, `read_skill_resource`, and with a runner `run_skill_script`. They ask the registry at
 * each call. Wrong input is answered with a text that says what to do.
 */
export function createSkillTools(registry: SkillRegistry, runner?: SkillScriptRunner): ToolSet {
  const room = { maxOutputChars: TOOL_OUTPUT, maxOutputLines: MANY_LINES };
  return {
    // Without its instructions a skill is forgotten: they stay when the window is cleared.
    activate_skill: durableTool(activateTool(registry, runner), { replay: "safe", keep: "always", ...room }),
    read_skill_resource: durableTool(readTool(registry), { replay: "safe", ...room }),
    ...(runner && { run_skill_script: durableTool(runTool(registry, runner), { replay: "never", ...room }) }),
  };
}

function activateTool(
  registry: SkillRegistry,
  runner: SkillScriptRunner | undefined,
): Tool<{ name: string }, ActivatedSkill> {
  return {
    description: "Fetches the instructions of a skill, and the list of its files. Follow them for the task at hand.",
    inputSchema: objectInput<{ name: string }>(["name"], {
      name: { type: "string", description: "The name of the skill, as it is listed." },
    }),
    async execute({ name }) {
      const skill = skillOf(registry, name);
      if ("error" in skill) return skill;
      const resources = skill.resources.map(({ path, size, mediaType }) => ({ path, size, mediaType }));
      const scripts = scriptsOf(skill, runner);
      const notes = [
        resources.length === 0 ? "" : "Read files with read_skill_resource when the instructions name them.",
        scripts.length === 0 ? "" : `Run with run_skill_script: ${scripts.join(", ")}.`,
        skill.compatibility === undefined ? "" : `It needs: ${skill.compatibility}`,
      ].filter((note) => note !== "");
      const note = notes.length === 0 ? {} : { note: notes.join(" ") };
      return { name: skill.name, instructions: skill.instructions, resources, ...note };
    },
  };
}

interface ReadInput {
  readonly name?: string;
  readonly path: string;
  readonly offset?: number;
}

function readTool(registry: SkillRegistry): Tool<ReadInput, ReadSkillResource> {
  return {
    description:
      "Reads a file of a skill. Give `name` and `path`, or only a `path` that begins with the skill's name, " +
      "such as release-notes/references/style.md. Text comes as text, everything else as base64.",
    inputSchema: objectInput<ReadInput>(["path"], {
      name: { type: "string", description: "The name of the skill." },
      path: { type: "string", description: "The file, below the skill's directory." },
      offset: { type: "integer", minimum: 0, description: "From which character of a long text. Default: 0." },
    }),
    async execute({ name, path, offset = 0 }) {
      const place = placeOf(registry, name, path);
      if ("error" in place) return place;
      const found = place.skill.resources.find((one) => one.path === place.path);
      if (found === undefined) {
        const names = place.skill.resources.map((one) => one.path);
        const files = names.length === 0 ? "It has none." : `It has: ${nearest(place.path, names).join(", ")}.`;
        return { error: `The skill "${place.skill.name}" has no file "${place.path}". ${files}` };
      }
      const bytes = await place.skill.read(found.path);
      const text = found.text ? textOfBytes(bytes) : undefined;
      const about = { path: found.path, mediaType: found.mediaType };
      if (text !== undefined) return { ...about, ...pageOf(text, typeof offset === "number" ? offset : 0) };
      if (bytes.length > MAX_BINARY) {
        return {
          error: `${found.path} is no text and has ${bytes.length} bytes; ${MAX_BINARY} can be read. A script can use it.`,
        };
      }
      return { ...about, base64: toBase64(bytes) };
    },
  };
}

function pageOf(text: string, offset: number): { text: string; note?: string } {
  const from = Math.min(Math.max(0, Math.floor(offset)), text.length);
  const page = text.slice(from, from + MAX_TEXT);
  const end = from + page.length;
  return end < text.length ? { text: page, note: `Read on with offset ${end} of ${text.length}.` } : { text: page };
}

/** What the model says to `run_skill_script`. */
export interface RunScriptInput {
  readonly name?: string;
  readonly script?: string;
  readonly path?: string;
  readonly input?: unknown;
}

const MAX_INPUT = 1_000_000;

function runTool(registry: SkillRegistry, runner: SkillScriptRunner): Tool<RunScriptInput, SkillScriptResult | Failed> {
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
      return runner.run({ skill, script: path, input, signal: abortSignal });
    },
  };
}

/** `format.ts` means `scripts/format.ts` where a skill was named. */
function withFolder(registry: SkillRegistry, name: string | undefined, script: unknown): unknown {
  if (typeof script !== "string" || name === undefined || script.includes("/")) return script;
  return registry.get(name)?.resources.some((one) => one.path === script) === true ? script : `scripts/${script}`;
}
