/** Messages over a pipe: one line of JSON each, bytes as base64. */

const LONGEST_FRAME_BYTES = 512 << 20;
const BYTES = "$bytes";

export function encodeFrame(message: unknown): string {
  return `${JSON.stringify(message, (_key, value: unknown) =>
    value instanceof Uint8Array
      ? { [BYTES]: Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64") }
      : value,
  )}\n`;
}

/** @throws for what is no JSON */
export function decodeFrame(line: string): unknown {
  return JSON.parse(line, (_key, value: unknown) => {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, BYTES)) return value;
    const { [BYTES]: text } = value as Record<string, unknown>;
    return typeof text === "string" ? new Uint8Array(Buffer.from(text, "base64")) : value;
  });
}

/** Takes chunks of a pipe and hands on its lines. Throws for a line that never ends. */
export function splitFrames(onLine: (line: string) => void): (chunk: Buffer) => void {
  let held: Buffer[] = [];
  let bytes = 0;
  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      held.push(chunk.subarray(from, at));
      const line = Buffer.concat(held).toString("utf8");
      held = [];
      bytes = 0;
      from = at + 1;
      onLine(line);
    }
    if (from === chunk.length) return;
    held.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > LONGEST_FRAME_BYTES) throw new Error("A line of a lane never ends.");
  };
}
