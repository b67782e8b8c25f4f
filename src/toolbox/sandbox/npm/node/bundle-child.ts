// The process that bundles. It gets jobs and answers them, one at a time, and knows nothing else.
import { runJob } from "./bundle-job.ts";
import type { BundleJob } from "./protocol.ts";

process.on("message", (job: BundleJob) => {
  void runJob(job).then((answer) => process.send?.(answer));
});
process.on("disconnect", () => process.exit(0));
