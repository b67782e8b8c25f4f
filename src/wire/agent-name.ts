/** The longest instance name, in UTF-16 units. */
export const MAX_NAME_LENGTH = 512;

/**
 * Why `name` cannot name an agent, or `undefined`. Refused is what would not round-trip through a URL, a row or a file: `.` and
 * `..`, NUL, half a surrogate pair, nothing, or more than {@link MAX_NAME_LENGTH} characters.
 */
export function nameProblem(name: string): string | undefined {
  if (name === "") return "An agent name must not be empty.";
  if (name.length > MAX_NAME_LENGTH) return `An agent name must not be longer than ${MAX_NAME_LENGTH} characters.`;
  if (name.includes("\0")) return "An agent name must not contain a NUL character.";
  if (name === "." || name === "..") return `The agent name "${name}" is reserved: URLs cannot carry it.`;
  if (!name.isWellFormed()) return "An agent name must be valid Unicode.";
  return undefined;
}

/** Each percent-encoded UTF-8 sequence by itself, so that one bad sequence does not spoil its neighbours. */
const ENCODED_CHARACTER =
  /%[0-7][\da-f]|%[cd][\da-f]%[89ab][\da-f]|%e[\da-f](?:%[89ab][\da-f]){2}|%f[0-7](?:%[89ab][\da-f]){3}/gi;

/** Percent-decodes what can be decoded and leaves every other `%` as it is. Never throws. */
export function decodeLeniently(segment: string): string {
  return segment.replace(ENCODED_CHARACTER, (encoded) => decodeStrictly(encoded) ?? encoded);
}

/** Percent-decodes the whole segment, or gives `undefined` when a part of it is not valid. */
export function decodeStrictly(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
