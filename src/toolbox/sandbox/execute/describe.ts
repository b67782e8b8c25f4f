import type { ExecuteToolOptions } from "./execute-tool.ts";
import type { Declared } from "./tool-catalog.ts";

const INTRODUCTION =
  "Runs code that you write. Use it to call several tools at once, to work through their results, or to compute.";

/** What the model reads about the tool. */
export function describeExecute(options: ExecuteToolOptions, declared: Declared): string {
  const { description = INTRODUCTION, network, workspace, workspaceAccess = "read", packages } = options;
  const parts = [
    description,
    "The code is the body of an async function in TypeScript: use `await`, and `return` what you want to see (it must " +
      "be JSON; keep it small). `console.log` is shown to you too. There is no `process`, no `require` and no DOM. " +
      "Nothing is kept between runs.",
  ];
  if (declared.text !== "") {
    parts.push(
      "Tools are functions on `tools` (`codemode` is the same object). They take one object and throw an Error when they fail:",
      `\`\`\`ts\ndeclare const tools: {\n${declared.text}\n};\n\`\`\``,
    );
  }
  if (!declared.complete) {
    parts.push(
      '`await tools.search("words")` finds tools, `await tools.describe("name")` gives the declaration of one. Use them ' +
        "before you call a tool whose declaration is not here.",
    );
  }
  if (workspace !== undefined) {
    const write = ", writeFile(path, text), appendFile(path, text), mkdir(path), rm(path), rename(from, to)";
    parts.push(
      `\`files\` has the workspace: readFile(path), readFileBytes(path), readDir(path), stat(path), exists(path)${
        workspaceAccess === "read-write" ? write : ""
      }. All are async.`,
    );
  }
  parts.push(
    network === undefined
      ? "There is no network."
      : "`fetch(url, { method, headers, body })` reaches allowed hosts only.",
  );
  if (packages !== undefined && packages.names.length > 0) {
    parts.push(`Packages that can be imported: ${packages.names.join(", ")}.`);
  }
  return parts.join("\n\n");
}
