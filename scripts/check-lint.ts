import { runTool, violationsOf } from "./run-tool.ts";

/** `oxlint` finds nothing, type-aware rules included (`.oxlintrc.json`). */
export async function checkLint(root: string): Promise<string[]> {
  const args = ["--type-aware", "--deny-warnings", "--report-unused-disable-directives", "--format=unix"];
  return violationsOf("oxlint", await runTool("oxlint", args, root));
}
