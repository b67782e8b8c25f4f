import { PerdureError } from "../../../base/error.ts";
import type { Tool } from "ai";
import type { OutputSubject } from "../../../context/superseded.ts";
import { isRecord } from "../../../base/json.ts";
import { posixError } from "../../sandbox/posix-error.ts";
import { fileTool, ToolInput } from "./input.ts";
import type { ListedEntry, ListOperations } from "./operations.ts";
import { objectInput } from "../../../base/json-schema.ts";

const LIST_PAGE = 200;

/** What the model says. */
export interface ListInput {
  readonly path?: string;
  readonly offset?: number;
}

/** A piece of a directory. */
export interface ListOutput {
  readonly path: string;
  readonly entries: readonly Pick<ListedEntry, "name" | "type" | "size" | "target">[];
  /** There are more: list again with this offset. */
  readonly next?: number;
}

const inputSchema = objectInput<ListInput>([], {
  path: { type: "string", description: "Absolute path of the directory. Default: /." },
  offset: { type: "integer", minimum: 0, description: `Leaves out so many entries; a page has ${LIST_PAGE}.` },
});

/** A tool that lists a directory, in pages. It only reads, so a call that a crash cut runs again. */
export function createListTool({ ops }: { readonly ops: ListOperations }): Tool<ListInput, ListOutput> {
  return fileTool<ListInput, ListOutput>({
    description: "Lists a directory of the workspace, with the sizes of files.",
    inputSchema,
    async run(input) {
      const path = input.path("path", "/");
      const offset = input.count("offset", 0, 1e9) ?? 0;
      const found = await entriesOf(ops, path, offset);
      if (found.length === 0 && offset > 0) throw posixError("EINVAL", `${path} has no more than ${offset} entries.`);
      const entries = found.slice(0, LIST_PAGE).map(({ name, type, size, target }) => ({
        ...{ name, type },
        ...(type === "file" && size !== undefined && { size }),
        ...(target !== undefined && { target }),
      }));
      return { path, entries, ...(found.length > LIST_PAGE && { next: offset + LIST_PAGE }) };
    },
    show: textOf,
    ...{ replay: "safe", supersedes: subjectOf },
  });
}

/** A page of a directory; a hook may have put anything else in its place. */
function subjectOf(given: ListInput, output: ListOutput): OutputSubject | undefined {
  if (!isRecord(output) || typeof output.path !== "string") return undefined;
  const offset = new ToolInput(given).count("offset", 0, 1e9) ?? 0;
  // One page that is all of it stands for any page of before.
  return offset === 0 && output.next === undefined ? output.path : { of: output.path, piece: `${offset}` };
}

/** What is not there is said with what to do about it. */
async function entriesOf(ops: ListOperations, path: string, offset: number) {
  try {
    return await ops.readDir(path, { limit: LIST_PAGE + 1, offset });
  } catch (error) {
    if (!PerdureError.is(error, "not_found")) throw error;
    throw new PerdureError("not_found", `${error.message} List the directory above it, or find it by a pattern.`);
  }
}

function textOf({ path, entries, next }: ListOutput): string {
  if (entries.length === 0) return `${path} is empty.`;
  const lines = entries.map(({ name, type, size, target }) => {
    if (type === "directory") return `${name}/`;
    return type === "symlink" ? `${name} -> ${target ?? "?"}` : `${name}  ${size ?? "?"} bytes`;
  });
  return [...lines, ...(next === undefined ? [] : [`(There are more. Go on with offset ${next}.)`])].join("\n");
}
