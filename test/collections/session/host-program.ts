// A Perdure host that keeps sessions, for tests that kill it: after the commit that the harness chose.
import { Agent } from "../../../src/agent/agent.ts";
import { serve } from "../../../src/host/node/serve.ts";
import { crashPoint, programDir, report } from "../../../src/testing/crash/child.ts";

class Room extends Agent {
  override getCollections() {
    return { "*": {} };
  }
}

const { url } = await serve({
  agents: { Room },
  dir: programDir(),
  port: Number(process.env.PORT),
  onCommit: crashPoint(),
  signals: false,
});
report({ type: "listening", url });
