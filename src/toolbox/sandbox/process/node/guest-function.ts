import type { RunRequest } from "../../sandbox.ts";
import { rewriteImports } from "../../quickjs/rewrite-imports.ts";
import { JAIL_CODE } from "./jail-paths.ts";
import { FIRST_FREE_FD } from "./start-jail.ts";

/** The body of the guest's function, its input, and what runs it in the jail. */
export function functionFiles(request: RunRequest): Record<string, string> {
  return {
    "runner.mjs": RUNNER,
    "input.json": JSON.stringify(request.input ?? null),
    // On one line with the code, so that lines count as in what was given.
    [`main.${request.language}`]: `export default async function (input) { ${rewriteImports(request.code)}\n}\n`,
  };
}

/** Types are taken off inside. What it says the guest can forge: it is the guest's own answer. */
const RUNNER = `
import { existsSync, readFileSync, symlinkSync, writeFileSync, writeSync, mkdtempSync } from "node:fs";
import * as nodeModule from "node:module";
const say = (answer) => {
  let bytes = Buffer.from(JSON.stringify(answer));
  while (bytes.length > 0) {
    try { bytes = bytes.subarray(writeSync(${FIRST_FREE_FD}, bytes)); }
    catch (error) { if (error.code !== "EAGAIN") throw error; }
  }
};
const load = () => {
  const isTyped = existsSync("${JAIL_CODE}/main.ts");
  const source = readFileSync(isTyped ? "${JAIL_CODE}/main.ts" : "${JAIL_CODE}/main.js", "utf8");
  if (!isTyped) return source;
  if (nodeModule.stripTypeScriptTypes === undefined) throw new Error("TypeScript needs Node 22.13 or newer in the jail.");
  try { return nodeModule.stripTypeScriptTypes(source); }
  catch (error) {
    const line = /^[^\\n]*:(\\d+)\\n/.exec(String(error.stack))?.[1];
    throw new SyntaxError(error.message + (line === undefined ? "" : " (line " + line + ")"));
  }
};
const input = JSON.parse(readFileSync("${JAIL_CODE}/input.json", "utf8"));
try {
  const folder = mkdtempSync("/tmp/main-");
  writeFileSync(folder + "/main.mjs", load());
  if (existsSync("${JAIL_CODE}/node_modules")) symlinkSync("${JAIL_CODE}/node_modules", folder + "/node_modules");
  const { default: main } = await import(folder + "/main.mjs");
  const value = await main(input);
  say({ value: value === undefined ? undefined : JSON.parse(JSON.stringify(value) ?? "null"), ok: true });
} catch (error) {
  const isError = error instanceof Error;
  say({ ok: false, name: isError ? String(error.name) : "Error", message: isError ? String(error.message) : String(error) });
}
process.exit();
`;
