import fs from "node:fs";
import path from "node:path";
import { PerdureError } from "../base/error.ts";
import { packageRoot } from "../host/node/package-root.ts";

const ENDING = ".md";

/** Those that the build has put beside the command; in the repository, where they are written. */
function folder(): string {
  const built = path.join(import.meta.dirname, "docs");
  return fs.existsSync(built) ? built : path.join(packageRoot(), "docs");
}

/** The pages that came with this version, with their titles. */
export function listPages(): { readonly page: string; readonly title: string }[] {
  return pageNames().map((page) => ({ page, title: /^# (.+)$/m.exec(readPage(page))?.[1] ?? "" }));
}

/** A page by its name. @throws PerdureError `bad_input` */
export function readPage(page: string): string {
  // Not any other file, whatever the name has in it.
  if (pageNames().includes(page)) return fs.readFileSync(path.join(folder(), page + ENDING), "utf8");
  throw new PerdureError("bad_input", `There is no page ${JSON.stringify(page)}. "perdure docs" lists them.`);
}

function pageNames(): string[] {
  const files = fs.readdirSync(folder()).filter((name) => name.endsWith(ENDING));
  return files.map((name) => name.slice(0, -ENDING.length)).sort();
}
