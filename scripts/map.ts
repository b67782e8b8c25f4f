// Writes the table of the map into AGENTS.md, which `npm run check` compares with the order of the folders.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mapTable } from "./folder-order.ts";

const path = join(import.meta.dirname, "..", "AGENTS.md");
const text = readFileSync(path, "utf8");
writeFileSync(path, text.replace(/^\| place[^]*?\n(?=\n)/m, `${mapTable()}\n`));
