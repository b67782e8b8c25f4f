import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { makeOnce } from "../support/make-once.ts";
import { diskFolder } from "../support/run-folder.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const UNPACK = `import chromium from "@sparticuz/chromium"; await chromium.executablePath();`;

/**
 * Where the browser's program is: `PERDURE_BROWSER`, or the packed one, unpacked on first use.
 * @throws when it cannot be unpacked: the packed one is for Linux only, elsewhere set `PERDURE_BROWSER`
 */
export async function chromiumPath(): Promise<string> {
  const given = process.env.PERDURE_BROWSER;
  if (given !== undefined) return given;
  const home = await makeOnce(join(diskFolder(), `perdure-chromium-${packedVersion()}`), (part) =>
    // The package unpacks into the temporary folder and nowhere else, so a child is given another one.
    run(process.execPath, ["--input-type=module", "--eval", UNPACK], {
      cwd: root,
      env: { ...process.env, TMPDIR: part },
    }),
  );
  return join(home, "chromium");
}

function packedVersion(): string {
  const require = createRequire(import.meta.url);
  const entry = require.resolve("@sparticuz/chromium");
  const manifest: unknown = require(join(dirname(entry), "..", "package.json"));
  return (manifest as { version: string }).version;
}
