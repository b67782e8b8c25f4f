import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { inTurns } from "../foundation/measure.ts";
import type { Row } from "./row.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..");
/** A list of all files of the package. */
const MAX_LIST_BYTES = 64 * 1024 ** 2;
const MB = 1_000_000;
const IMPORTS = 9;

/** Builds `dist` anew: rows of the built package are about the source that is here. */
export async function buildPackage(): Promise<void> {
  await run(process.execPath, [join(root, "scripts", "build.ts")], { cwd: root });
}

/** How long it takes to load all that is imported, in a process that has loaded nothing, by its own clock. */
async function importMs(...names: readonly string[]): Promise<number> {
  const loads = names.map((name) => `import(${JSON.stringify(name)})`).join(", ");
  const program = `const begun = performance.now(); await Promise.all([${loads}]); console.log(performance.now() - begun);`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: root });
  return Number(stdout);
}

/** What an app waits for before its first line. */
async function importRows(): Promise<Row[]> {
  const { ours, bare } = await inTurns(
    IMPORTS,
    () => importMs("perdure", "perdure/node"),
    () => importMs("ai"),
  );
  return [
    {
      what: "import of `perdure` and `perdure/node`, built",
      ...{ unit: "ms", ours, floor: bare, against: "`ai` alone", aim: { timesFloor: 1.6 } },
    },
  ];
}

/** What somebody who installs the package gets and loads; it has to be built. */
export async function packageRows(): Promise<Row[]> {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: root,
    maxBuffer: MAX_LIST_BYTES,
  });
  // An array of packages, and in newer versions of npm an object of them by name.
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, { entryCount: number; unpackedSize: number }>);
  if (packed === undefined) throw new Error("npm pack names no package.");
  return [
    ...(await importRows()),
    { what: "the npm package", unit: "files", ours: packed.entryCount, aim: { atMost: 500 } },
    { what: "the npm package, unpacked", unit: "MB", ours: packed.unpackedSize / MB, aim: { atMost: 4 } },
  ];
}
