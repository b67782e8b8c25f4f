import { sha256 } from "../../../base/hash.ts";
import type { Tool } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { parentOf, ROOT } from "../../sandbox/path.ts";
import { posixError, posixNameOf } from "../../sandbox/posix-error.ts";
import { encodeText } from "../text.ts";
import { fileTool, sizeText } from "./input.ts";
import type { WriteOperations } from "./operations.ts";
import { objectInput } from "../../../base/json-schema.ts";

/** What the model says. */
export interface WriteInput {
  readonly path: string;
  readonly content: string;
  readonly expected_hash?: string;
}

/** What became of it. */
export interface WriteOutput {
  readonly path: string;
  readonly created: boolean;
  readonly bytes: number;
  readonly lines: number;
}

const MIN_HASH_CHARS = 8;

const inputSchema = objectInput<WriteInput>(["path", "content"], {
  path: { type: "string", description: "Absolute path of the file. Missing directories are made." },
  content: { type: "string", description: "All that the file is to hold." },
  expected_hash: {
    type: "string",
    description: "The hash that reading the file gave: if it has changed since, nothing is written.",
  },
});

/**
 * A tool that writes a whole file. Repeating it changes nothing, so a call that a crash cut runs again. Of parallel calls the
 * last one counts; with `expected_hash` none overwrites what the model has not seen.
 */
export function createWriteTool({ ops }: { readonly ops: WriteOperations }): Tool<WriteInput, WriteOutput> {
  return fileTool<WriteInput, WriteOutput>({
    description:
      "Writes a text file of the workspace: a new one, or all of one that is there. " +
      "To change a part of a file, edit it instead.",
    inputSchema,
    async run(input) {
      const path = input.path("path");
      const content = input.needText("content", "Give all that the file is to hold, as a text.");
      const before = await textBefore(ops, path);
      // A call that runs again after a crash finds its own content: then the work is done.
      if (before !== content) await write(ops, path, content, before, input.text("expected_hash"));
      const lines = content === "" ? 0 : content.split("\n").length - (content.endsWith("\n") ? 1 : 0);
      return { path, created: before === null, bytes: encodeText(content).length, lines };
    },
    show: ({ path, created, lines, bytes }) =>
      `${created ? "Created" : "Wrote"} ${path}: ${lines} lines, ${sizeText(bytes)}.`,
    replay: "safe",
  });
}

/** The text of a file; null when there is none. What is no text is replaced like everything else. */
async function textBefore(ops: WriteOperations, path: string): Promise<string | null | undefined> {
  try {
    return await ops.readFile(path);
  } catch (thrown) {
    const name = posixNameOf(thrown);
    if (name === "ENOENT") return null;
    if (name === "EINVAL") return undefined;
    throw thrown;
  }
}

async function write(
  ops: WriteOperations,
  path: string,
  content: string,
  before: string | null | undefined,
  expected: string | undefined,
): Promise<void> {
  // Models fill in what they need not: an empty hash is none.
  if (expected === undefined || expected === "") return put(ops, path, content);
  if (expected.length < MIN_HASH_CHARS)
    throw posixError("EINVAL", "`expected_hash` must be the hash that reading the file gave.");
  const hash = typeof before === "string" ? await sha256(before) : "";
  if (!hash.startsWith(expected.toLowerCase())) throw changed(path);
  if (ops.updateFile === undefined) return put(ops, path, content);
  await ops.updateFile(path, (now) => {
    if (now !== before) throw changed(path);
    return content;
  });
}

async function put(ops: WriteOperations, path: string, content: string): Promise<void> {
  try {
    await ops.writeFile(path, content);
  } catch (thrown) {
    // Some storages want their directories made.
    if (posixNameOf(thrown) !== "ENOENT" || ops.mkdir === undefined || parentOf(path) === ROOT) throw thrown;
    await ops.mkdir(parentOf(path), { recursive: true });
    await ops.writeFile(path, content);
  }
}

function changed(path: string): PerdureError {
  return new PerdureError("conflict", `${path} has changed since you read it. Nothing was written. Read it again.`);
}
