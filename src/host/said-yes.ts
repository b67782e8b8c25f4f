import { PerdureError } from "../error.ts";

/**
 * What a function of the app that must say true or false has said.
 * @throws PerdureError `bad_config` for anything else: a promise, or a value that only counts as yes, lets nobody in.
 */
export function saidYes(answer: unknown, option: string): boolean {
  if (typeof answer === "boolean") return answer;
  // Nobody waits for it; what it rejects with must not end the process.
  if (answer instanceof Promise) answer.catch(() => undefined);
  throw new PerdureError("bad_config", `The function \`${option}\` must return true or false, at once.`);
}
