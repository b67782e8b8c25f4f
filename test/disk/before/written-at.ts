/** What the clock showed when the directory was written. */
export const WRITTEN_AT = Date.UTC(2026, 10, 16, 7);
