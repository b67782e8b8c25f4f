// What tools are made of: files, sandboxes, shells, browsers and the way to the network.

// The network
export { createEgress, type EgressOptions, type PolicedEgress } from "./egress/egress.ts";
export type { EgressDecision, OnDecision } from "./egress/decision.ts";
export type { ResolveHost } from "./egress/engine.ts";
export type { Injection } from "./egress/inject.ts";
export { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "./egress/limits.ts";
export type { Verdict as EgressVerdict } from "./egress/policy.ts";
export { createGuardedFetch, type GuardedFetch, type GuardedFetchOptions } from "./egress/guarded-fetch.ts";
export { createFileDownload, type FileDownloadOptions } from "./egress/file-download.ts";
export { addressKind, type AddressKind, isPrivateAddress } from "./egress/address.ts";
export { guardUrl, type UrlGuardOptions, type UrlVerdict } from "./egress/url-guard.ts";
export {
  createFetchTools,
  type FetchFailure,
  type FetchOutput,
  type FetchToolRules,
  type FetchToolsOptions,
} from "./egress/fetch-tool/fetch-tools.ts";
export type { FetchInput } from "./egress/fetch-tool/fetch-input.ts";
export {
  type BundledCode,
  type BundleLimits,
  createPackageBundler,
  type PackageBundler,
  type PackageBundlerOptions,
} from "./sandbox/npm/package-bundler.ts";
export {
  type InstalledPackages,
  installPackages,
  type InstallPackagesOptions,
} from "./sandbox/npm/install-packages.ts";
export type { PackageList } from "./sandbox/npm/package-names.ts";

// Sandboxes
export {
  createExecuteTool,
  type CodePackages,
  type ExecuteInput,
  type ExecuteToolOptions,
} from "./sandbox/execute/execute-tool.ts";
export type { ExecuteOutput } from "./sandbox/execute/code-run.ts";
export { createQuickJsSandbox, type ParkingSandbox, type QuickJsOptions } from "./sandbox/quickjs/create.ts";
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
} from "./sandbox/sandbox.ts";

// Shells
export {
  createBashSandbox,
  type BashRunRequest,
  type BashSandbox,
  type BashSandboxOptions,
} from "./sandbox/bash/bash-sandbox.ts";
export type { BashMount } from "./sandbox/bash/file-calls.ts";
export { MemoryFiles, type MemoryFilesOptions } from "./sandbox/memory-files.ts";

// Processes in a jail, and a browser
export {
  createProcessSandbox,
  type ProcessPrograms,
  type ProcessRunResult,
  type ProcessSandbox,
  type ProcessSandboxOptions,
} from "./sandbox/process/process-sandbox.ts";
export type { CheckoutBounds, FilesReport } from "./sandbox/process/files-report.ts";
export {
  createSandboxTools,
  RUN_PROCESS_TOOL,
  type RunProcessInput,
  type RunProcessOutput,
  type SandboxToolsOptions,
} from "./sandbox/process/sandbox-tools.ts";
export {
  type BrowserTools,
  closeBrowserSession,
  closeBrowsers,
  createBrowserTools,
  probeBrowser,
} from "./sandbox/browser/browser-tools.ts";
export type { BrowserEgress, BrowserToolsOptions } from "./sandbox/browser/browser-options.ts";
export type { BrowserErrorOutput, BrowserFileOutput, BrowserPageOutput } from "./sandbox/browser/page-output.ts";
export {
  bashToolMissing,
  createBashTool,
  type BashToolInput,
  type BashToolOptions,
  type BashToolOutput,
} from "./workspace/bash-tool.ts";

// Workspace
export { Workspace } from "./workspace/workspace.ts";
export type { WorkspaceOptions } from "./workspace/workspace-options.ts";
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
} from "./workspace/types.ts";
export type { WorkspaceListener } from "./workspace/realm.ts";
export { bucketFiles, directoryFiles, type Bucket, type LargeFiles } from "./workspace/large-files.ts";
export { localWorkspace, RemoteWorkspace, sharedWorkspace, type WorkspaceCall } from "./workspace/remote.ts";
export { callWorkspace, type WorkspaceAccess, type WorkspaceOperation } from "./workspace/serve.ts";
export { toSandboxFiles, type MinimalFiles } from "./workspace/sandbox-files.ts";
export type { KeptFiles } from "./workspace/kept-files.ts";
export {
  createWorkspaceTools,
  type WorkspaceOperations,
  type WorkspaceToolsOptions,
} from "./workspace/tools/create-workspace-tools.ts";
export { createReadTool, type ReadInput, type ReadOutput, type ReadToolOptions } from "./workspace/tools/read.ts";
export { createWriteTool, type WriteInput, type WriteOutput } from "./workspace/tools/write.ts";
export { createEditTool, type EditInput, type EditOutput } from "./workspace/tools/edit.ts";
export { createListTool, type ListInput, type ListOutput } from "./workspace/tools/list.ts";
export { createFindTool, type FindInput, type FindOutput } from "./workspace/tools/find.ts";
export { createGrepTool, type GrepInput, type GrepOutput, type GrepToolOptions } from "./workspace/tools/grep.ts";
export { createDeleteTool, type DeleteInput, type DeleteOutput } from "./workspace/tools/delete.ts";
export type {
  DeleteOperations,
  EditOperations,
  FindOperations,
  GrepOperations,
  ListedEntry,
  ListOperations,
  ReadOperations,
  WriteOperations,
} from "./workspace/tools/operations.ts";
