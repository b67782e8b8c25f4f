import { PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import { sharedBashSandbox, type BashSandbox } from "../sandbox/bash/bash-sandbox.ts";
import { sharedQuickJsSandbox } from "../sandbox/quickjs/create.ts";
import type { Egress, Sandbox, SandboxFiles } from "../sandbox/sandbox.ts";
import { type MinimalFiles, toSandboxFiles } from "../workspace/sandbox-files.ts";
import { extensionOf } from "./resource-path.ts";
import { functionExtensions, runFunction, type ScriptRights } from "./run-function.ts";
import { runScript, shellExtensions } from "./run-script.ts";
import type { ScriptTool } from "./script-tools.ts";
import type { SkillScriptRunner } from "./types.ts";

/** What the scripts of skills run in, and what they may do. */
export interface SkillRunnerOptions {
  /** Runs JavaScript and TypeScript. Default: a QuickJS sandbox that all runners of the process share. */
  readonly sandbox?: Sandbox;
  /** Runs Bash and Python. Default: a `createBashSandbox()` that the whole process shares. `false`: neither runs. */
  readonly bash?: BashSandbox | false;
  /** The files of the agent. Without it scripts see none. */
  readonly workspaceInstance?: SandboxFiles | MinimalFiles;
  /** What scripts may do with them. Default: `read`. */
  readonly workspace?: "read" | "read-write" | "none";
  /** What scripts may call. Default: nothing. */
  readonly tools?: Readonly<Record<string, ScriptTool>>;
  /** Where scripts may reach. Default: nowhere. */
  readonly network?: Egress;
  /** Milliseconds for each script. Default: 30,000. */
  readonly timeout?: number;
}

const skillRunnerOptionsNames = namesOf<SkillRunnerOptions>()(
  "sandbox bash workspaceInstance workspace tools network timeout",
);

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Runs the scripts of skills in sandboxes: JavaScript and TypeScript in QuickJS, Bash and Python in a shell.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function createSkillRunner(options: SkillRunnerOptions = {}): SkillScriptRunner {
  refuseUnknown(options, skillRunnerOptionsNames, "skills.runner()", {
    loader: "Leave it out: scripts run in sandboxes that come along. Others are `sandbox` and `bash`.",
  });
  const { timeout = DEFAULT_TIMEOUT_MS, workspace = "read", workspaceInstance, network, tools = {} } = options;
  if (!(Number.isFinite(timeout) && timeout >= 1)) {
    throw new PerdureError(
      "bad_config",
      `skills.runner: timeout must be a number of milliseconds, not ${String(timeout)}.`,
    );
  }
  if (!["read", "read-write", "none"].includes(workspace)) {
    throw new PerdureError("bad_config", `skills.runner: workspace must be "read", "read-write" or "none".`);
  }
  const fs = workspaceInstance && filesOf(workspaceInstance);
  const files = fs === undefined || workspace === "none" ? undefined : { fs, mode: workspace };
  const rights: ScriptRights = { tools, timeoutMs: timeout, network, files };
  const extensions = [...functionExtensions, ...(options.bash === false ? [] : shellExtensions)];
  return {
    extensions,
    async run(call) {
      const ending = extensionOf(call.script);
      if (functionExtensions.some((one) => one === ending)) {
        return runFunction(options.sandbox ?? sharedQuickJsSandbox(), call, rights);
      }
      if (options.bash !== false && shellExtensions.some((one) => one === ending)) {
        return runScript(options.bash ?? sharedBashSandbox(), call, rights);
      }
      return { ok: false, error: `Scripts must end in ${extensions.join(", ")}.`, artifacts: [] };
    },
  };
}

function filesOf(instance: SandboxFiles | MinimalFiles): SandboxFiles {
  return "appendFileBytes" in instance ? instance : toSandboxFiles(instance);
}
