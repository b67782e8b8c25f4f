import type { LogEntry } from "perdure/node";

/** One line for what fails. What becomes of a turn the assistant logs itself, in the words that the user reads. */
export function logLine({ agent, stage, requestId, error }: LogEntry): void {
  if (requestId !== undefined && agent.includes("/Assistant/")) return;
  console.error(`[${agent}] ${stage}: ${error instanceof Error ? error.message : String(error)}`);
}
