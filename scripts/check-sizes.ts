import { sourceFiles } from "./source-tree.ts";

/** A file longer than this has more than one reason to exist. Most are far shorter; what is one thought may be read in one file. */
export const maxLines = 600;

/** No TypeScript file in `src`, `test` or `scripts` is over the limit. There is no list of exceptions. */
export function checkSizes(root: string): string[] {
  const violations: string[] = [];
  for (const { path, text } of sourceFiles(root, "src", "test", "scripts")) {
    const lines = text.replace(/\n$/, "").split("\n").length;
    if (lines > maxLines) violations.push(`${path}: ${lines} lines, the limit is ${maxLines}; split it by reason`);
  }
  return violations;
}
