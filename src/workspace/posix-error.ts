import { PerdureError, type PerdureErrorCode } from "../error.ts";

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

/** The POSIX name that an error begins with, if it does. */
export function posixNameOf(thrown: unknown): PosixName | undefined {
  if (!PerdureError.is(thrown)) return undefined;
  const name = /^[A-Z]+(?=: )/.exec(thrown.message)?.[0];
  return name !== undefined && name in codes ? (name as PosixName) : undefined;
}
