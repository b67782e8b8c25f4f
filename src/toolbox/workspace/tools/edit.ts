import { InOrder } from "../../../base/in-order.ts";
import type { Tool } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { unifiedDiff } from "../diff.ts";
import { posixError, posixNameOf } from "../../sandbox/posix-error.ts";
import { fileTool } from "./input.ts";
import type { EditOperations } from "./operations.ts";
import { replaceText } from "./replace-text.ts";
import { objectInput } from "../../../base/json-schema.ts";

const MAX_DIFF_CHARS = 8_000;

/** What the model says. */
export interface EditInput {
  readonly path: string;
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

/** What became of it. */
export interface EditOutput {
  readonly path: string;
  readonly created: boolean;
  readonly replacements: number;
  /** Lines of the new text where something was replaced. */
  readonly lines: readonly number[];
  /** `old_string` was only found when differences in white space did not count. */
  readonly loosely: boolean;
  /** What changed, unless that is long. */
  readonly diff?: string;
}

const inputSchema = objectInput<EditInput>(["path", "old_string", "new_string"], {
  path: { type: "string", description: "Absolute path of the file." },
  old_string: {
    type: "string",
    description: "The text to replace, exactly as it is in the file. It must be there once. Empty: makes a new file.",
  },
  new_string: { type: "string", description: "What stands there afterwards." },
  replace_all: { type: "boolean", description: "Replaces it everywhere. Default: false." },
});

/**
 * A tool that replaces a piece of a text file, atomically: parallel calls on a file all count. A call that a crash cut is not run
 * again, because what it looks for may be gone, or there again.
 */
export function createEditTool({ ops }: { readonly ops: EditOperations }): Tool<EditInput, EditOutput> {
  const update = ops.updateFile?.bind(ops) ?? inTurn(ops);
  return fileTool<EditInput, EditOutput>({
    description:
      "Replaces a piece of a text file of the workspace. `old_string` must be in it exactly once, so give enough of the text " +
      "around it, without line numbers. With an empty `old_string` it makes a new file.",
    inputSchema,
    async run(input) {
      const path = input.path("path");
      const old = input.needText("old_string", "Give the text to replace, exactly as it is in the file.");
      const now = input.needText("new_string", "Give what is to stand there afterwards; it may be empty.");
      const all = input.flag("replace_all");
      if (old === now && old !== "")
        throw new PerdureError("bad_input", "old_string and new_string are the same, so there is nothing to change.");
      let output: EditOutput | undefined;
      await update(path, (text) => {
        if (old === "") {
          if (text !== null && text !== "") throw alreadyThere(path);
          output = { path, created: text === null, replacements: 0, lines: [], loosely: false };
          return now;
        }
        if (text === null)
          throw posixError("ENOENT", `There is no file ${path}. To make it, give an empty old_string, or use write.`);
        const { lines, loosely, text: after } = replaceText(text, { path, old, now, all });
        const diff = diffOf(path, text, after);
        const replacements = lines.length;
        output = { path, created: false, replacements, lines, loosely, ...(diff !== undefined && { diff }) };
        return after;
      });
      if (output === undefined) throw new PerdureError("bad_state", `${path} could not be changed.`);
      return output;
    },
    show: textOf,
    replay: "never",
  });
}

function textOf({ path, created, replacements, lines, loosely }: EditOutput): string {
  if (replacements === 0) return created ? `Created ${path}.` : `Wrote ${path}, which was empty.`;
  const where = lines.length <= 10 ? `line ${lines.join(", ")}` : `${lines.length} places`;
  const how = loosely ? " The white space differed from old_string; check the indentation." : "";
  return `Changed ${path} at ${where}.${how}`;
}

function diffOf(path: string, before: string, after: string): string | undefined {
  try {
    const diff = unifiedDiff(before, after, { a: path, b: path });
    return diff.length <= MAX_DIFF_CHARS ? diff : undefined;
  } catch (thrown) {
    if (PerdureError.is(thrown, "limit")) return undefined;
    throw thrown;
  }
}

function alreadyThere(path: string): PerdureError {
  return posixError(
    "EEXIST",
    `${path} is there already. Give the text to replace as old_string, or write the whole file.`,
  );
}

/** For storages that cannot change a text in one go: at least the calls of this tool come one after the other. */
function inTurn(ops: EditOperations): NonNullable<EditOperations["updateFile"]> {
  const order = new InOrder();
  return (path, change) =>
    order.run(async () => {
      const text = await readOrNull(ops, path);
      const next = change(text);
      if (next !== null) await ops.writeFile(path, next);
    });
}

async function readOrNull(ops: EditOperations, path: string): Promise<string | null> {
  try {
    return await ops.readFile(path);
  } catch (thrown) {
    if (posixNameOf(thrown) === "ENOENT") return null;
    throw thrown;
  }
}
