import type { Random } from "../support/seeded.ts";

/** JSON texts that are put in the place of a field. */
export const WRONG_VALUES: readonly string[] = [
  ...[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "1.5",
    "1e999",
    "-1e999",
    "1e-999",
    "1e308",
    "123456789012345678901234567890",
  ],
  ...[
    "9007199254740993",
    '""',
    '" "',
    '"x"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    '"a\\u0000b"',
    '"__proto__"',
  ],
  ...[
    '"constructor"',
    '"POST"',
    '"null"',
    '"{}"',
    '"[]"',
    '"{"',
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[[],{}]",
    '{"length":1}',
  ],
  ...[
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"toString":null}',
    '{"toJSON":1}',
  ],
  ...[
    '{"then":1}',
    '{"valueOf":{}}',
    '{"messages":[],"__proto__":{"polluted":1}}',
    '"../../etc/passwd"',
    '"all"',
    '"main"',
  ],
  `"${"x".repeat(100_000)}"`,
  `"${"é".repeat(300)}"`,
  `"${"\\ud83d\\udca5".repeat(200)}"`,
  `[${"1,".repeat(5_000)}1]`,
  `${"[".repeat(400)}${"]".repeat(400)}`,
  `${'{"a":'.repeat(400)}1${"}".repeat(400)}`,
];

/** One of a list. */
export function pick<T>(random: Random, list: readonly T[]): T {
  return list[random(list.length)] as T;
}

/** What stands in the middle of a text where it does not belong. */
const STRAY = ["\0", '"', "\\", "{", "}", "\ud800", "\u2028", "\ufeff", "💥", ",", "[", "\n"];

/** Each makes a text out of something good that is nearly as good, or not at all. */
const WAYS: readonly ((random: Random, good: object) => string)[] = [
  (random, good) => replaceField(random, good, pick(random, WRONG_VALUES)),
  (random, good) => replaceField(random, good, pick(random, WRONG_VALUES)),
  (random, good) => replaceField(random, good, pick(random, WRONG_VALUES)),
  (random, good) => replaceDeep(random, good, pick(random, WRONG_VALUES)),
  (random, good) => replaceDeep(random, good, pick(random, WRONG_VALUES)),
  (random, good) => JSON.stringify(without(random, good)),
  (random, good) => `{"__proto__":${pick(random, WRONG_VALUES)},${JSON.stringify(good).slice(1)}`,
  (random, good) => `{"constructor":${pick(random, WRONG_VALUES)},${JSON.stringify(good).slice(1)}`,
  // The same key twice: the last one counts.
  (random, good) => `${JSON.stringify(good).slice(0, -1)},${twice(random, good)}}`,
  (random, good) => `${JSON.stringify(good).slice(0, -1)},"extra":${pick(random, WRONG_VALUES)}}`,
  (random, good) => cut(random, JSON.stringify(good)),
  (random, good) => splice(random, JSON.stringify(good), pick(random, STRAY)),
  (random, good) => splice(random, JSON.stringify(good), String.fromCharCode(random(0x10000))),
  (_, good) => JSON.stringify([good]),
  (_, good) => JSON.stringify(JSON.stringify(good)),
  (_, good) => JSON.stringify(good) + JSON.stringify(good),
  (random) => Array.from({ length: 1 + random(50) }, () => String.fromCharCode(random(0x10000))).join(""),
  (random) => pick(random, WRONG_VALUES),
];

/** A text made from a JSON object, with something wrong. It may be right all the same, by chance. */
export function broken(random: Random, good: object): string {
  return pick(random, WAYS)(random, good);
}

/** The object as JSON text, with another value in one of its fields. */
export function replaceField(random: Random, good: object, valueJson: string): string {
  const target = pick(random, Object.keys(good));
  const fields = Object.entries(good).map(
    ([key, value]) => `${JSON.stringify(key)}:${key === target ? valueJson : JSON.stringify(value)}`,
  );
  return `{${fields.join(",")}}`;
}

/** The same somewhere inside: also in a field that holds JSON as text. */
function replaceDeep(random: Random, good: object, valueJson: string): string {
  const inside = Object.entries(good).filter(([, value]) => typeof value === "object" && value !== null);
  const text = Object.entries(good).filter(([key]) => key === "body");
  const [key, value] = pick(random, [...inside, ...text, ["", undefined] as const]) as [string, unknown];
  if (value === undefined) return replaceField(random, good, valueJson);
  const json =
    typeof value === "string"
      ? JSON.stringify(replaceDeep(random, JSON.parse(value) as object, valueJson))
      : Object.keys(value as object).length === 0
        ? valueJson
        : Array.isArray(value)
          ? `[${replaceItem(random, value as unknown[], valueJson)}]`
          : replaceDeep(random, value as object, valueJson);
  const fields = Object.entries(good).map(
    ([name, own]) => `${JSON.stringify(name)}:${name === key ? json : JSON.stringify(own)}`,
  );
  return `{${fields.join(",")}}`;
}

function replaceItem(random: Random, list: readonly unknown[], valueJson: string): string {
  const at = random(list.length);
  return list
    .map((item, index) => {
      if (index !== at) return JSON.stringify(item);
      const isPlain = typeof item === "object" && item !== null && !Array.isArray(item) && Object.keys(item).length > 0;
      return isPlain && random(3) > 0 ? replaceDeep(random, item, valueJson) : valueJson;
    })
    .join(",");
}

function twice(random: Random, good: object): string {
  return `${JSON.stringify(pick(random, Object.keys(good)))}:${pick(random, WRONG_VALUES)}`;
}

function without(random: Random, good: object): object {
  const target = pick(random, Object.keys(good));
  return Object.fromEntries(Object.entries(good).filter(([key]) => key !== target));
}

function cut(random: Random, text: string): string {
  const at = random(text.length + 1);
  return random(2) === 0 ? text.slice(0, at) : text.slice(at);
}

function splice(random: Random, text: string, piece: string): string {
  const at = random(text.length + 1);
  return text.slice(0, at) + piece + text.slice(at);
}
