import { rewriteImports } from "../quickjs/rewrite-imports.ts";

/** What a module is asked for by the code: these names, or whatever it uses of it. */
export interface WantedNames {
  /** `undefined`: all of them. */
  readonly names: readonly string[] | undefined;
  /** What the code reads of anything, for modules that do not say what they export. */
  readonly hints: readonly string[];
}

const MAX_NAMES = 500;
const identifier = /^[A-Za-z_$][\w$]*$/;

/**
 * What to bundle of `specifier` for this code. Taking more than is needed is no harm; `undefined` names say so. It reads
 * the text without understanding it: whether something is imported at all is found by the bundler.
 */
export function wantedNames(code: string, specifier: string): WantedNames {
  const text = rewriteImports(code);
  const quoted = [`"${specifier}"`, `'${specifier}'`, `\`${specifier}\``];
  const mentions = quoted.reduce((count, one) => count + text.split(one).length - 1, 0);
  const names = new Set<string>();
  let taken = 0;
  for (const [, list = "", found = ""] of text.matchAll(/\bconst \{([^{}]*)\} = await import\((["'][^"']+["'])\)/g)) {
    if (!quoted.includes(found)) continue;
    taken += 1;
    for (const one of list.split(",")) {
      const name = (one.split(":")[0] ?? "").trim();
      if (name !== "" && !identifier.test(name)) return { names: undefined, hints: hintsOf(text) };
      if (name !== "") names.add(name);
    }
  }
  const all = taken === 0 || taken !== mentions || names.size > MAX_NAMES;
  return { names: all ? undefined : [...names].toSorted(), hints: all ? hintsOf(text) : [] };
}

function hintsOf(text: string): string[] {
  const names = new Set<string>();
  for (const [, name = ""] of text.matchAll(/(?:\.|[{,]\s*)([A-Za-z_$][\w$]*)/g)) {
    if (names.size >= MAX_NAMES) break;
    names.add(name);
  }
  names.delete("default");
  return [...names].toSorted();
}
