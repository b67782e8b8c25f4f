import type { AboutFailure } from "../port.ts";
import { PerdureError } from "../base/error.ts";
import { withoutSecrets } from "../model/describe-error.ts";
import { wasEnded } from "./failure.ts";

/** How many causes of an error are written. */
const MAX_CAUSES = 4;

/** Something that failed, for the log of a host. */
export interface LogEntry extends AboutFailure {
  /** The agent's whole address: `ChatAgent/anna`. */
  readonly agent: string;
  /** What was thrown, with its stack if it has one. */
  readonly error: unknown;
  /** Milliseconds since the epoch. */
  readonly timestamp: number;
}

/** Where failures are written: a function of yours, or nowhere. Should be quick; what it throws is dropped. */
export type Log = false | ((entry: LogEntry) => void);

/** The one place that writes what fails. An error that comes by several ways is written once. Never throws. */
export function logTo(log: Log = writeToConsole): (entry: LogEntry) => void {
  const written = new WeakSet<object>();
  return (entry) => {
    const { error } = entry;
    if (log === false || wasEnded(error)) return;
    if (typeof error === "object" && error !== null) {
      if (written.has(error)) return;
      written.add(error);
    }
    try {
      log(entry);
    } catch {
      // It has nowhere else to go.
    }
  };
}

function writeToConsole({ agent, stage, requestId, error }: LogEntry): void {
  const where = requestId === undefined ? "" : ` (request ${requestId})`;
  console.error(`[${agent}] ${stage} failed${where}: ${describe(error)}`);
}

/** Only what it says, without keys, and where it comes from: errors of providers also carry what was sent to them. */
function describe(error: unknown, causes = 0): string {
  if (!(error instanceof Error)) return withoutSecrets(String(error));
  const code = PerdureError.is(error) ? `${error.code}: ` : "";
  const said = `${code === "" ? `${error.name}: ` : code}${withoutSecrets(error.message)}`;
  const frames = /\n\s+at [\s\S]*/.exec(error.stack ?? "")?.[0] ?? "";
  const cause =
    error.cause === undefined || causes === MAX_CAUSES ? "" : `\n  cause: ${describe(error.cause, causes + 1)}`;
  return said + frames + cause;
}
