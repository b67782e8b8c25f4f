// What tools are made of: files, sandboxes, shells, browsers and the way to the network.

// The network
export { createEgress, type EgressOptions, type PolicedEgress } from "./toolbox/egress/egress.ts";
export { createGuardedFetch, type GuardedFetch, type GuardedFetchOptions } from "./toolbox/egress/guarded-fetch.ts";
export { createFileDownload, type FileDownloadOptions } from "./toolbox/egress/file-download.ts";
export {
  createFetchTools,
  type FetchFailure,
  type FetchOutput,
  type FetchToolRules,
  type FetchToolsOptions,
} from "./toolbox/egress/fetch-tool/fetch-tools.ts";
export type { FetchInput } from "./toolbox/egress/fetch-tool/fetch-input.ts";
export { createPackageBundler } from "./toolbox/sandbox/npm/package-bundler.ts";
export { installPackages } from "./toolbox/sandbox/npm/install-packages.ts";

// Sandboxes
export { createExecuteTool, type ExecuteInput } from "./toolbox/sandbox/execute/execute-tool.ts";
export type { CodePackages, ExecuteOutput, ExecuteToolOptions } from "./toolbox/sandbox/execute/code-run.ts";
export { createQuickJsSandbox, type QuickJsOptions } from "./toolbox/sandbox/quickjs/create.ts";
export type { Egress } from "./toolbox/sandbox/sandbox.ts";

// Shells
export { createBashSandbox, type BashSandbox, type BashSandboxOptions } from "./toolbox/sandbox/bash/bash-sandbox.ts";
export { MemoryFiles } from "./toolbox/sandbox/memory-files.ts";

// Processes in a jail, and a browser
export {
  createProcessSandbox,
  type ProcessSandbox,
  type ProcessSandboxOptions,
} from "./toolbox/sandbox/process/process-sandbox.ts";
export {
  createSandboxTools,
  type RunProcessInput,
  type RunProcessOutput,
  type SandboxToolsOptions,
} from "./toolbox/sandbox/process/sandbox-tools.ts";
export {
  type BrowserTools,
  closeBrowserSession,
  closeBrowsers,
  createBrowserTools,
  probeBrowser,
} from "./toolbox/sandbox/browser/browser-tools.ts";
export type { BrowserToolsOptions } from "./toolbox/sandbox/browser/browser-options.ts";
export type {
  BrowserErrorOutput,
  BrowserFileOutput,
  BrowserPageOutput,
} from "./toolbox/sandbox/browser/page-output.ts";
export {
  createBashTool,
  type BashToolInput,
  type BashToolOptions,
  type BashToolOutput,
} from "./toolbox/workspace/bash-tool.ts";

// Workspace
export { Workspace } from "./toolbox/workspace/workspace.ts";
export type { WorkspaceOptions } from "./toolbox/workspace/workspace-options.ts";
export type { WorkspaceEntry, WorkspaceFiles, WorkspaceInfo, WorkspaceLike } from "./toolbox/workspace/types.ts";
export { bucketFiles, directoryFiles, type Bucket, type LargeFiles } from "./toolbox/workspace/large-files.ts";
export { localWorkspace, RemoteWorkspace, sharedWorkspace } from "./toolbox/workspace/remote.ts";
export {
  createWorkspaceTools,
  type WorkspaceOperations,
  type WorkspaceToolsOptions,
} from "./toolbox/workspace/tools/create-workspace-tools.ts";
export { createReadTool } from "./toolbox/workspace/tools/read.ts";
export { createWriteTool } from "./toolbox/workspace/tools/write.ts";
export { createEditTool } from "./toolbox/workspace/tools/edit.ts";
export { createListTool } from "./toolbox/workspace/tools/list.ts";
export { createFindTool } from "./toolbox/workspace/tools/find.ts";
export { createGrepTool } from "./toolbox/workspace/tools/grep.ts";
export { createDeleteTool } from "./toolbox/workspace/tools/delete.ts";

// Tools that ask and go on later, and the search of sessions
export {
  type NestedCall,
  type NestedOutcome,
  type NestedQuestion,
  park,
  ParkedCall,
  type ParkedQuestion,
  type ResumedCall,
  type ToolTurn,
} from "./tool/park.ts";
export { SESSION_SEARCH_TOOL } from "./search/search-text.ts";
export {
  sessionSearchTool,
  type SessionSearchHit,
  type SessionSearchInput,
  type SessionSearchOutput,
  type SessionSearchToolOptions,
} from "./tool/session-search.ts";
