import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Two ways out of a jail. */
export interface OutputPipes {
  /** What the child gets as its standard output and standard error. */
  readonly ends: readonly [out: number, err: number];
  readonly streams: readonly [out: Readable, err: Readable];
  /** Call it when the child has the ends, or will not get them. */
  closeEnds(): void;
}

/**
 * Real pipes for what a jail prints. Node's own are sockets, and a program that opens `/dev/stdout` or `/dev/stderr`
 * fails on those. They have no names left when this settles.
 */
export async function makeOutputPipes(mkfifo: string, folder: string): Promise<OutputPipes> {
  const paths = [join(folder, randomUUID()), join(folder, randomUUID())] as const;
  try {
    // Everybody may open what has no name any more: the jail's user is not who made it.
    await run(mkfifo, ["-m", "666", ...paths], { env: {} });
    const [out, err] = [openPipe(paths[0]), openPipe(paths[1])];
    return {
      ends: [out.end, err.end],
      streams: [out.stream, err.stream],
      closeEnds() {
        closeSync(out.end);
        closeSync(err.end);
      },
    };
  } finally {
    for (const path of paths) await rm(path, { force: true });
  }
}

/** Neither side waits for the other: the reader does not block, and when the writer opens there is a reader. */
function openPipe(path: string): { readonly end: number; readonly stream: Readable } {
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const end = openSync(path, constants.O_WRONLY);
  return { end, stream: new Socket({ fd: reader, readable: true, writable: false }) };
}
