/** Pieces of bytes as one. A piece that is alone is not copied. */
export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/** All of these pieces. What `tooMuch` gives is thrown, and no more is read, when they have more than `max` bytes. */
export async function readUpTo(
  pieces: AsyncIterable<Uint8Array>,
  max: number,
  tooMuch: () => Error,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of pieces) {
    size += chunk.byteLength;
    if (size > max) throw tooMuch();
    chunks.push(chunk);
  }
  return concat(chunks);
}

/** As many bytes as a call may have arguments, safely; divisible by 3, so that the pieces join. */
const BASE64_CHUNK = 24_576;

/** Bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += BASE64_CHUNK) {
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + BASE64_CHUNK)));
  }
  return text;
}

/** @throws when it is no base64 */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
