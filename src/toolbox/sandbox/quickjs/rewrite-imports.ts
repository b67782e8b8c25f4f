const LEAD = /^(?:\s+|\/\/[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|"use strict";?|'use strict';?)/;
/** Bounded everywhere: the code is hostile, and a pattern that tries everything takes forever. */
const IMPORT =
  /^import\s{1,50}(?:(type\s{1,50})?([^"';]{0,2000}?)\s{0,50}from\s{0,50})?(["'])([^"'\n]{1,500})\3[ \t]{0,50};?/;

/**
 * The code with its leading `import` statements as `await import()`, line by line, since it runs as a function body. Imports of
 * types go.
 */
export function rewriteImports(code: string): string {
  let done = "";
  let rest = code;
  for (;;) {
    const lead = LEAD.exec(rest);
    if (lead !== null) {
      done += lead[0];
      rest = rest.slice(lead[0].length);
      continue;
    }
    const found = IMPORT.exec(rest);
    if (found === null) return done + rest;
    const [whole, type, clause, , name] = found;
    const lines = "\n".repeat(whole.split("\n").length - 1);
    done += (type === undefined ? statementFor(clause, name ?? "") : "") + lines;
    rest = rest.slice(whole.length);
  }
}

function statementFor(clause: string | undefined, name: string): string {
  const loaded = `await import(${JSON.stringify(name)})`;
  if (clause === undefined || clause.trim() === "") return `${loaded};`;
  const all = /^(?:([\w$]+)\s*,\s*)?\*\s*as\s+([\w$]+)$/.exec(clause.trim());
  if (all !== null) {
    const [, first, whole] = all;
    return `const ${whole} = ${loaded};${first === undefined ? "" : ` const ${first} = ${whole}.default;`}`;
  }
  const parts = /^(?:([\w$]+)\s*,?\s*)?(?:\{([\s\S]*)\})?$/.exec(clause.trim());
  // Not an import that we know: the engine says what is wrong with it.
  if (parts === null) return `import ${clause} from ${JSON.stringify(name)};`;
  const names = (parts[2] ?? "")
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "" && !one.startsWith("type "))
    .map((one) => one.replace(/\s+as\s+/, ": "));
  if (parts[1] !== undefined) names.unshift(`default: ${parts[1]}`);
  return `const { ${names.join(", ")} } = ${loaded};`;
}
