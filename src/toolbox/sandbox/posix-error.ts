import { PerdureError, type PerdureErrorCode } from "../../base/error.ts";

const codes = {
  ENOENT: "not_found",
  EEXIST: "conflict",
  ENOTEMPTY: "conflict",
  EISDIR: "bad_input",
  ENOTDIR: "bad_input",
  EINVAL: "bad_input",
  ELOOP: "bad_input",
  ENAMETOOLONG: "bad_input",
  EFBIG: "limit",
  ENOSPC: "limit",
  EROFS: "read_only",
  EPERM: "not_allowed",
  EIO: "not_found",
} as const satisfies Record<string, PerdureErrorCode>;

/** Names of failures that shells and sandboxes know. */
export type PosixName = keyof typeof codes;

/** A failure of a file operation. Its message begins with `name`, so that whoever speaks POSIX can pass it on. */
export function posixError(name: PosixName, what: string, cause?: unknown): PerdureError {
  return new PerdureError(codes[name], `${name}: ${what}`, cause === undefined ? undefined : { cause });
}

/** The POSIX name of an error: of ours, of Node's, or of anybody's whose message begins with one. */
export function posixNameOf(thrown: unknown): PosixName | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const own: unknown = "code" in thrown ? thrown.code : undefined;
  const names: unknown[] = [own, /^[A-Z]+(?=: )/.exec(thrown.message)?.[0]];
  return names.find((name): name is PosixName => typeof name === "string" && Object.hasOwn(codes, name));
}
