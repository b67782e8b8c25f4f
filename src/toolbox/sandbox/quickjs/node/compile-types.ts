import { rewriteImports } from "../rewrite-imports.ts";

/** The part of esbuild that is used. */
interface Compiler {
  transform(code: string, options: Record<string, unknown>): Promise<{ readonly code: string }>;
}

const JSX = /<\/|\/>/;
const UNSUPPORTED = /not supported in strip-only mode/;

/** JavaScript, or what to tell the model. */
export type Compiled = { readonly ok: true; readonly code: string } | { readonly ok: false; readonly message: string };

/** Compiles what has more than types (enums, namespaces, JSX), where esbuild is installed. Never throws. */
export async function compileTypes(code: string, stripError: string): Promise<Compiled> {
  // Plain mistakes are told as they are.
  if (!UNSUPPORTED.test(stripError) && !JSX.test(code)) return { ok: false, message: stripError };
  const compiler = await loadCompiler();
  if (compiler === undefined) {
    const hint = "Only types that can be removed are allowed here: no enums, namespaces, parameter properties or JSX.";
    return { ok: false, message: `${stripError}. ${hint}` };
  }
  try {
    const { code: compiled } = await compiler.transform(`async function $body() {\n${rewriteImports(code)}\n}`, {
      loader: JSX.test(code) ? "tsx" : "ts",
      target: "es2023",
      tsconfigRaw: "{}",
      sourcefile: "code.ts",
      logLevel: "silent",
    });
    return { ok: true, code: `${compiled}\nreturn $body();` };
  } catch (thrown) {
    return { ok: false, message: compileError(thrown) ?? stripError };
  }
}

async function loadCompiler(): Promise<Compiler | undefined> {
  try {
    return (await import("esbuild")) as unknown as Compiler;
  } catch {
    return undefined;
  }
}

function compileError(thrown: unknown): string | undefined {
  const errors = (
    thrown as { errors?: readonly { text?: string; location?: { line?: number; column?: number } | null }[] }
  ).errors;
  const first = errors?.[0];
  if (first?.text === undefined) return undefined;
  const { line, column } = first.location ?? {};
  return line === undefined ? first.text : `${first.text} (line ${line - 1}, column ${(column ?? 0) + 1})`;
}
