import { PerdureError } from "../../base/error.ts";
import { checkNumbers, namesOf, refuseUnknown } from "../../base/known-options.ts";
import { isRecord } from "../../base/json.ts";
import type { AgentHost } from "../../port.ts";
import type { LargeFiles } from "./large-files.ts";
import type { WorkspaceListener } from "./realm.ts";

/** How a {@link Workspace} is made. */
export interface WorkspaceOptions {
  /** The agent whose files these are. */
  readonly host: AgentHost;
  /** Separate trees in the same agent have different names. Default: `main`. */
  readonly namespace?: string;
  /** Larger files go to `largeFiles`. Default: 1.5 MB. */
  readonly inlineLimit?: number;
  /** Where large files go. Default: beside the agent's database. */
  readonly largeFiles?: LargeFiles;
  /** Larger files are refused. Default: 100 MB. */
  readonly maxFileBytes?: number;
  /** How many points are kept at most; the oldest go first. Default: 200. */
  readonly maxPoints?: number;
  /** Called after each change is committed. Must not throw, and must be quick. */
  readonly onChange?: WorkspaceListener;
}

const optionNames = namesOf<WorkspaceOptions>()(
  "host namespace inlineLimit largeFiles maxFileBytes maxPoints onChange",
);

/** @throws PerdureError `bad_config` for what cannot be an option, and for a workspace of no agent */
export function checkWorkspaceOptions(options: WorkspaceOptions): void {
  refuseUnknown(options, optionNames, "Workspace", {
    sql: "Its rows are the agent's own: make it with this.createWorkspace({ ... }).",
    r2: "Large files go to `largeFiles: bucketFiles(bucket)`: this.createWorkspace({ largeFiles }).",
    name: "It belongs to its agent. Several trees of one agent differ by `namespace`.",
  });
  checkNumbers("Workspace", options, ["inlineLimit", "maxFileBytes", "maxPoints"], { whole: true });
  if (isRecord(options.host)) return;
  const how = "Inside of an agent, make it with this.createWorkspace({ ... }).";
  throw new PerdureError("bad_config", `Workspace: host is missing. ${how}`);
}
