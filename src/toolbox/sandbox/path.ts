import { posixError } from "./posix-error.ts";

/** In UTF-16 units. What Linux takes, too. */
export const MAX_PATH = 4_096;
const MAX_NAME = 255;
/** How often symlinks may lead to symlinks. */
export const MAX_HOPS = 40;

export const ROOT = "/";

/**
 * A path as workspaces keep it: absolute, without `.`, `..`, empty parts or a final slash. A relative one starts at `from`.
 * @throws PerdureError `EINVAL` (no text, NUL, broken characters, above the root), `ENAMETOOLONG`
 */
export function normalizePath(path: string, from: string = ROOT): string {
  if (typeof path !== "string") throw posixError("EINVAL", `A path must be a string, not ${typeof path}.`);
  if (path === "") throw posixError("EINVAL", 'The path is empty. Give an absolute one, such as "/notes.md".');
  if (path.includes("\0")) throw posixError("EINVAL", "A path cannot hold the character NUL.");
  if (!path.isWellFormed()) throw posixError("EINVAL", `The path ${JSON.stringify(path)} holds half of a character.`);
  if (path.length > MAX_PATH)
    throw posixError("ENAMETOOLONG", `The path has ${path.length} characters; at most ${MAX_PATH} are allowed.`);
  const parts: string[] = [];
  for (const part of `${path.startsWith("/") ? "" : `${from}/`}${path}`.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(checkName(part));
    else if (parts.pop() === undefined)
      throw posixError("EINVAL", `The path ${JSON.stringify(path)} leads above the root of the workspace.`);
  }
  return ROOT + parts.join("/");
}

/** A path as guests write them, meant from the root, in the form of {@link normalizePath}. @throws PerdureError `EINVAL`, `ENAMETOOLONG` */
export function cleanPath(path: string): string {
  if (!path.startsWith("/") || path.includes("\0")) throw posixError("EINVAL", `not an absolute path, '${path}'`);
  if (path.length > MAX_PATH) throw posixError("ENAMETOOLONG", `the path is too long, '${path.slice(0, 80)}'`);
  return resolveFrom(ROOT, path);
}

/** Where a symlink at `link` leads. */
export function linkTarget(link: string, target: string): string {
  return resolveFrom(parentOf(link), target);
}

/** Where a path leads from a directory. What leads above the root is the root's business: it has no above. */
export function resolveFrom(directory: string, path: string): string {
  const parts: string[] = [];
  for (const part of `${path.startsWith("/") ? "" : `${directory}/`}${path}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return ROOT + parts.join("/");
}

export function parentOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at <= 0 ? ROOT : path.slice(0, at);
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function joinPath(parent: string, name: string): string {
  return parent === ROOT ? ROOT + name : `${parent}/${name}`;
}

/** The parts of a normalised path. */
export function partsOf(path: string): string[] {
  return path === ROOT ? [] : path.slice(1).split("/");
}

/** Whether `path` is `dir` or below it. */
export function isWithin(path: string, dir: string): boolean {
  return path === dir || dir === ROOT || path.startsWith(`${dir}/`);
}

function checkName(name: string): string {
  if (name.length > MAX_NAME)
    throw posixError("ENAMETOOLONG", `The name "${name.slice(0, 40)}…" has more than ${MAX_NAME} characters.`);
  return name;
}
