// A server of an agents directory. WATCH: whether it says so itself; else NODE_ENV decides.
import { join } from "node:path";
import { serve } from "perdure/node";
import { programDir, report } from "perdure/testing";

const host = await serve({
  agents: join(programDir(), "agents"),
  dir: join(programDir(), process.env.DATA ?? "data"),
  port: 0,
  ...(process.env.WATCH !== undefined && { watch: process.env.WATCH === "yes" }),
});
report({ type: "listening", url: host.url });
