import { expect, test } from "vitest";
import { toSqlError } from "./sql-error.ts";

const thrown = (code: string) => Object.assign(new Error("disk I/O error"), { code });

test.each([
  ["SQLITE_FULL", "disk_full", "No space left"],
  ["ENOSPC", "disk_full", "No space left"],
  ["SQLITE_IOERR_WRITE", "disk_full", "read-only"],
  ["SQLITE_IOERR_TRUNCATE", "disk_full", "read-only"],
  ["SQLITE_IOERR_FSYNC", "disk_full", "read-only"],
  ["EROFS", "disk_full", "read-only"],
  ["SQLITE_IOERR_READ", "sql_failed", "refused"],
  ["SQLITE_IOERR_SHORT_READ", "sql_failed", "refused"],
  ["SQLITE_CORRUPT_INDEX", "database_corrupt", "damaged"],
  ["SQLITE_ERROR", "sql_failed", "refused"],
  ["SQLITE_TOOBIG", "too_large", "larger"],
])("%s is told as %s: what the disk does not take is no wrong statement", (code, as, words) => {
  const error = toSqlError(thrown(code), "Writer/a");
  expect(error.code).toBe(as);
  expect(error.message).toContain(words);
});

test("a code that stands in the text alone is read there", () => {
  const error = toSqlError(new Error("database or disk is full: SQLITE_FULL"), "Writer/a");
  expect(error.code).toBe("disk_full");
});
