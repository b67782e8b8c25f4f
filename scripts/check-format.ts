import { runTool, violationsOf } from "./run-tool.ts";

/** Every file is formatted as `oxfmt` would write it. `npm run format` repairs. */
export async function checkFormat(root: string): Promise<string[]> {
  return violationsOf("oxfmt", await runTool("oxfmt", ["--list-different", "."], root));
}
