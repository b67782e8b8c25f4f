/** Time as clocks on a wall show it: milliseconds since the epoch of a UTC clock that shows the same. */
type WallTime = number;

const SECOND = 1000;
const DAY = 86_400_000;
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
 * The first instant at which clocks in `timeZone` show `wall`. A time that they show twice is the first of the two.
 * One that they skip is the first instant after the gap; none if they skip that whole day.
 * @throws RangeError for a zone that does not exist
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
export function dayOf(wall: WallTime): number {
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
