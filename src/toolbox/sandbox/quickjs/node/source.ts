import { stripTypes } from "./strip-types.ts";

/** The name of the guest's code in stacks. */
export const CODE_FILE = "code.js";
/** Lines that a shape puts in front of the code. */
export const SHAPE_LINES = 1;

/** The same code in several frames. Code that compiles in all of them cannot close one early. `checks` are only compiled. */
export interface Shape {
  readonly checks: readonly string[];
  readonly run: string;
}

/** The ways to read the code: as one expression, and as the body of a function. */
export function shapesOf(code: string): { readonly expression: Shape; readonly body: Shape } {
  const bare = code.replace(/;\s*$/, "");
  return {
    // Code that leaves the one begins with a closing bracket that the other has not opened.
    expression: { checks: [`[async () => [\n${bare}\n]]`], run: `(async () => (\n${bare}\n))` },
    // Behind the brace of a method comes a comma or another brace, behind that of a declaration neither.
    body: {
      checks: [`({ async m() {\n${code}\n} })`, `async function f() {\n${code}\n}`],
      run: `(async function () {\n${code}\n})`,
    },
  };
}

/** What the code looks like without types, or why not. */
type Plain = { readonly ok: true; readonly code: string } | { readonly ok: false; readonly message: string };

/** A call with type arguments reads as two comparisons in JavaScript: such code must not be tried as it is. */
const TYPE_ARGUMENTS = /[\w$]\s?<[^;=()]{0,300}>\s?\(/;

/** Whether code that may have types can be tried as JavaScript first. */
export function mayBePlain(code: string): boolean {
  return !TYPE_ARGUMENTS.test(code);
}

/** The body of a function without its types. */
export function plainBody(code: string): Plain {
  const first = stripTypes(`async function body() {\n${code}\n}`);
  if (first.ok) return { ok: true, code: inner(first.code) };
  // An object literal alone is a block to whoever reads statements.
  const second = stripTypes(`async () => (\n${code.replace(/;\s*$/, "")}\n)`);
  if (second.ok) return { ok: true, code: inner(second.code) };
  const place =
    first.line === undefined
      ? ""
      : ` (line ${first.line - SHAPE_LINES}${first.column === undefined ? "" : `, column ${first.column}`})`;
  return { ok: false, message: `${first.message}${place}` };
}

/** The source of a module, as its name says what it is. */
export function plainModule(name: string, source: string): Plain {
  if (!/\.m?ts$/.test(name)) return { ok: true, code: source };
  const stripped = stripTypes(source);
  if (stripped.ok) return stripped;
  const place = stripped.line === undefined ? "" : `, line ${stripped.line}`;
  return { ok: false, message: `${stripped.message} (${name}${place})` };
}

function inner(wrapped: string): string {
  return wrapped.slice(wrapped.indexOf("\n") + 1, wrapped.lastIndexOf("\n"));
}
