// Part of every bundled program: stack traces name its sources. Node's own switch for it reads the whole map at the
// start, which takes longer than everything else; this reads it when somebody reads a trace.
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

/** From now on. */
export function traceSources(): void {
  Error.prepareStackTrace = (error, frames) => {
    const lines = frames.map((frame) => `    at ${place(frame)}`);
    return [String(error), ...lines].join("\n");
  };
}
