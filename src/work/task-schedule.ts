/** A schedule as it was read. `days` are numbered as `Date.getUTCDay` does, `time` is milliseconds from midnight. */
export type TaskPlan =
  | { readonly kind: "interval"; readonly step: number }
  | {
      readonly kind: "wall-clock";
      readonly days: readonly number[];
      readonly time: number;
      /** The zone that the text names. */
      readonly zone: string | undefined;
    };

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK_DAYS = 7;
const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
const EVERY_DAY = [0, 1, 2, 3, 4, 5, 6];
const MONDAY_TO_FRIDAY = [1, 2, 3, 4, 5];
/** The day of the week of day 0 of the epoch. */
const FIRST_WEEKDAY = 4;
const MAX_COUNT = 100_000;

/** What may be written, for error messages. */
export const ALLOWED_SCHEDULES =
  'Allowed are "every <n> minutes", "every <n> hours", "every day at HH:mm", "every weekday at HH:mm" and ' +
  '"every week on monday,wednesday at HH:mm"; those with a time may end in " in <Area/City>"';

/** Reads a schedule. @returns a text that says what is wrong with it, when something is */
export function parseSchedule(text: string): TaskPlan | string {
  const interval = /^every (?:(\S+) )?(minute|hour)(s?)$/.exec(text);
  if (interval !== null) return readInterval(interval[1], interval[2] === "hour" ? HOUR : MINUTE, interval[3] === "s");
  const clock = /^every (day|weekday|week on (\S+)) at (\S+)(?: in (\S+))?$/.exec(text);
  if (clock === null) return "it is none of the forms";
  const [, when, names, time = "", zone] = clock;
  const days = names === undefined ? (when === "day" ? EVERY_DAY : MONDAY_TO_FRIDAY) : readDays(names);
  if (typeof days === "string") return days;
  const digits = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(time);
  if (digits === null) return `"${time}" is not a time from 00:00 to 23:59`;
  return { kind: "wall-clock", days, time: Number(digits[1]) * HOUR + Number(digits[2]) * MINUTE, zone };
}

function readInterval(count: string | undefined, unit: number, plural: boolean): TaskPlan | string {
  if (count === undefined) return plural ? "it does not say how many" : { kind: "interval", step: unit };
  const n = /^[1-9]\d*$/.test(count) ? Number(count) : 0;
  if (n < 1 || n > MAX_COUNT) return `"${count}" is not a whole number from 1 to ${MAX_COUNT}`;
  return { kind: "interval", step: n * unit };
}

function readDays(names: string): readonly number[] | string {
  const days: number[] = [];
  for (const name of names.split(",")) {
    const day = WEEKDAYS.findIndex((one) => one === name);
    if (day === -1) return `"${name}" is not a day of the week: monday, tuesday, … without spaces between`;
    days.push(day);
  }
  return days;
}

/**
 * The first occurrence after `after`; intervals count from `anchor`. A skipped wall time is right after the gap, a doubled one
 * the first of the two; a skipped day has none.
 */
export function occurrenceAfter(plan: TaskPlan, timeZone: string | null, anchor: number, after: number): number {
  if (plan.kind === "interval") return anchor + Math.max(1, Math.floor((after - anchor) / plan.step) + 1) * plan.step;
  const zone = timeZone ?? "UTC";
  // From the day before: after a gap around midnight its time may still be to come.
  for (let day = dayOf(wallTimeAt(after, zone)) - 1; ; day++) {
    if (!plan.days.includes((day + FIRST_WEEKDAY) % WEEK_DAYS)) continue;
    const at = instantOf(day * DAY + plan.time, zone);
    if (at !== undefined && at > after) return at;
  }
}

/** Time as clocks on a wall show it: milliseconds since the epoch of a UTC clock that shows the same. */
type WallTime = number;

const SECOND = 1000;
/** A formatter takes much longer to make than to use, and much memory to keep. */
const KEPT_FORMATS = 64;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether `timeZone` is a name that the platform knows. */
export function isTimeZone(timeZone: string): boolean {
  try {
    formatOf(timeZone);
    return true;
  } catch {
    return false;
  }
}

/** What clocks in `timeZone` show at `instant`. @throws RangeError for a zone that does not exist */
export function wallTimeAt(instant: number, timeZone: string): WallTime {
  const shown: Record<string, number> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(instant)) shown[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (instant - Math.floor(instant / SECOND) * SECOND);
}

/**
 * The first instant at which clocks in `timeZone` show `wall`, or the first after the gap that skips it; none if the whole day is
 * skipped. @throws RangeError for a zone that does not exist
 */
export function instantOf(wall: WallTime, timeZone: string): number | undefined {
  // No zone is a day away from UTC, so these two are before and after any change of the clocks that matters.
  const before = wall - DAY - wallTimeAt(wall - DAY, timeZone);
  const after = wall + DAY - wallTimeAt(wall + DAY, timeZone);
  const [early, late] = before < after ? [wall + before, wall + after] : [wall + after, wall + before];
  if (wallTimeAt(early, timeZone) === wall) return early;
  if (wallTimeAt(late, timeZone) === wall) return late;
  const change = firstPast(wall, early, late, timeZone);
  const isSkipped =
    dayOf(wallTimeAt(change - 1, timeZone)) < dayOf(wall) && dayOf(wall) < dayOf(wallTimeAt(change, timeZone));
  return isSkipped ? undefined : change;
}

/** The first instant in (`from`, `to`] at which clocks show more than `wall`. They do at `to`, and not at `from`. */
function firstPast(wall: WallTime, from: number, to: number, timeZone: string): number {
  let [shown, past] = [from, to];
  while (past - shown > 1) {
    const middle = Math.floor((shown + past) / 2);
    if (wallTimeAt(middle, timeZone) > wall) past = middle;
    else shown = middle;
  }
  return past;
}

/** Which day a wall time is in. Days are numbered; day 0 was a Thursday. */
function dayOf(wall: WallTime): number {
  return Math.floor(wall / DAY);
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    calendar: "iso8601",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  if (formats.size >= KEPT_FORMATS) formats.clear();
  formats.set(timeZone, format);
  return format;
}
