import { parseSource } from "./parse-source.ts";
import { isTest, sourceFiles } from "./source-tree.ts";

/** Shouted SQL anywhere in a literal, or a literal that begins like a statement. "Select one from …" is English. */
const statement =
  /\b(SELECT|(INSERT|REPLACE)\s+INTO|INSERT\s+OR\s+\w+\s+INTO|UPDATE|DELETE\s+FROM|(CREATE|DROP|ALTER)\s+(TABLE|TRIGGER|VIEW)|CREATE\s+(UNIQUE\s+)?INDEX)\b/;
const opening =
  /^\s*(select\s[\s\S]*\sfrom\s|(insert|replace)\s+into\s|insert\s+or\s+\w+\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|(create|drop|alter)\s+(table|index|trigger|view)\s)/;

/** SQLite prepares a statement anew each time that it runs, if a value is bound to one of these itself. */
const boundLimit = /\b(LIMIT|OFFSET)\s+\?/;

/**
 * SQL lives in `src/store`, where one file holds the statements of one table. The Node host has a database
 * of its own, in files named `host-db*`; objects keep blobs in rows (`object-rows.ts`); a cluster speaks to PostgreSQL in `cluster/pg-*`. Tests and the exported conformance suites speak as users do. A number of rows is
 * bound as `LIMIT (SELECT ?)`.
 */
export function checkSql(root: string): string[] {
  const violations: string[] = [];
  for (const file of sourceFiles(root, "src")) {
    if (isTest(file.path)) continue;
    for (const { text, line } of parseSource(file).strings) {
      if (boundLimit.test(text)) violations.push(`${file.path}:${line}: a value bound to LIMIT itself, not (SELECT ?)`);
      if (mayHoldSql(file.path)) continue;
      if (!statement.test(text) && !opening.test(text)) continue;
      const shown = text.trim().replaceAll(/\s+/g, " ").slice(0, 60);
      violations.push(`${file.path}:${line}: SQL outside of src/store: "${shown}"`);
    }
  }
  return violations;
}

function mayHoldSql(path: string): boolean {
  return (
    path.startsWith("src/store/") ||
    path.startsWith("src/testing/") ||
    path === "src/host/cloudflare/object-rows.ts" ||
    /^src\/host\/node\/cluster\/pg-[^/]*$/.test(path) ||
    /^src\/host\/node\/host-db[^/]*$/.test(path)
  );
}
