import fs from "node:fs";
import path from "node:path";
import { errorText, PerdureError } from "../../base/error.ts";
import { codeOf } from "../sql-error.ts";

const MIB = 1024 * 1024;
const READ_ONLY = /^(EROFS|EACCES|EPERM|ENOENT|SQLITE_READONLY.*|SQLITE_CANTOPEN.*)$/;
const FULL = /^(ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_WRITE|SQLITE_IOERR_SHMSIZE|SQLITE_IOERR_TRUNCATE)$/;

/** What was thrown as the data directory was opened, as an error that names the directory and says what to do. */
export function toStartError(thrown: unknown, dir: string): PerdureError {
  const codes = [codeOf(thrown), codeOf(thrown instanceof Error ? thrown.cause : undefined)];
  const whole = path.resolve(dir);
  if (codes.some((code) => FULL.test(code))) {
    return new PerdureError(
      "disk_full",
      `The file system of the directory ${whole} is full (${freeOf(whole)}), so the host cannot start. Nothing was lost: free space there, or move the directory to a larger disk, then start again.`,
      { cause: thrown },
    );
  }
  if (codes.some((code) => READ_ONLY.test(code)) && !isWritable(whole)) {
    return new PerdureError(
      "directory_read_only",
      `The directory ${whole} is not writable (${errorText(thrown)}). Give this process's user write access, mount it read-write, or give the host another \`dir\`.`,
      { cause: thrown },
    );
  }
  if (PerdureError.is(thrown)) return thrown;
  return new PerdureError("bad_config", `The directory "${dir}" cannot be used: ${errorText(thrown)}`, {
    cause: thrown,
  });
}

/** Asks the file system itself: to root all may look writable that is not. */
function isWritable(dir: string): boolean {
  const at = fs.existsSync(dir) ? dir : path.dirname(dir);
  const probe = path.join(at, `.perdure-${process.pid}.probe`);
  try {
    fs.closeSync(fs.openSync(probe, "wx", 0o600));
    fs.rmSync(probe, { force: true });
    return true;
  } catch {
    return false;
  }
}

function freeOf(dir: string): string {
  try {
    const { bavail, bsize } = fs.statfsSync(dir);
    return `${Math.floor((bavail * bsize) / MIB)} MiB free`;
  } catch {
    return "how much is free is not known";
  }
}
