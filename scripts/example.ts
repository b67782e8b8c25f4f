// `npm run example minimal-chat` runs examples/minimal-chat/main.ts.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = join(import.meta.dirname, "..", "examples");
const names = readdirSync(folder).filter((name) => existsSync(join(folder, name, "main.ts")));

const [asked] = process.argv.slice(2);
if (asked !== undefined && names.includes(asked)) {
  await import(pathToFileURL(join(folder, asked, "main.ts")).href);
} else {
  console.error(asked === undefined ? "Which example?" : `There is no example named ${asked}.`);
  console.error(names.map((name) => `  npm run example ${name}`).join("\n"));
  process.exitCode = 2;
}
