import { readError } from "./error-facts.ts";

/** Nobody waits longer for one call; a limit that lasts longer is as good as none. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;
/** A number above this is a date (seconds since 1970), and above the other, one in milliseconds. */
const DATE_IN_SECONDS = 1_000_000_000;
const DATE_IN_MS = 1_000_000_000_000;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * How long the provider asks to wait, in milliseconds from `now`, between 0 and a day; `undefined` if it does not say.
 * In this order: `retry-after-ms`; `retry-after` (seconds or a date); Google's `retryDelay`; "try again in 4.77s" in
 * the message; and for rate limits the `…ratelimit-reset…` headers (durations such as `6m0s`, seconds, dates), of
 * those limits that are used up, else of all. Never throws.
 */
export function retryAfterMs(error: unknown, now: number): number | undefined {
  const { headers, statuses, wording } = readError(error);
  const said =
    number(headers["retry-after-ms"]) ??
    secondsOrDate(headers["retry-after"], now) ??
    duration(headers["retry-delay"]) ??
    duration(
      /\b(?:try again|retry) (?:in|after) (?:~ ?)?((?:\d+(?:\.\d+)? ?(?:ms|[smhd])[a-z]* ?)+)/.exec(wording)?.[1],
    );
  const wait = said ?? (statuses[0] === undefined || statuses[0] === 429 ? resetHeaders(headers, now) : undefined);
  return wait === undefined ? undefined : Math.min(Math.max(0, Math.ceil(wait)), MAX_WAIT_MS);
}

/** `x-ratelimit-reset-tokens`, `anthropic-ratelimit-input-tokens-reset`, `x-ratelimit-reset`, `ratelimit-reset` … */
function resetHeaders(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const waits: number[] = [];
  const usedUp: number[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (!name.includes("ratelimit") || !name.includes("reset")) continue;
    const wait = duration(value) ?? secondsOrDate(value, now);
    if (wait === undefined) continue;
    waits.push(wait);
    if (number(headers[name.replace("reset", "remaining")]) === 0) usedUp.push(wait);
  }
  const relevant = usedUp.length > 0 ? usedUp : waits;
  return relevant.length === 0 ? undefined : Math.max(...relevant);
}

function secondsOrDate(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const seconds = number(value);
  if (seconds !== undefined) {
    if (seconds >= DATE_IN_MS) return seconds - now;
    return seconds >= DATE_IN_SECONDS ? seconds * 1000 - now : seconds * 1000;
  }
  // `Date.parse` takes almost anything for a date; a real one has the year.
  const date = /\d{4}/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : date - now;
}

/** `34.07s`, `6m0s`, `1h 2m`, `120ms`, `20 seconds` */
function duration(value: string | undefined): number | undefined {
  if (value === undefined || !/^(\s*\d+(\.\d+)? ?[a-z]+)+\s*$/.test(value)) return undefined;
  let total = 0;
  for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/g)) {
    const ms = unit === "ms" || unit?.startsWith("milli") ? unitMs["ms"] : unitMs[unit?.[0] ?? ""];
    if (ms === undefined) return undefined;
    total += Number(amount) * ms;
  }
  return total;
}

function number(value: string | undefined): number | undefined {
  return value !== undefined && /^-?\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}
