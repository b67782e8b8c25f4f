import type { Tool } from "ai";
import { isRecord } from "../../../base/json.ts";
import { fileTool, globBelow, ToolInput } from "./input.ts";
import type { FindOperations } from "./operations.ts";
import { objectInput } from "../../../base/json-schema.ts";

const MAX_FOUND = 200;

/** What the model says. */
export interface FindInput {
  readonly pattern: string;
  readonly path?: string;
}

/** What was found. */
export interface FindOutput {
  /** Directories end with a slash. */
  readonly paths: readonly string[];
  /** How many more there are. */
  readonly more: number;
}

const inputSchema = objectInput<FindInput>(["pattern"], {
  pattern: {
    type: "string",
    description: "A glob, such as *.ts (at any depth), src/**/*.test.ts or /docs/{a,b}*.md.",
  },
  path: { type: "string", description: "The directory to look in. Default: /." },
});

/** A tool that finds files by their names. It only reads, so a call that a crash cut runs again. */
export function createFindTool({ ops }: { readonly ops: FindOperations }): Tool<FindInput, FindOutput> {
  return fileTool<FindInput, FindOutput>({
    description: "Finds files and directories of the workspace by a glob pattern.",
    inputSchema,
    async run(input) {
      const found = await ops.glob(
        globBelow(input.path("path", "/"), input.needText("pattern", 'Give a glob, such as "*.md".')),
      );
      const paths = found
        .slice(0, MAX_FOUND)
        .map(({ path, type }) => (type === "directory" && path !== "/" ? `${path}/` : path));
      return { paths, more: found.length - paths.length };
    },
    show({ paths, more }) {
      const end = more === 0 ? [] : [`(There are ${more} more. Use a narrower pattern.)`];
      return paths.length === 0 ? "Nothing matches." : [...paths, ...end].join("\n");
    },
    replay: "safe",
    supersedes(given, output) {
      // A hook may have put anything else in its place.
      if (!isRecord(output)) return undefined;
      const input = new ToolInput(given);
      return globBelow(input.path("path", "/"), input.needText("pattern", ""));
    },
  });
}
