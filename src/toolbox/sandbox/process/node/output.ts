import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { LogLine } from "../../sandbox.ts";

/** Collects what a jail prints, up to a number of bytes over all its pipes. */
export class Output {
  readonly logs: LogLine[] = [];
  readonly #onLog: ((line: LogLine) => void) | undefined;
  readonly #over: () => void;
  #left: number;

  constructor(bytes: number, onLog: ((line: LogLine) => void) | undefined, over: () => void) {
    this.#left = bytes;
    this.#onLog = onLog;
    this.#over = over;
  }

  /** Lines of a pipe become log lines. Settles when the pipe ends. */
  async lines(pipe: Readable, level: "stdout" | "stderr"): Promise<void> {
    const decoder = new StringDecoder("utf8");
    let rest = "";
    for await (const chunk of this.#bounded(pipe)) {
      const lines = (rest + decoder.write(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const text of lines) this.#log({ level, text });
    }
    rest += decoder.end();
    if (rest !== "") this.#log({ level, text: rest });
  }

  /** All of a pipe. */
  async whole(pipe: Readable): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.#bounded(pipe)) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
  }

  async *#bounded(pipe: Readable): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of pipe) {
        const bytes = chunk as Buffer;
        const room = Math.max(0, this.#left);
        this.#left -= bytes.byteLength;
        if (room > 0) yield bytes.subarray(0, room);
        if (this.#left < 0) this.#over();
      }
    } catch {
      // Closed while it was read: what came is what there is.
    }
  }

  #log(line: LogLine): void {
    this.logs.push(line);
    try {
      this.#onLog?.(line);
    } catch {
      // A listener's trouble is not the run's.
    }
  }
}
