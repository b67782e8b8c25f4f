/** The SHA-256 of bytes, or of a text in UTF-8, in hex. */
export async function sha256(data: Uint8Array | string): Promise<string> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  // A view on shared memory cannot be hashed; nobody here has one.
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const PRIME = 0x01000193;

/** A synchronous fingerprint of a text, unlike {@link sha256}. No proof against somebody who wants two texts to be alike. */
export function fingerprint(text: string): string {
  const hex = lanesOf(text).map((lane) => (lane >>> 0).toString(16).padStart(8, "0"));
  return `${text.length.toString(16)}-${hex.join("")}`;
}

/** A {@link fingerprint} in 22 characters that may stand in an address. */
export function shortFingerprint(text: string): string {
  const bytes = new Uint8Array(Int32Array.from([...lanesOf(text), text.length]).buffer);
  // The length has four bytes of its own, which is more than is worth its place.
  for (let at = 0; at < 4; at++) bytes[at] = (bytes[at] ?? 0) ^ (bytes[at + 16] ?? 0);
  return btoa(String.fromCharCode(...bytes.subarray(0, 16)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function lanesOf(text: string): number[] {
  // Four variables and not a list of four, which takes several times longer.
  let [a, b, c, d] = [0x811c9dc5, 0x9e3779b9, 0x85ebca6b, 0xc2b2ae35];
  const { length } = text;
  for (let at = 0; at < length; at += 4) {
    a = Math.imul(a ^ text.charCodeAt(at) ^ (b >>> 15), PRIME);
    if (at + 1 < length) b = Math.imul(b ^ text.charCodeAt(at + 1) ^ (c >>> 15), PRIME);
    if (at + 2 < length) c = Math.imul(c ^ text.charCodeAt(at + 2) ^ (d >>> 15), PRIME);
    if (at + 3 < length) d = Math.imul(d ^ text.charCodeAt(at + 3) ^ (a >>> 15), PRIME);
  }
  return [a, b, c, d];
}
