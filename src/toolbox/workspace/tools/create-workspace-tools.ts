import type { Tool, ToolSet } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { createBashTool, type BashToolOptions } from "../bash-tool.ts";
import type { KeptFiles } from "../kept-files.ts";
import { toSandboxFiles } from "../sandbox-files.ts";
import type { WorkspaceLike } from "../types.ts";
import { createDeleteTool } from "./delete.ts";
import { createEditTool } from "./edit.ts";
import { createFindTool } from "./find.ts";
import { createGrepTool } from "./grep.ts";
import { createListTool } from "./list.ts";
import type {
  DeleteOperations,
  EditOperations,
  FindOperations,
  GrepOperations,
  ListOperations,
  ReadOperations,
} from "./operations.ts";
import { createReadTool } from "./read.ts";
import { createWriteTool } from "./write.ts";

/** All that the tools, but for `bash`, need of a storage. */
export type WorkspaceOperations = ReadOperations &
  EditOperations &
  ListOperations &
  FindOperations &
  GrepOperations &
  DeleteOperations;

/** How {@link createWorkspaceTools} makes tools. */
export interface WorkspaceToolsOptions {
  /** `false`: no tool that runs commands. Options are those of `createBashTool`. Default: true. */
  readonly bash?: boolean | BashToolOptions;
  /** `long`: read_file, write_file, edit_file, list_directory, find_files. Default: `short`. */
  readonly names?: "short" | "long";
  /** Only tools that change nothing. */
  readonly readOnly?: boolean;
  /** Where pictures that the model has seen are kept. Default: what the storage says as `kept`. */
  readonly keep?: KeptFiles;
  /** Resolves after other work of the process had its turn. */
  readonly breathe?: () => Promise<void>;
}

const workspaceToolsOptionsNames = namesOf<WorkspaceToolsOptions>()("bash names readOnly keep breathe");

const longNames: Readonly<Record<string, string>> = {
  read: "read_file",
  write: "write_file",
  edit: "edit_file",
  list: "list_directory",
  find: "find_files",
};

/**
 * Tools to work on files: `read`, `write`, `edit`, `list`, `find`, `grep`, `delete` and `bash`. On any storage with the methods;
 * `bash` needs those of {@link WorkspaceLike} or more.
 * @throws PerdureError `bad_config` when the storage lacks a method
 */
export function createWorkspaceTools(
  storage: WorkspaceLike | WorkspaceOperations,
  options: WorkspaceToolsOptions = {},
): ToolSet {
  refuseUnknown(options, workspaceToolsOptionsNames, "createWorkspaceTools()");
  const { bash = true, names = "short", readOnly = false, breathe } = options;
  const ops: WorkspaceOperations = storage;
  checkMethods(ops, readOnly);
  const keep = options.keep ?? keptBy(storage);
  const reading: Record<string, Tool> = {
    read: createReadTool({ ops, keep }),
    list: createListTool({ ops }),
    find: createFindTool({ ops }),
    grep: createGrepTool({ ops, breathe }),
  };
  const writing: Record<string, Tool> = readOnly
    ? {}
    : { write: createWriteTool({ ops }), edit: createEditTool({ ops }), delete: createDeleteTool({ ops }) };
  const order = ["read", "write", "edit", "list", "find", "grep", "delete"];
  const all = { ...reading, ...writing };
  const tools: ToolSet = {};
  for (const name of order) {
    const tool = all[name];
    if (tool !== undefined) tools[names === "long" ? (longNames[name] ?? name) : name] = tool;
  }
  if (bash !== false) {
    const given = bash === true ? {} : bash;
    tools.bash = createBashTool(toSandboxFiles(storage), { ...given, ...(readOnly && { readOnly }) });
  }
  return tools;
}

function checkMethods(ops: WorkspaceOperations, readOnly: boolean): void {
  const needed = ["readFile", "readFileBytes", "readDir", "glob", "stat", ...(readOnly ? [] : ["writeFile", "rm"])];
  const missing = needed.filter((name) => typeof Reflect.get(ops, name) !== "function");
  if (missing.length > 0)
    throw new PerdureError("bad_config", `createWorkspaceTools: the storage has no method ${missing.join(", ")}.`);
}

function keptBy(storage: object): KeptFiles | undefined {
  // Whoever has something of that name means this.
  return "kept" in storage ? (storage.kept as KeptFiles | undefined) : undefined;
}
