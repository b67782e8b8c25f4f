// Part of every bundled program: the error that ends it names its sources. Node's own switch for that reads the whole
// map at the start, which takes longer than everything else.
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const bundle = import.meta.url;
let known: SourceMap | undefined;

function sourceMap(): SourceMap {
  const text = readFileSync(fileURLToPath(`${bundle}.map`), "utf8");
  return (known ??= new SourceMap(JSON.parse(text)));
}

function place(frame: NodeJS.CallSite): string {
  const line = frame.getLineNumber();
  const column = frame.getColumnNumber();
  if (frame.getFileName() !== bundle || line === null || column === null) return String(frame);
  const found = sourceMap().findEntry(line - 1, column - 1);
  if (!("originalSource" in found)) return String(frame);
  const file = resolve(dirname(fileURLToPath(bundle)), found.originalSource);
  const where = `${file}:${found.originalLine + 1}:${found.originalColumn + 1}`;
  const name = frame.getFunctionName();
  return name === null ? where : `${name} (${where})`;
}

/** Traces are mapped when an error ends the program, and not before: Node itself reads many that nobody sees. */
export function traceSources(): void {
  process.once("uncaughtExceptionMonitor", () => {
    Error.prepareStackTrace = (error, frames) =>
      [String(error), ...frames.map((frame) => `    at ${place(frame)}`)].join("\n");
  });
}
