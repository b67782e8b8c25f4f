import fs from "node:fs";
import path from "node:path";

/** The folder of this package, as it is installed: its pages and its manifest are there. */
export function packageRoot(): string {
  for (let folder = import.meta.dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (fs.existsSync(path.join(folder, "package.json"))) return folder;
  }
  return import.meta.dirname;
}

/** The version of this package. */
export function packageVersion(): string {
  const manifest = fs.readFileSync(path.join(packageRoot(), "package.json"), "utf8");
  const { version } = JSON.parse(manifest) as { version?: unknown };
  return typeof version === "string" ? version : "unknown";
}
