// What a sandbox is, for those who write one, and what it may ask of the network.
export type { EgressDecision, OnDecision } from "../toolbox/egress/decision.ts";
export type { ResolveHost } from "../toolbox/egress/egress.ts";

export type { Injection } from "../toolbox/egress/inject.ts";
export { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "../toolbox/egress/limits.ts";
export type { Verdict as EgressVerdict } from "../toolbox/egress/policy.ts";
export { addressKind, type AddressKind, isPrivateAddress } from "../toolbox/egress/address.ts";
export { guardUrl, type UrlGuardOptions, type UrlVerdict } from "../toolbox/egress/url-guard.ts";
export type { BundledCode, PackageBundler, PackageBundlerOptions } from "../toolbox/sandbox/npm/package-bundler.ts";
export type { BundleLimits } from "../toolbox/sandbox/npm/node/bench.ts";
export type { InstalledPackages, InstallPackagesOptions } from "../toolbox/sandbox/npm/install-packages.ts";
export type { PackageList } from "../toolbox/sandbox/npm/package-names.ts";
export type { ParkingSandbox } from "../toolbox/sandbox/quickjs/create.ts";
export {
  DEFAULT_LIMITS,
  SUSPEND,
  type CallAnswerInSandbox,
  type Capabilities,
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
} from "../toolbox/sandbox/sandbox.ts";
export type { BashRunRequest } from "../toolbox/sandbox/bash/bash-sandbox.ts";
export type { BashMount } from "../toolbox/sandbox/bash/file-calls.ts";
export type { MemoryFilesOptions } from "../toolbox/sandbox/memory-files.ts";
export type { ProcessPrograms, ProcessRunResult } from "../toolbox/sandbox/process/process-sandbox.ts";
export type { CheckoutBounds, FilesReport } from "../toolbox/sandbox/process/files-report.ts";
export { RUN_PROCESS_TOOL } from "../toolbox/sandbox/process/sandbox-tools.ts";
export type { BrowserEgress } from "../toolbox/sandbox/browser/browser-options.ts";
