import { stripTypeScriptTypes } from "node:module";

/** Plain code, or why the types cannot be taken off. Lines and columns are those of the text that was given. */
type Stripped =
  | { readonly ok: true; readonly code: string }
  | {
      readonly ok: false;
      readonly message: string;
      readonly line: number | undefined;
      readonly column: number | undefined;
    };

/** What the stripper says to code that is wrong. Anything else comes from the stripper itself. */
const OWN_CODE = /TYPESCRIPT_SYNTAX/;
/** What is said of code that breaks it. */
export const TOO_DEEP = "The code is nested too deeply for its types to be taken off. Write it flatter.";

let isBroken = false;

/**
 * Whether the stripper failed in this thread. All code shares its one memory, which is undefined after a stack overflow: the
 * thread has to end.
 */
export function isStripperBroken(): boolean {
  return isBroken;
}

const PLACE = /^[^\n]*:(\d+)\n([\s\S]*?)\n\n/;

/** Takes the types off a module. Every line and column stays where it is. Never throws. */
export function stripTypes(code: string): Stripped {
  if (isBroken) return { ok: false, message: TOO_DEEP, line: undefined, column: undefined };
  try {
    return { ok: true, code: stripTypeScriptTypes(code) };
  } catch (thrown) {
    if (!OWN_CODE.test(String((thrown as { code?: unknown } | null)?.code))) {
      isBroken = true;
      return { ok: false, message: TOO_DEEP, line: undefined, column: undefined };
    }
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const place = thrown instanceof Error ? PLACE.exec(thrown.stack ?? "") : null;
    const marker = place?.[2]?.split("\n").find((line) => /^\s*\^+$/.test(line));
    return {
      ok: false,
      message,
      line: place === null ? undefined : Number(place[1]),
      column: marker === undefined ? undefined : marker.indexOf("^") + 1,
    };
  }
}
