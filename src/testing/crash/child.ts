import { writeSync } from "node:fs";
import { PerdureError } from "../../base/error.ts";
import { ENV, encodeLine, type Fact, type Line } from "./protocol.ts";

/**
 * For programs under the crash harness: a function to call right after every commit (`onCommit` of
 * `createHost`). It counts the commits of the process and, after the one that the harness chose, kills the
 * process with SIGKILL: no handler, no `finally`, no flush runs. Outside of the harness it does nothing.
 * The count is shared by all functions that this returns.
 */
export function crashPoint(): (count?: number, agentId?: string) => void {
  const killAt = readKillAt();
  return () => {
    commits += 1;
    if (process.env[ENV.program] !== undefined) writeLine({ kind: "commit", count: commits });
    if (commits === killAt) process.kill(process.pid, "SIGKILL");
  };
}

let commits = 0;

/**
 * Tells the harness a fact. It has left the process when this returns, so a kill on the next line does not
 * lose it. Report only what a client would have been told: the checks compare it with what survived.
 */
export function report(fact: Fact): void {
  writeLine({ kind: "fact", fact });
}

/**
 * Calls `handler` with every command that the driver sends. Keeps the process alive until the returned function
 * is called. The handler must not throw: that ends the process, as any uncaught error does.
 */
export function onCommand(handler: (command: unknown) => void): () => void {
  const listener = (message: unknown): void => {
    if (typeof message === "object" && message !== null && "command" in message) handler(message.command);
  };
  process.on("message", listener);
  process.channel?.ref();
  return () => {
    process.off("message", listener);
    process.channel?.unref();
  };
}

/** The folder that this life must keep its data in. @throws PerdureError `bad_state` outside of the harness */
export function programDir(): string {
  const dir = process.env[ENV.dir];
  if (dir === undefined) {
    throw new PerdureError(
      "bad_state",
      `No folder was given: start this program with startProgram, or set ${ENV.dir}.`,
    );
  }
  return dir;
}

function readKillAt(): number | undefined {
  const text = process.env[ENV.killAt];
  if (text === undefined) return undefined;
  const killAt = Number(text);
  if (Number.isInteger(killAt) && killAt > 0) return killAt;
  throw new PerdureError("bad_config", `${ENV.killAt} must be the number of a commit, from 1; it is "${text}".`);
}

const STDOUT = 1;
/** The parent reads all the time, so a full pipe is empty soon. */
const FULL_PIPE_WAIT_MS = 1;

function writeLine(line: Line): void {
  let bytes = Buffer.from(encodeLine(line));
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(STDOUT, bytes));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_WAIT_MS);
    }
  }
}
