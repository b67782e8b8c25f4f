import { runTool, violationsOf } from "./run-tool.ts";

/** The whole tree compiles. */
export async function checkTypes(root: string): Promise<string[]> {
  return violationsOf("tsc", await runTool("tsc", ["-p", ".", "--pretty", "false"], root));
}
