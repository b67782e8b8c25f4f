import { readFileSync } from "node:fs";

/** Python that tries everything that must not work. */
export const inspectCode = readFileSync(new URL("inspect.py", import.meta.url), "utf8");
