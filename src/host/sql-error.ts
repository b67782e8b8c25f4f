import { errorText, PerdureError } from "../base/error.ts";

/** What SQLite threw, as an error that says what to do. Full disks and damaged files are told apart from wrong statements. */
export function toSqlError(thrown: unknown, where: string): PerdureError {
  if (PerdureError.is(thrown)) return thrown;
  const code = codeOf(thrown);
  const text = errorText(thrown);
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB") {
    return new PerdureError(
      "database_corrupt",
      `The database of ${where} is damaged (${text}). Other agents are not affected. ` +
        "Stop the host, then restore the file from a backup or move it away.",
      { cause: thrown },
    );
  }
  if (code === "SQLITE_FULL" || code === "ENOSPC") {
    return new PerdureError(
      "disk_full",
      `No space left to write for ${where} (${text}). What was committed is kept; free space or raise the limit, then try again.`,
      { cause: thrown },
    );
  }
  // Also of a disk that could be written to when the host started.
  if (code === "EROFS" || (code.startsWith("SQLITE_IOERR") && !code.endsWith("_READ"))) {
    return new PerdureError(
      "disk_full",
      `Writing to the disk failed for ${where} (${text}): it is full, read-only, or damaged. ` +
        "What was committed is kept; fix that, then try again.",
      { cause: thrown },
    );
  }
  if (code === "SQLITE_TOOBIG") {
    return new PerdureError(
      "too_large",
      `A value or a statement of ${where} is larger than its database takes: ${text}`,
      {
        cause: thrown,
      },
    );
  }
  return new PerdureError("sql_failed", `SQLite refused a statement of ${where}: ${text}`, { cause: thrown });
}

/** A code such as `SQLITE_FULL`. Some platforms say it in the text alone. */
export function codeOf(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return "";
  if ("code" in thrown && typeof thrown.code === "string") return thrown.code;
  return /\bSQLITE_[A-Z_]+/.exec(errorText(thrown))?.[0] ?? "";
}
