import { Cron } from "croner";
import { errorText, PerdureError } from "../base/error.ts";

/** Where cron expressions are read when nothing else is said. */
export const DEFAULT_TIME_ZONE = "UTC";

/**
 * The first time after `after` at which `expression` holds in `timeZone` (milliseconds since the epoch); null when there is none.
 * At a clock change a skipped time runs once, right after the gap, and a doubled one runs once.
 * @throws PerdureError `bad_input` for an expression or a zone that does not exist
 */
export function nextCronTime(expression: string, timeZone: string, after: number): number | null {
  // The library also takes dates; in those a typing mistake in an expression would pass as a run in the past.
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6 && !/^@\w+$/.test(expression.trim())) {
    throw new PerdureError(
      "bad_input",
      `"${expression}" is not a cron expression: it needs five fields such as "0 9 * * 1", or six with seconds first. ` +
        "For a single time pass a Date.",
    );
  }
  try {
    return new Cron(expression, { paused: true, timezone: timeZone }).nextRun(new Date(after))?.getTime() ?? null;
  } catch (error) {
    throw new PerdureError("bad_input", `Cron "${expression}" in time zone "${timeZone}": ${errorText(error)}`, {
      cause: error,
    });
  }
}
