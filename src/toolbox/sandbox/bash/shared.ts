import { createBashSandbox, type BashSandbox } from "./bash-sandbox.ts";

let shared: BashSandbox | undefined;

/** The shell that everything in this process uses that was given none of its own. Never disposed of. */
export function sharedBashSandbox(): BashSandbox {
  return (shared ??= createBashSandbox());
}
