import type { Tool } from "ai";
import { ROOT } from "../../sandbox/path.ts";
import { posixError, posixNameOf } from "../../sandbox/posix-error.ts";
import { fileTool } from "./input.ts";
import type { DeleteOperations } from "./operations.ts";
import { objectInput } from "../../../base/json-schema.ts";

/** What the model says. */
export interface DeleteInput {
  readonly path: string;
  readonly recursive?: boolean;
}

/** What became of it. */
export interface DeleteOutput {
  readonly path: string;
  /** False when there was nothing. */
  readonly deleted: boolean;
}

const inputSchema = objectInput<DeleteInput>(["path"], {
  path: { type: "string", description: "Absolute path of a file or directory." },
  recursive: { type: "boolean", description: "Must be true for a directory that is not empty." },
});

/** A tool that deletes. What is gone stays gone, so a call that a crash cut runs again. */
export function createDeleteTool({ ops }: { readonly ops: DeleteOperations }): Tool<DeleteInput, DeleteOutput> {
  return fileTool<DeleteInput, DeleteOutput>({
    description: "Deletes a file of the workspace, or a directory with all that is in it.",
    inputSchema,
    async run(input) {
      const path = input.path("path");
      if (path === ROOT) throw posixError("EPERM", "The root cannot be deleted. Delete what is in it, one by one.");
      try {
        await ops.rm(path, { recursive: input.flag("recursive") });
        return { path, deleted: true };
      } catch (thrown) {
        if (posixNameOf(thrown) === "ENOENT") return { path, deleted: false };
        throw thrown;
      }
    },
    show: ({ path, deleted }) => (deleted ? `Deleted ${path}.` : `There was no ${path}.`),
    replay: "safe",
  });
}
