// What tools are made of: files, sandboxes, shells, browsers and the way to the network.

// The network
export { createEgress, type EgressOptions, type PolicedEgress } from "./toolbox/egress/egress.ts";
export type { EgressDecision, OnDecision } from "./toolbox/egress/decision.ts";
export type { ResolveHost } from "./toolbox/egress/engine.ts";
export type { Injection } from "./toolbox/egress/inject.ts";
export { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "./toolbox/egress/limits.ts";
export type { Verdict as EgressVerdict } from "./toolbox/egress/policy.ts";
export { createGuardedFetch, type GuardedFetch, type GuardedFetchOptions } from "./toolbox/egress/guarded-fetch.ts";
export { createFileDownload, type FileDownloadOptions } from "./toolbox/egress/file-download.ts";
export { addressKind, type AddressKind, isPrivateAddress } from "./toolbox/egress/address.ts";
export { guardUrl, type UrlGuardOptions, type UrlVerdict } from "./toolbox/egress/url-guard.ts";
export {
  createFetchTools,
  type FetchFailure,
  type FetchOutput,
  type FetchToolRules,
  type FetchToolsOptions,
} from "./toolbox/egress/fetch-tool/fetch-tools.ts";
export type { FetchInput } from "./toolbox/egress/fetch-tool/fetch-input.ts";
export {
  type BundledCode,
  type BundleLimits,
  createPackageBundler,
  type PackageBundler,
  type PackageBundlerOptions,
} from "./toolbox/sandbox/npm/package-bundler.ts";
export {
  type InstalledPackages,
  installPackages,
  type InstallPackagesOptions,
} from "./toolbox/sandbox/npm/install-packages.ts";
export type { PackageList } from "./toolbox/sandbox/npm/package-names.ts";

// Sandboxes
export {
  createExecuteTool,
  type CodePackages,
  type ExecuteInput,
  type ExecuteToolOptions,
} from "./toolbox/sandbox/execute/execute-tool.ts";
export type { ExecuteOutput } from "./toolbox/sandbox/execute/code-run.ts";
export { createQuickJsSandbox, type ParkingSandbox, type QuickJsOptions } from "./toolbox/sandbox/quickjs/create.ts";
export {
  DEFAULT_LIMITS,
  SUSPEND,
  type CallAnswerInSandbox,
  type Capabilities,
  type Egress,
  type EgressRequest,
  type EgressResponse,
  type FileEntry,
  type FileStat,
  type HostCall,
  type HostFunction,
  type Json,
  type Language,
  type LimitName,
  type Limits,
  type LogLine,
  type OpenCall,
  type Outcome,
  type Probe,
  type RunRequest,
  type RunResult,
  type Sandbox,
  type SandboxFiles,
  type SandboxSession,
} from "./toolbox/sandbox/sandbox.ts";

// Shells
export {
  createBashSandbox,
  type BashRunRequest,
  type BashSandbox,
  type BashSandboxOptions,
} from "./toolbox/sandbox/bash/bash-sandbox.ts";
export type { BashMount } from "./toolbox/sandbox/bash/file-calls.ts";
export { MemoryFiles, type MemoryFilesOptions } from "./toolbox/sandbox/memory-files.ts";

// Processes in a jail, and a browser
export {
  createProcessSandbox,
  type ProcessPrograms,
  type ProcessRunResult,
  type ProcessSandbox,
  type ProcessSandboxOptions,
} from "./toolbox/sandbox/process/process-sandbox.ts";
export type { CheckoutBounds, FilesReport } from "./toolbox/sandbox/process/files-report.ts";
export {
  createSandboxTools,
  RUN_PROCESS_TOOL,
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
export type { BrowserEgress, BrowserToolsOptions } from "./toolbox/sandbox/browser/browser-options.ts";
export type {
  BrowserErrorOutput,
  BrowserFileOutput,
  BrowserPageOutput,
} from "./toolbox/sandbox/browser/page-output.ts";
export {
  bashToolMissing,
  createBashTool,
  type BashToolInput,
  type BashToolOptions,
  type BashToolOutput,
} from "./toolbox/workspace/bash-tool.ts";

// Workspace
export { Workspace } from "./toolbox/workspace/workspace.ts";
export type { WorkspaceOptions } from "./toolbox/workspace/workspace-options.ts";
export type {
  PageOptions,
  PointChange,
  RestoreResult,
  WorkspaceChange,
  WorkspaceEntry,
  WorkspaceFiles,
  WorkspaceInfo,
  WorkspaceLike,
  WorkspacePoint,
} from "./toolbox/workspace/types.ts";
export type { WorkspaceListener } from "./toolbox/workspace/realm.ts";
export { bucketFiles, directoryFiles, type Bucket, type LargeFiles } from "./toolbox/workspace/large-files.ts";
export { localWorkspace, RemoteWorkspace, sharedWorkspace, type WorkspaceCall } from "./toolbox/workspace/remote.ts";
export { callWorkspace, type WorkspaceAccess, type WorkspaceOperation } from "./toolbox/workspace/serve.ts";
export { toSandboxFiles, type MinimalFiles } from "./toolbox/workspace/sandbox-files.ts";
export type { KeptFiles } from "./toolbox/workspace/kept-files.ts";
export {
  createWorkspaceTools,
  type WorkspaceOperations,
  type WorkspaceToolsOptions,
} from "./toolbox/workspace/tools/create-workspace-tools.ts";
export {
  createReadTool,
  type ReadInput,
  type ReadOutput,
  type ReadToolOptions,
} from "./toolbox/workspace/tools/read.ts";
export { createWriteTool, type WriteInput, type WriteOutput } from "./toolbox/workspace/tools/write.ts";
export { createEditTool, type EditInput, type EditOutput } from "./toolbox/workspace/tools/edit.ts";
export { createListTool, type ListInput, type ListOutput } from "./toolbox/workspace/tools/list.ts";
export { createFindTool, type FindInput, type FindOutput } from "./toolbox/workspace/tools/find.ts";
export {
  createGrepTool,
  type GrepInput,
  type GrepOutput,
  type GrepToolOptions,
} from "./toolbox/workspace/tools/grep.ts";
export { createDeleteTool, type DeleteInput, type DeleteOutput } from "./toolbox/workspace/tools/delete.ts";
export type {
  DeleteOperations,
  EditOperations,
  FindOperations,
  GrepOperations,
  ListedEntry,
  ListOperations,
  ReadOperations,
  WriteOperations,
} from "./toolbox/workspace/tools/operations.ts";
