// The files of an agent in detail: tools one by one, operations, points, access from elsewhere.
export { bashToolMissing } from "../toolbox/workspace/bash-tool.ts";
export type {
  PageOptions,
  PointChange,
  RestoreResult,
  WorkspaceChange,
  WorkspacePoint,
} from "../toolbox/workspace/types.ts";
export type { WorkspaceListener } from "../toolbox/workspace/realm.ts";
export type { WorkspaceCall } from "../toolbox/workspace/remote.ts";
export { callWorkspace, type WorkspaceAccess, type WorkspaceOperation } from "../toolbox/workspace/serve.ts";
export { toSandboxFiles, type MinimalFiles } from "../toolbox/workspace/sandbox-files.ts";
export type { KeptFiles } from "../toolbox/workspace/kept-files.ts";
export type { ReadInput, ReadOutput, ReadToolOptions } from "../toolbox/workspace/tools/read.ts";
export type { WriteInput, WriteOutput } from "../toolbox/workspace/tools/write.ts";
export type { EditInput, EditOutput } from "../toolbox/workspace/tools/edit.ts";
export type { ListInput, ListOutput } from "../toolbox/workspace/tools/list.ts";
export type { FindInput, FindOutput } from "../toolbox/workspace/tools/find.ts";
export type { GrepInput, GrepOutput, GrepToolOptions } from "../toolbox/workspace/tools/grep.ts";
export type { DeleteInput, DeleteOutput } from "../toolbox/workspace/tools/delete.ts";
export type {
  DeleteOperations,
  EditOperations,
  FindOperations,
  GrepOperations,
  ListedEntry,
  ListOperations,
  ReadOperations,
  WriteOperations,
} from "../toolbox/workspace/tools/operations.ts";
