import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { listPaths } from "../../scripts/source-tree.ts";
import { makeOnce } from "../support/make-once.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = "examples/start/page";

/**
 * The folder with the page, built from what the sources are now. Built once for all test files and kept for the next
 * run; another state of the sources has another folder, so nothing changes under a server that runs.
 */
export async function pageFolder(): Promise<string> {
  const folder = join(root, "node_modules/.cache/perdure-page", await fingerprint());
  return makeOnce(folder, (part) =>
    build({
      root: join(root, page),
      configFile: join(root, page, "vite.config.ts"),
      logLevel: "warn",
      build: { outDir: part, emptyOutDir: true },
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
