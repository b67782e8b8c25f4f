import { PerdureError } from "../base/error.ts";

/**
 * The error of a rule that gave an answer it must not give; whoever asked takes the safe one.
 * @param rule its name, as in `needsApproval`.
 * @param wanted what it may answer, in words.
 */
export function oddAnswer(rule: string, said: unknown, wanted: string): PerdureError {
  return new PerdureError("bad_config", `${rule} answered ${describe(said)}. It must be ${wanted}.`);
}

function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100));
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  if (typeof (value as { then?: unknown }).then === "function") return "a promise, which nobody waits for here";
  return Array.isArray(value) ? "a list" : `an object with ${Object.keys(value).slice(0, 3).join(", ") || "no fields"}`;
}
