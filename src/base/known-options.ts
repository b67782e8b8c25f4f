import { PerdureError } from "./error.ts";
import { nearest } from "./nearest.ts";

/** Every name that options of type `T` can have. */
export type OptionNames<T> = { readonly [NAME in keyof T & string]-?: true };

/** The words of a text, between blanks. */
export type Words<TEXT> = TEXT extends `${infer FIRST} ${infer REST}` ? FIRST | Words<REST> : TEXT;
/** `TEXT` where it has all names and no others, between blanks; `never` where not. */
export type AllOf<NAMES, TEXT> = [NAMES, Words<TEXT>] extends [Words<TEXT>, NAMES] ? TEXT : never;

/** The names in `texts`, between blanks. The compiler refuses a text when one of them is no name, and when one is missing. */
export function namesOf<T>() {
  return <TEXT extends string>(...texts: (TEXT & AllOf<keyof T & string, TEXT>)[]): OptionNames<T> =>
    Object.fromEntries(texts.flatMap((text) => text.split(" ")).map((name) => [name, true])) as OptionNames<T>;
}

/**
 * Refuses unknown option names, so that a typo is not silent. Anything but an object passes; others check that.
 * @param instead what to use, for names that the public packages have and this one has not
 * @throws PerdureError `bad_config` with that, or with the nearest name
 */
export function refuseUnknown(
  given: unknown,
  names: object,
  where: string,
  instead: Readonly<Record<string, string>> = {},
): void {
  if (typeof given !== "object" || given === null) return;
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(names, name)) continue;
    if (Object.hasOwn(instead, name)) {
      throw new PerdureError("bad_config", `${where} has no option "${name}". ${instead[name]}`);
    }
    const [first = "", ...others] = nearest(name, Object.keys(names));
    const known = others.length === 0 ? "" : ` It has ${[first, ...others].join(", ")}.`;
    throw new PerdureError("bad_config", `${where} has no option "${name}". Did you mean "${first}"?${known}`);
  }
}

/** A setting that bounds how many there may be. @throws PerdureError `bad_config` unless it is a whole number, or Infinity. */
export function checkBound(name: string, value: number): number {
  if (value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= 0)) return value;
  throw new PerdureError("bad_config", `\`${name}\` must be a whole number, or Infinity, not ${String(value)}.`);
}

/**
 * Looks at options that are numbers, where they are given.
 * @throws PerdureError `bad_config` for what is no (whole) number of at least `least`
 */
export function checkNumbers(
  where: string,
  given: object,
  names: readonly string[],
  { whole = false, least = 1 }: { readonly whole?: boolean; readonly least?: number } = {},
): void {
  const isNumber = whole ? Number.isSafeInteger : Number.isFinite;
  for (const name of names) {
    const value: unknown = Reflect.get(given, name);
    if (value === undefined || (isNumber(value) && (value as number) >= least)) continue;
    const wanted = `${whole ? "a whole number" : "a number"} of at least ${least}`;
    const got = typeof value === "number" ? value : JSON.stringify(value);
    throw new PerdureError("bad_config", `${where}: ${name} must be ${wanted}, not ${got}.`);
  }
}
