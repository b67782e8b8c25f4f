import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { listPaths } from "../../scripts/source-tree.ts";
import { makeOnce } from "../support/make-once.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = "examples/start/page";
const vite = join(root, "node_modules/vite/bin/vite.js");
const run = promisify(execFile);

/** How React is built: as users get it, or so that it warns of mistakes, which takes it more than twice the time. */
export type PageKind = "production" | "development";

/**
 * The folder with the page, built from what the sources are now. Built once for all test files and kept for the next
 * run; another state of the sources has another folder, so nothing changes under a server that runs.
 */
export async function pageFolder(kind: PageKind): Promise<string> {
  const folder = join(root, "node_modules/.cache/perdure-page", `${await fingerprint()}-${kind}`);
  // In a process of its own: what is built depends on NODE_ENV, and that of tests is another.
  return makeOnce(folder, (outDir) =>
    run(process.execPath, [vite, "build", page, "--outDir", outDir, "--emptyOutDir", "--logLevel", "warn"], {
      cwd: root,
      env: { ...process.env, NODE_ENV: kind },
    }),
  );
}

async function fingerprint(): Promise<string> {
  const hash = createHash("sha256");
  for (const path of sourcePaths())
    hash
      .update(path)
      .update("\0")
      .update(await readFile(join(root, path)));
  return hash.digest("hex").slice(0, 16);
}

/** What the page is made of. */
function sourcePaths(): string[] {
  const folders = [page, "src"].flatMap((folder) => listPaths(root, folder));
  const paths = [...folders, "examples/start/contract.ts", "package-lock.json"];
  return paths.filter((path) => !path.includes(".test."));
}
