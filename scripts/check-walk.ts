import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Where the walks are written down, and which there must be. */
const PAGE = "docs/architecture.md";
const WALKS = [
  "The walk of a message",
  "The walk of a message from a messenger",
  "The walk after a crash",
  "The walk of an alarm",
] as const;
/** More than this nobody keeps in mind. */
const MAX_HOPS = 55;
const MAX_FILES = 35;

/** One line of the walk: a function, and by which name it is called, if by another. */
interface Hop {
  readonly path: string;
  readonly name: string;
  readonly by: string;
}

/**
 * The walks in `docs/architecture.md` are true: each file has its function, each function but the first is called from the
 * file of an earlier one, and there are not too many.
 */
export function checkWalk(root: string, walks: readonly string[] = WALKS): string[] {
  const page = join(root, PAGE);
  const text = existsSync(page) ? readFileSync(page, "utf8") : "";
  return walks.flatMap((walk) => checkOne(root, walk, text));
}

function checkOne(root: string, walk: string, text: string): string[] {
  const section = text.split(`\n## ${walk}\n`)[1]?.split("\n## ")[0];
  const block = section?.split("```")[1];
  if (block === undefined) return [`${PAGE}: there is no "## ${walk}" with a list in a code block`];
  const found: string[] = [];
  const hops: Hop[] = [];
  for (const line of block.split("\n").slice(1)) {
    if (line.trim() === "") continue;
    // Such as `12 turn/intake/accept.ts#accept`, or `20 agent/think.ts#onChatMessage by respond`.
    const [, number, path, name, by] = /^\s*(\d+) ([\w/.-]+)#(\w+)(?: by (\w+))?(?:\s+\(.*\))?$/.exec(line) ?? [];
    if (path === undefined || name === undefined) found.push(`${PAGE}: not a hop: ${line.trim()}`);
    else if (Number(number) !== hops.length + 1) found.push(`${PAGE}: hop ${hops.length + 1} is numbered ${number}`);
    if (path !== undefined && name !== undefined) hops.push({ path, name, by: by ?? name });
  }
  const texts = new Map<string, string>();
  for (const [at, { path, name, by }] of hops.entries()) {
    const file = join(root, "src", path);
    if (!texts.has(path) && !existsSync(file)) {
      found.push(`hop ${at + 1}: there is no src/${path}`);
      continue;
    }
    const source = texts.get(path) ?? readFileSync(file, "utf8");
    const isKnown = texts.has(path);
    texts.set(path, source);
    if (!definition(name).test(source)) found.push(`hop ${at + 1}: src/${path} has no function ${name}`);
    if (at === 0) continue;
    const earlier = [...texts].filter(([other]) => other !== path || isKnown);
    if (!earlier.some(([other, code]) => isCalled(by, other === path && by === name ? without(name, code) : code)))
      found.push(`hop ${at + 1}: nothing before it calls ${by}`);
  }
  if (hops.length > MAX_HOPS) found.push(`it has ${hops.length} hops (at most ${MAX_HOPS})`);
  if (texts.size > MAX_FILES) found.push(`it has ${texts.size} files (at most ${MAX_FILES})`);
  return found.map((what) => `${walk}: ${what}`);
}

/** A function, a method, a private one too, or a function in a field. */
function definition(name: string): RegExp {
  const before = `^(?:export )?(?:async )?function\\*? ${name}\\b|^  (?:override |async |static |protected |readonly )*\\*?#?${name}`;
  return new RegExp(`${before}(?:<[^\\n]*>)?(?:\\(| = |: )`, "m");
}

/** The code without the lines that define the function. */
function without(name: string, code: string): string {
  const own = definition(name);
  return code
    .split("\n")
    .filter((line) => !own.test(line))
    .join("\n");
}

function isCalled(name: string, code: string): boolean {
  return new RegExp(`(?<![\\w$])${name}(?:<[^\\n(]*>)?(?:\\?\\.)?\\(`).test(code);
}
