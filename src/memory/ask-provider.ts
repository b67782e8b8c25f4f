import { errorText, PerdureError } from "../base/error.ts";
import type { Clock } from "../base/time.ts";

/** How long a provider may take when a prompt waits for it. */
export const READ_MS = 10_000;
/** How long it may take for what the model, or the app, asks of it. */
export const WORK_MS = 30_000;

/** Asks a provider. @throws PerdureError `provider_failed`, `timeout`, which say whose provider it was and what it was asked. */
export async function askProvider<T>(
  clock: Clock,
  ms: number,
  what: string,
  work: () => T | Promise<T>,
): Promise<Awaited<T>> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () =>
    late.reject(new PerdureError("timeout", `${what} was given up: its provider took longer than ${ms} ms.`)),
  );
  try {
    return await Promise.race([(async () => work())(), late.promise]);
  } catch (thrown) {
    if (PerdureError.is(thrown)) throw thrown;
    throw new PerdureError("provider_failed", `${what} failed: ${errorText(thrown)}`, { cause: thrown });
  } finally {
    cancel();
  }
}

/** The text that a provider gave. @throws PerdureError `provider_failed` for anything else */
export function textFrom(what: string, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value.toWellFormed();
  throw new PerdureError("provider_failed", `${what} failed: its provider returned ${typeof value}, not a string.`);
}
