// A host in a cluster, in a process of its own that may be killed at any moment.
import { serve } from "perdure/node";
import { report } from "perdure/testing";
import { BenchThink } from "../../bench/chat/agents.ts";

const host = await serve({
  agents: { BenchThink },
  port: 0,
  cluster: { url: process.env["PGURL"] ?? "", ttlMs: 600 },
  log: ({ agent, stage, error }) => report({ type: "failed", agent, stage, error: String(error) }),
});
report({ type: "listening", url: host.url });
