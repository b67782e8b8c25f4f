import type { Tool } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { isRecord } from "../../../base/json.ts";
import { type DurableExecutionOptions, durableTool } from "../../../tool/define.ts";
import { objectInput, toSchema } from "../../../base/json-schema.ts";
import type { ParkedCall } from "../../../tool/park.ts";
import { resolveLimits } from "../limits.ts";
import { sharedQuickJsSandbox } from "../quickjs/create.ts";
import { CodeRun, type ExecuteOutput, type ExecuteToolOptions } from "./code-run.ts";
import { catalogOf, type Declared, declareTools } from "./tool-catalog.ts";

const executeToolOptionsNames = namesOf<ExecuteToolOptions>()(
  "tools sandbox limits network workspace workspaceAccess packages description maxDeclarationChars",
);

/** What the model says. */
export interface ExecuteInput {
  readonly code: string;
}

const inputSchema = objectInput<ExecuteInput>(["code"], {
  code: { type: "string", description: "TypeScript or JavaScript: the body of an async function." },
});
const DEFAULT_DECLARATION_CHARS = 12_000;
const LONGEST_CODE = 200_000;

const INTRODUCTION =
  "Runs code that you write. Use it to call several tools at once, to work through their results, or to compute.";

/**
 * A tool that runs the model's code in a sandbox, with other tools as functions. Each call that the code makes is judged like the
 * model's own: when a person must be asked, the code is parked where it stands and resumes after the answer, also after a
 * restart. Where no turn can park, such a call is an error in the code.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function createExecuteTool(options: ExecuteToolOptions): Tool<ExecuteInput, ExecuteOutput | ParkedCall> {
  refuseUnknown(options, executeToolOptionsNames, "createExecuteTool()", {
    loader: "Leave it out: code runs in a QuickJS sandbox. Another one is `sandbox`.",
    executor: "Another place to run code is `sandbox`.",
    timeout: "Use `limits: { wallMs }`.",
    globalOutbound: "Code has no network unless it is given one: `network: createEgress({ allow: [...] })`.",
  });
  checkOptions(options);
  const toolsOf = (): Readonly<Record<string, Tool>> => {
    const given = typeof options.tools === "function" ? options.tools() : options.tools;
    // Code that runs code gains nothing, and would never end.
    return Object.fromEntries(Object.entries(given).filter(([, one]) => !isExecute(one)));
  };
  const room = options.maxDeclarationChars ?? DEFAULT_DECLARATION_CHARS;
  const describe = (): string => describeExecute(options, declareTools(catalogOf(toolsOf()), room));
  const made: Tool<ExecuteInput, ExecuteOutput | ParkedCall> = {
    description: typeof options.tools === "function" ? describe : describe(),
    inputSchema: toSchema<ExecuteInput>(inputSchema.jsonSchema, { validate: readInput }),
    execute: async (input: ExecuteInput, handed: DurableExecutionOptions) => {
      const sandbox = options.sandbox ?? sharedQuickJsSandbox();
      const tools = toolsOf();
      const catalog = catalogOf(tools);
      const { complete } = declareTools(catalog, room);
      return new CodeRun({ options, sandbox, tools, catalog, complete, handed }).run(input.code);
    },
  };
  Object.defineProperty(made, executeKey, { value: true, enumerable: true });
  return durableTool(made, { replay: "never" });
}

const executeKey = Symbol.for("perdure.execute");

function isExecute(tool: Tool): boolean {
  return executeKey in tool;
}

function readInput(value: unknown): { success: true; value: ExecuteInput } | { success: false; error: Error } {
  const code = isRecord(value) ? value.code : undefined;
  if (typeof code !== "string" || code.trim() === "") {
    return {
      success: false,
      error: new PerdureError("bad_input", 'Give the code as a text: { "code": "return 1 + 1" }.'),
    };
  }
  if (code.length > LONGEST_CODE) {
    const message = `The code has ${code.length} characters; at most ${LONGEST_CODE} are allowed.`;
    return { success: false, error: new PerdureError("bad_input", message) };
  }
  return { success: true, value: { code } };
}

function checkOptions(options: ExecuteToolOptions): void {
  const { sandbox, limits, tools, maxDeclarationChars } = options;
  const bad = (message: string): PerdureError => new PerdureError("bad_config", `createExecuteTool: ${message}`);
  if (typeof tools !== "function" && !isRecord(tools)) throw bad("tools must be an object of tools.");
  if (sandbox !== undefined && !sandbox.supports.languages.includes("ts")) {
    throw bad(`the sandbox "${sandbox.kind}" does not run TypeScript.`);
  }
  if (maxDeclarationChars !== undefined && !(maxDeclarationChars >= 0)) {
    throw bad("maxDeclarationChars must be a number of at least 0.");
  }
  try {
    resolveLimits(limits);
  } catch (thrown) {
    throw bad(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function describeExecute(options: ExecuteToolOptions, declared: Declared): string {
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
