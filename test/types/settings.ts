// What is turned off in a subclass compiles as it is written: the compiler takes `false` for a boolean there.
import { Think } from "perdure";

export class Quiet extends Think {
  override workspaceTools = false;
  override workspaceBash = false;
  override contextOverflow = false;
  override mediaRetention = false;
  override chatRecovery = false;
  override titles = false;
  override actionLedgerPendingRetryLeaseMs = false;
  override waitForMcpConnections = false;
}
