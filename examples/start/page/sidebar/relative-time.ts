const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const DAYS_IN_WORDS = 7;

/** How long ago, in few letters: "now", "5 min", "3 h", "2 d", then the date. */
export function relativeTime(at: number, now: number): string {
  const ago = Math.max(0, now - at);
  if (ago < MINUTE_MS) return "now";
  if (ago < HOUR_MS) return `${Math.floor(ago / MINUTE_MS)} min`;
  if (ago < DAY_MS) return `${Math.floor(ago / HOUR_MS)} h`;
  if (ago < DAYS_IN_WORDS * DAY_MS) return `${Math.floor(ago / DAY_MS)} d`;
  return new Date(at).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
