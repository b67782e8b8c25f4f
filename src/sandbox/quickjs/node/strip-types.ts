import { stripTypeScriptTypes } from "node:module";

/** Plain code, or why the types cannot be taken off. Lines and columns are those of the text that was given. */
export type Stripped =
  | { readonly ok: true; readonly code: string }
  | {
      readonly ok: false;
      readonly message: string;
      readonly line: number | undefined;
      readonly column: number | undefined;
    };

const PLACE = /^[^\n]*:(\d+)\n([\s\S]*?)\n\n/;

/** Takes the types off a module. Every line and column stays where it is. Never throws. */
export function stripTypes(code: string): Stripped {
  try {
    return { ok: true, code: stripTypeScriptTypes(code) };
  } catch (thrown) {
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
