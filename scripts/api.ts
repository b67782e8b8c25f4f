// Writes the list of public names, which `npm run check` compares with the code.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { API_FILE, listApi } from "./check-api.ts";

const root = join(import.meta.dirname, "..");
writeFileSync(join(root, API_FILE), listApi(root));
