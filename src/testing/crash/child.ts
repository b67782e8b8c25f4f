import { writeSync } from "node:fs";
import { PerdureError } from "../../base/error.ts";
import { ENV, encodeLine, type Fact, type Line } from "./protocol.ts";

/**
 * For programs under the crash harness: call the result after every commit (`onCommit` of `createHost`). It counts the process's
 * commits and, after the one that the harness chose, kills it with SIGKILL: no handler, no `finally`, no flush. Does nothing
 * outside the harness. All functions that this returns share the count.
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
 * Tells the harness a fact, which has left the process on return: a kill on the next line does not lose it. Report only what a
 * client would have been told: the checks compare it with what survived.
 */
export function report(fact: Fact): void {
  writeLine({ kind: "fact", fact });
}

/** Calls `handler`, which must not throw, with each command of the driver. Keeps the process alive until the result is called. */
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
