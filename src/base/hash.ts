/** Up to this many bytes are hashed at once: the way through the thread pool takes longer, the more so in a busy process. */
const SHORT_BYTES = 1_024;

/** The SHA-256 of bytes, or of a text in UTF-8, in hex. */
export async function sha256(data: Uint8Array | string): Promise<string> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  if (bytes.length <= SHORT_BYTES) return sha256Now(bytes);
  // A view on shared memory cannot be hashed; nobody here has one.
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The SHA-256 of a text in UTF-8, in 43 characters that may stand in an address. */
export async function sha256Base64(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return btoa(String.fromCharCode(...hash))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace("=", "");
}

const PRIME = 0x01000193;

/** A synchronous fingerprint of a text, unlike {@link sha256}. No proof against somebody who wants two texts to be alike. */
export function fingerprint(text: string): string {
  // Four variables and not a list of four, which takes several times longer.
  let [a, b, c, d] = [0x811c9dc5, 0x9e3779b9, 0x85ebca6b, 0xc2b2ae35];
  const { length } = text;
  for (let at = 0; at < length; at += 4) {
    a = Math.imul(a ^ text.charCodeAt(at) ^ (b >>> 15), PRIME);
    if (at + 1 < length) b = Math.imul(b ^ text.charCodeAt(at + 1) ^ (c >>> 15), PRIME);
    if (at + 2 < length) c = Math.imul(c ^ text.charCodeAt(at + 2) ^ (d >>> 15), PRIME);
    if (at + 3 < length) d = Math.imul(d ^ text.charCodeAt(at + 3) ^ (a >>> 15), PRIME);
  }
  const lanes = [a, b, c, d];
  const hex = lanes.map((lane) => (lane >>> 0).toString(16).padStart(8, "0"));
  return `${text.length.toString(16)}-${hex.join("")}`;
}

const BLOCK_BYTES = 64;
const BLOCK_WORDS = 16;
const ROUNDS = 64;
/** Of the length, in bits, which ends the last block. */
const LENGTH_BYTES = 8;
const BYTE_BITS = 8;
const HALF_RANGE = 2 ** 32;
/** Of a word, in hex. */
const WORD_CHARS = 8;

/** The first 32 bits behind the point of these roots of the first primes. */
function rootsOfPrimes(count: number, degree: 2 | 3): Uint32Array {
  const roots = new Uint32Array(count);
  const isPrime = (n: number) => {
    for (let by = 2; by * by <= n; by++) if (n % by === 0) return false;
    return true;
  };
  for (let n = 2, at = 0; at < count; n++) {
    if (!isPrime(n)) continue;
    const root = degree === 2 ? Math.sqrt(n) : Math.cbrt(n);
    roots[at++] = (root - Math.floor(root)) * HALF_RANGE;
  }
  return roots;
}

const START = rootsOfPrimes(8, 2);
const ADDED = rootsOfPrimes(ROUNDS, 3);

/** FIPS 180-4. */
function sha256Now(bytes: Uint8Array): string {
  const blocks = Math.ceil((bytes.length + 1 + LENGTH_BYTES) / BLOCK_BYTES);
  const padded = new Uint8Array(blocks * BLOCK_BYTES);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, bytes.length * BYTE_BITS);
  const hash = START.slice();
  const words = new Uint32Array(ROUNDS);
  for (let block = 0; block < padded.length; block += BLOCK_BYTES) {
    for (let at = 0; at < BLOCK_WORDS; at++) words[at] = view.getUint32(block + at * 4);
    mix(hash, words);
  }
  return Array.from(hash, (word) => word.toString(16).padStart(WORD_CHARS, "0")).join("");
}

function mix(hash: Uint32Array, words: Uint32Array): void {
  const word = (at: number) => words[at] ?? 0;
  for (let at = BLOCK_WORDS; at < ROUNDS; at++) {
    const [late, early] = [word(at - 2), word(at - 15)];
    const low = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const high = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    words[at] = word(at - 16) + low + word(at - 7) + high;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = hash;
  for (let at = 0; at < ROUNDS; at++) {
    const chosen = (e & f) ^ (~e & g);
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + chosen + (ADDED[at] ?? 0) + word(at)) | 0;
    const most = (a & b) ^ (a & c) ^ (b & c);
    const other = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + most;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + other) | 0];
  }
  for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) hash[at] = (hash[at] ?? 0) + value;
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
