import { PerdureError } from "../../base/error.ts";
import { type FrontValue, parseFrontMatter } from "./front-matter.ts";
import { mediaTypeOf, resourcePath, textOfBytes } from "./resource-path.ts";
import type { Skill, SkillResource } from "./types.ts";

/** A file as its source lists it. */
export interface ListedFile {
  readonly path: string;
  readonly size: number;
  /** Known already; otherwise its name and its first use tell. */
  readonly text?: boolean;
}

export const SKILL_FILE = "SKILL.md";
/** What a skill may hold. */
const MAX_INSTRUCTIONS = 100_000;
export const MAX_RESOURCES = 500;
export const MAX_RESOURCE_BYTES = 5 << 20;
const MAX_SKILL_BYTES = 50 << 20;
const MAX_NAME = 64;
const MAX_DESCRIPTION = 1_024;
const MAX_COMPATIBILITY = 500;
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const BINARY = /\.(png|jpe?g|gif|webp|pdf|zip|gz|tar|wasm|woff2?|ttf|otf|ico|bin|mp[34]|xlsx|docx|pptx|db|sqlite)$/i;

/**
 * A skill from the files of one directory.
 * @param folder the name of the directory, which the skill must have too
 * @throws PerdureError `bad_input` or `limit` that says what is wrong with it
 */
export async function readSkill(
  folder: string,
  files: readonly ListedFile[],
  read: (path: string) => Promise<Uint8Array>,
): Promise<Skill> {
  const main = files.find((file) => file.path === SKILL_FILE);
  if (main === undefined) throw new PerdureError("bad_input", `It has no ${SKILL_FILE}.`);
  if (main.size > MAX_INSTRUCTIONS) {
    throw new PerdureError("limit", `Its ${SKILL_FILE} has ${main.size} bytes; the limit is ${MAX_INSTRUCTIONS}.`);
  }
  const text = textOfBytes(await read(SKILL_FILE));
  if (text === undefined) throw new PerdureError("bad_input", `Its ${SKILL_FILE} is not UTF-8 text.`);
  const { fields, body } = parseFrontMatter(text);
  const resources = resourcesOf(files);
  const license = optional(fields, "license", MAX_DESCRIPTION);
  const compatibility = optional(fields, "compatibility", MAX_COMPATIBILITY);
  return {
    name: nameOf(fields, folder),
    description: descriptionOf(fields),
    ...(license !== undefined && { license }),
    ...(compatibility !== undefined && { compatibility }),
    metadata: metadataOf(fields["metadata"]),
    allowedTools: toolsOf(fields["allowed-tools"]),
    instructions: body,
    resources,
    async read(path) {
      const clean = resourcePath(path);
      if (clean === undefined || !resources.some((one) => one.path === clean)) {
        throw new PerdureError("not_found", `This skill has no file "${path}".`);
      }
      return read(clean);
    },
  };
}

function resourcesOf(files: readonly ListedFile[]): SkillResource[] {
  const others = files.filter((file) => file.path !== SKILL_FILE);
  if (others.length > MAX_RESOURCES) throw new PerdureError("limit", `It has more than ${MAX_RESOURCES} files.`);
  let total = 0;
  return others
    .map(({ path, size, text = !BINARY.test(path) }) => {
      if (resourcePath(path) !== path) throw new PerdureError("bad_input", `The path "${path}" leads out of it.`);
      if (size > MAX_RESOURCE_BYTES) {
        throw new PerdureError("limit", `${path} has ${size} bytes; the limit is ${MAX_RESOURCE_BYTES}.`);
      }
      total += size;
      if (total > MAX_SKILL_BYTES)
        throw new PerdureError("limit", `Its files have more than ${MAX_SKILL_BYTES} bytes.`);
      return { path, size, mediaType: mediaTypeOf(path, text), text };
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

type Fields = Readonly<Record<string, FrontValue>>;

function nameOf(fields: Fields, folder: string): string {
  const name = fields["name"];
  if (typeof name !== "string" || name.length > MAX_NAME || !NAME.test(name)) {
    const rule = `small letters, digits and single hyphens between them, at most ${MAX_NAME} characters`;
    throw new PerdureError("bad_input", `Its \`name\` must be ${rule}.`);
  }
  if (name !== folder) {
    throw new PerdureError("bad_input", `Its \`name\` is "${name}", its directory "${folder}": they must be the same.`);
  }
  return name;
}

function descriptionOf(fields: Fields): string {
  const given = fields["description"];
  const text = typeof given === "string" ? oneLine(given) : "";
  if (text === "" || text.length > MAX_DESCRIPTION) {
    throw new PerdureError("bad_input", `Its \`description\` must be a string of 1 to ${MAX_DESCRIPTION} characters.`);
  }
  return text;
}

/** Descriptions go into the prompt, one line for each skill. */
function oneLine(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\s]+/g, " ").trim();
}

function optional(fields: Fields, name: string, max: number): string | undefined {
  const value = fields[name];
  if (value === undefined || value === "") return undefined;
  if (typeof value === "string" && value.length <= max) return value;
  throw new PerdureError("bad_input", `Its \`${name}\` must be a string of at most ${max} characters.`);
}

function metadataOf(value: FrontValue | undefined): Record<string, string> {
  if (value === undefined || value === "") return {};
  if (typeof value === "object" && !isList(value)) return { ...value };
  throw new PerdureError("bad_input", "Its `metadata` must be names with string values.");
}

/** Written with spaces between them, or as a list. */
function toolsOf(value: FrontValue | undefined): string[] {
  if (value === undefined) return [];
  if (typeof value === "string") return value.split(/[\s,]+/).filter((name) => name !== "");
  if (isList(value)) return [...value];
  throw new PerdureError("bad_input", "Its `allowed-tools` must be names with spaces between them, or a list.");
}

function isList(value: FrontValue): value is readonly string[] {
  return Array.isArray(value);
}
